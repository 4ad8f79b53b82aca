"""`context-bench score RUN`: judge a recorded run again, without asking any system anything."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from context_bench.cli import COMMANDS
from context_bench.cli.build import build_metrics, build_scorer
from context_bench.cli.output import destination
from context_bench.cli.parser import STORE, Parser, add_import, add_report, add_store
from context_bench.engine.rescore import rescored
from context_bench.engine.scoring import Scorer
from context_bench.http.loop import new_event_loop
from context_bench.refs import import_code
from context_bench.registry import registry
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
    parser.add_argument("--score-field", default="auto", metavar="FIELD", help="the score that counts")
    parser.add_argument("--threshold", type=float, default=0.7, metavar="X", help="a score from here on passes")
    add_import(parser)
    add_store(parser, reuse=False)
    add_report(parser)
    options = parser.parse_args(arguments[1:])
    for code in options.imports:
        import_code(code)
    with Store(options.cache_dir or STORE) as store, destination(options.out) as write:
        info = store.run(options.run)
        tags = list(info.config.get("datasets", {}))
        systems = list(info.config.get("systems", {}))
        scorer = build_scorer(options, tags)
        metrics = build_metrics(options, len(tags), len(systems))
        result = _scored_again(store, info, scorer, metrics, options)
        write(registry.get("reporter", options.output)().render(result))
    print(f"context-bench: recorded as run {result.config['run']}", file=sys.stderr)
    return 0


def _scored_again(store: Store, info: RunInfo, scorer: Scorer, metrics: list[Metric], options: Any) -> EvalResult:
    field = "score" if options.score_field == "auto" else options.score_field
    config = {
        **info.config,
        "rescored": info.id,
        "metrics": [describe_metric(metric) for metric in metrics],
        "score_field": field,
    }
    config["run"] = run = store.start_run(config)
    rows = _collect(store, info.id, run, scorer)
    config["evaluators"] = scorer.names
    summary = summarize(rows, info.config.get("systems", {}), metrics, field)
    store.end_run(run, "done", config, summary)
    return EvalResult(rows, summary, {}, config, metrics)


def _collect(store: Store, old: str, new: str, scorer: Scorer) -> list[EvalRow]:
    async def collect() -> list[EvalRow]:
        return [row async for row in rescored(store, old, new, scorer)]

    loop = new_event_loop()
    try:
        return loop.run_until_complete(asyncio.ensure_future(collect(), loop=loop))
    finally:
        loop.close()
