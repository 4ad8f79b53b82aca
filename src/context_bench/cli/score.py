"""`context-bench score RUN`: score a recorded run again, without calling any system."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Coroutine, Sequence
from contextlib import redirect_stdout
from typing import Any

from context_bench.caveats import find_unscored
from context_bench.cli.build_scoring import JudgeOptions, ScoringOptions, build_metrics, build_scorer
from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import choose_form, open_destination, table_width, wants_color, write_report
from context_bench.config import STORE
from context_bench.core.judge import Scorer
from context_bench.core.record import load_result, recording, rescore
from context_bench.core.run import make_result
from context_bench.http.loop import open_event_loop
from context_bench.metrics import DEFAULT_THRESHOLD
from context_bench.monitors.budget import Budget
from context_bench.monitors.limits import Limits
from context_bench.monitors.progress import Progress
from context_bench.numbers import NUM_EXAMPLES, UPSTREAM_COST_OF_PASS
from context_bench.output.files import build_reporter
from context_bench.pricing import Prices, check_prices
from context_bench.refs import import_all
from context_bench.results import EvalResult
from context_bench.settings import read_settings
from context_bench.store import RunInfo, Store
from context_bench.summary import describe_metric, summarize
from context_bench.types import Metric
from context_bench.utils.tokens import get_tokenizer


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench score", description=COMMANDS["score"])
    parser.add_argument("run", metavar="RUN", help="a run's id, its beginning, or last")
    add_flags(parser, "evaluator", help="one more evaluator (repeatable)")
    add_flags(parser, "metric")
    add_flags(parser, "score_field", help="primary score (default: the run's)")
    add_flags(parser, "threshold", help="lowest score that passes (default: the run's)")
    add_flags(parser, "keep_reasoning", "judge_url", "judge_model", "judge_key_env", "prices_file", "max_cost")
    add_flags(parser, "max_total_tokens", "unsafe_code", "imports")
    add_store(parser)
    add_flags(parser, "output", "out", "wide")
    add_flags(parser, "silent", help="show no progress")
    options = parser.parse_args(arguments[1:])
    form = choose_form(options.output, options.out)
    with (
        show_warnings(),
        Store(options.cache_dir or STORE, create=False) as store,
        open_destination(options.out, quiet=options.silent) as write,
    ):
        with redirect_stdout(sys.stderr):  # output of user code must not mix with the report
            import_all(options.imports)
            width = table_width(wide=options.wide, out=options.out)
            reporter = build_reporter(form, width, color=wants_color(options.out), wide=options.wide)
            result = _score(options, store)
        write_report(write, reporter, form, result)
    unscored = find_unscored(result.summary, result.notes, result.config)
    failed = result.settings.failed_metrics
    lost = [f"the metric {name!r} failed, and its numbers are missing: {why}" for name, why in failed.items()]
    stopped = result.settings.stopped
    limited = [f"judging stopped: {stopped}; score again with a higher limit to judge the rest"] if stopped else []
    for sentence in (*limited, *unscored, *lost, f"recorded as run {result.settings.run}"):
        say(sentence)
    return 3 if unscored or failed or stopped else 0


def _score(flags: argparse.Namespace, store: Store) -> EvalResult:
    before = store.run(flags.run)
    config = load_result(store, before).config
    settings = read_settings(config)
    if "looks" in config:  # interim looks used the earlier scores
        config["looks_before"] = config.pop("looks")
    options = _plan_scoring(flags, config)
    datasets = list(settings.datasets)
    scorer = build_scorer(options, datasets)
    metrics = build_metrics(options, datasets, len(settings.systems))
    config["threshold_given"] = settings.threshold_given or flags.threshold is not None
    config["threshold"] = options.threshold
    config["keep_reasoning"] = options.keep_reasoning
    config["metrics"] = [describe_metric(metric) for metric in metrics]
    config["score_field"] = options.field
    limits = Limits.read(flags)
    prices = Prices.from_file(flags.prices_file) if flags.prices_file else None
    prices = check_prices(scorer.chosen, prices, needed=limits.max_cost is not None)
    rows = sum(int(values.get(NUM_EXAMPLES) or 0) for values in before.summary.values())
    progress = Progress(rows or None, not flags.silent)  # unknown for an unfinished run
    scoring = _score_again(store, before, config, scorer, metrics, progress, limits, prices)
    return _run_to_end(scoring, progress)


def _plan_scoring(flags: argparse.Namespace, config: dict[str, Any]) -> ScoringOptions:
    settings = read_settings(config)
    metrics = settings.metrics
    names = {metric["name"] for metric in metrics}
    chosen = None if settings.score_field == "score" else settings.score_field
    if flags.score_field is not None:
        chosen = None if flags.score_field == "auto" else flags.score_field
    return ScoringOptions(
        evaluators=flags.evaluator,
        metrics=flags.metric,
        score_field=chosen,
        threshold=next(each for each in (flags.threshold, settings.threshold, DEFAULT_THRESHOLD) if each is not None),
        keep_reasoning=flags.keep_reasoning,
        judge=JudgeOptions.read(flags),
        unsafe_code=flags.unsafe_code,
        sees_upstream="prompt-savings" in names,
        ranks_by_upstream=any(metric["params"].get("cost_field") == UPSTREAM_COST_OF_PASS for metric in metrics),
        controls="retention" in names,
        repeats=settings.repeats,
    )


async def _score_again(
    store: Store,
    before: RunInfo,
    config: dict[str, Any],
    scorer: Scorer,
    metrics: list[Metric],
    progress: Progress,
    limits: Limits,
    prices: Prices,
) -> EvalResult:
    settings = read_settings(config)
    config = {**config, "rescored": before.id, "stopped": None}
    reasons: list[str] = []
    budget = Budget(limits, prices, get_tokenizer(settings.tokenizer), reasons.append)

    with recording(store, config) as record:
        spending = budget if limits.limits_spending else None
        rows = await rescore(store, before, record.run, scorer, progress.add, prices=prices, spending=spending)
        scored = {
            **config,
            "stopped": reasons[0] if reasons else None,
            "evaluators": scorer.names,
            "evaluator_versions": scorer.versions,
            "primary": scorer.primaries,
            "context_primary": scorer.context_primaries,
        }
        summary = summarize(rows, settings.systems, metrics, scored)
        return record.finish(make_result(rows, summary, scored, metrics))


def _run_to_end(scoring: Coroutine[Any, Any, EvalResult], progress: Progress) -> EvalResult:
    """Score on an event loop and show the progress; Ctrl-C ends it."""
    progress.start()
    with open_event_loop() as loop:
        work = loop.create_task(scoring)
        try:
            return loop.run_until_complete(work)
        except KeyboardInterrupt:
            work.cancel()
            loop.run_until_complete(asyncio.gather(work, return_exceptions=True))
            raise
        finally:
            progress.close()
