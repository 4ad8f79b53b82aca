"""`context-bench score RUN`: judge a recorded run again, without asking any system anything."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any

from context_bench.caveats import find_unscored
from context_bench.cli import COMMANDS
from context_bench.cli.build import build_metrics, build_scorer
from context_bench.cli.numbers import number
from context_bench.cli.output import build_reporter, choose_form, destination, show_warnings
from context_bench.cli.parser import (
    STORE,
    Parser,
    add_import,
    add_judge,
    add_quiet,
    add_report,
    add_store,
    add_unsafe_code,
)
from context_bench.cli.runs import load_result
from context_bench.engine.progress import Progress
from context_bench.engine.rescore import rescore
from context_bench.engine.scoring import Scorer
from context_bench.errors import printable
from context_bench.http.loop import new_event_loop
from context_bench.refs import import_code
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo, Store
from context_bench.summary import describe_metric, summarize
from context_bench.types import Metric

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Score a run anew and record that as a run of its own."""
    parser = Parser(prog="context-bench score", description=COMMANDS["score"])
    parser.add_argument("run", metavar="RUN", help="an id, the start of one, or last")
    parser.add_argument("--evaluator", action="append", default=[], metavar="REF", help="one more evaluator")
    parser.add_argument("--metric", action="append", default=[], metavar="REF", help="one more metric")
    parser.add_argument("--score-field", metavar="FIELD", help="the score that counts (default: the run's)")
    parser.add_argument(
        "--threshold", type=number, metavar="X", help="a score from here on passes (default: the run's)"
    )
    add_judge(parser)
    add_unsafe_code(parser)
    add_import(parser)
    add_store(parser, reuse=False)
    add_report(parser)
    add_quiet(parser)
    options = parser.parse_args(arguments[1:])
    options.output = choose_form(options.output, options.out)
    with (
        show_warnings(),
        Store(options.cache_dir or STORE, create=False) as store,
        destination(options.out) as write,
    ):
        with redirect_stdout(sys.stderr):  # what a user's code prints must not get into the report
            result = _score(options, store)
        write(build_reporter(options, options.output).render(result))
    unscored = find_unscored(result.summary, result.notes, result.config)
    for sentence in (*unscored, f"recorded as run {result.config['run']}"):
        print(f"context-bench: {printable(sentence)}", file=sys.stderr)
    return 3 if unscored else 0


def _score(options: argparse.Namespace, store: Store) -> EvalResult:
    """Score the answers of a run anew, as the flags say."""
    for code in options.imports:
        import_code(code)
    before = store.run(options.run)
    config = load_result(store, before).config
    if options.score_field is None:
        options.score_field = "auto" if config["score_field"] == "score" else config["score_field"]
    config["threshold_given"] = config.get("threshold_given", False) or options.threshold is not None
    if options.threshold is None:
        options.threshold = _threshold(config)
    config["threshold"] = options.threshold
    measured = {metric["name"] for metric in config["metrics"]}
    options.upstream, options.controls = "prompt-savings" in measured, "retention" in measured
    options.upstream_cost = any(
        metric["params"].get("cost_field") == "upstream_cost_of_pass" for metric in config["metrics"]
    )
    scorer = build_scorer(options, list(config["datasets"]))
    metrics = build_metrics(options, list(config["datasets"]), len(config["systems"]))
    config["metrics"] = [describe_metric(metric) for metric in metrics]
    config["score_field"] = "score" if options.score_field == "auto" else options.score_field
    return _scored_again(store, before, config, scorer, metrics, _progress(before, options))


def _threshold(config: dict[str, Any]) -> float:
    """The threshold that the run was made with."""
    found = (metric["params"].get("threshold") for metric in config["metrics"])
    return next((float(value) for value in found if value is not None), 0.7)


def _scored_again(
    store: Store, before: RunInfo, config: dict[str, Any], scorer: Scorer, metrics: list[Metric], progress: Progress
) -> EvalResult:
    """The run with new scores, recorded whatever becomes of it."""
    run = store.start_run({**config, "rescored": before.id})
    config = {**config, "rescored": before.id, "run": run.id}
    status, result = "failed", EvalResult([], {}, {}, config)
    try:
        rows = _collect(store, before, run, scorer, progress)
        config |= {"evaluators": scorer.names, "primary": scorer.primaries}
        summary = summarize(rows, config["systems"], metrics, config)
        status, result = "done", EvalResult(rows, summary.numbers, {}, config, metrics, summary.notes)
    finally:
        store.end_run(run, status, result)
    return result


def _progress(run: RunInfo, options: argparse.Namespace) -> Progress:
    """How far the rows of a run are scored; of one that did not come to its end, their number is not known."""
    total = sum(int(values.get("num_examples") or 0) for values in run.summary.values())
    return Progress(total or None, not options.quiet)


def _collect(store: Store, old: RunInfo, new: RunInfo, scorer: Scorer, progress: Progress) -> list[EvalRow]:
    progress.start()
    loop = new_event_loop()
    work = loop.create_task(rescore(store, old, new, scorer, progress.add))
    try:
        return loop.run_until_complete(work)
    except KeyboardInterrupt:
        work.cancel()
        loop.run_until_complete(asyncio.gather(work, return_exceptions=True))
        raise
    finally:
        progress.close()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
