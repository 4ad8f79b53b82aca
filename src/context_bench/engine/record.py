"""One path that runs and records, for `evaluate`, `score` and, by way of `evaluate`, `resume`.

A run is listed in the store when it begins, and ends there with a status and a result, whatever becomes of it. An error
carries what was finished before it.
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from context_bench.caveats import find_unscored
from context_bench.datasets.catalog import find_weak_thresholds
from context_bench.engine.execute import Plan, Run
from context_bench.engine.recorder import Recorder
from context_bench.engine.tracebacks import open_debugger
from context_bench.errors import (
    ContextBenchError,
    DataError,
    Interrupted,
    StoreError,
    attach_result,
    describe,
    find_result,
)
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo, Store
from context_bench.summary import Summary
from context_bench.traits import system_traits
from context_bench.types import Example, Metric, System
from context_bench.utils.tokens import Tokenizer

__all__ = ["execute_plan", "make_result", "record_run", "run_with_store"]


async def record_run(
    store: Store,
    config: dict[str, Any],
    work: Callable[[RunInfo], Awaitable[EvalResult]],
    systems: Sequence[System] = (),
) -> EvalResult:
    """Do the work of a run and record it: when it begins, how it ended, and with what.

    Args:
        store: Where it is recorded.
        config: Of the run; it gets the id of the run.
        work: Does it and returns the result.
        systems: Those whose taps may have seen requests that belong to no example.
    """
    run = store.start_run(config)
    config["run"] = run.id
    status, result = "failed", EvalResult([], {}, {}, config)
    try:
        result = await work(run)
        status = "stopped" if result.config.get("stopped") or result.config.get("stopped_systems") else "done"
    except BaseException as error:
        status = "interrupted" if isinstance(error, Interrupted) else "failed"
        _end_run(systems, store, run, status, find_result(error) or result)
        raise
    try:
        _end_run(systems, store, run, status, result)
    except StoreError as error:
        raise _explain(error, result) from None
    return result


def _end_run(systems: Sequence[System], store: Store, run: RunInfo, status: str, result: EvalResult) -> None:
    """Store the requests at a tap that belong to no example, and close the record of the run."""
    place = 0
    for system in systems:
        list_unmatched = system_traits(system).list_unmatched
        for call in list_unmatched() if list_unmatched is not None else ():
            store.put_request(run, place, {"system": system.name, **call.as_dict(since=call.started)})
            place += 1
    store.end_run(run, status, result)


async def run_with_store(
    plan: Plan,
    examples: Iterator[Example],
    config: dict[str, Any],
    store: Store | Path,
    *,
    reuse: bool,
    tag: str | None,
) -> EvalResult:
    """Run with a store: what is known is reused, what is new is kept, and the run is listed.

    Args:
        plan: What is run.
        examples: On what.
        config: For the record.
        store: An open store, or the folder of one. What cannot be written down when that is closed costs no row.
        reuse: Whether what is known is used, or asked for again.
        tag: Sets answers apart from those of the same system under another tag.
    """

    async def work(run: RunInfo) -> EvalResult:
        counting = None if config["tokenizer"] is None else f"{config['tokenizer']} {config['text_fields']}"
        recorder = Recorder(opened, run, plan.scorer, counting, reuse=reuse, tag=tag)
        recorder.announce(plan.systems)
        return await execute_plan(plan, examples, config, recorder)

    if isinstance(store, Store):
        opened = store
        return await record_run(opened, config, work, plan.systems)
    result = None
    try:
        with Store(store) as opened:
            result = await record_run(opened, config, work, plan.systems)
    except StoreError as error:
        raise (error if result is None else _explain(error, result)) from None
    return result


async def execute_plan(
    plan: Plan, examples: Iterator[Example], config: dict[str, Any], recorder: Recorder | None
) -> EvalResult:
    """Run every system on every example and sum up."""
    run = Run(plan, recorder)
    await run.execute(examples)
    if run.bug is not None:
        open_debugger(run.bug)
    config = {
        **config,
        "evaluators": plan.scorer.names,
        "evaluator_versions": plan.scorer.versions,
        "primary": plan.scorer.primaries,
        "context_primary": plan.scorer.context_primaries,
        "datasets": run.tags,
        "samples": plan.name_samples(run.tags),
        "gold": run.gold,
        "weak_thresholds": find_weak_thresholds(run.tags),
        "returns": run.returns,
        "unread": [each.name for each in plan.systems if each.name in run.unread],
        "stopped": run.stopped,
        "stopped_systems": run.stopped_systems,
        "reused": run.reused,
        "reports": _collect_reports(plan.systems, plan.count),
        **run.describe_looks(),
    }
    result = make_result(run.rows, run.summarize(config), config, plan.metrics, run.seconds)
    if run.failure is not None:
        raise attach_result(run.failure, result)
    for name, failure in result.config["failed_metrics"].items():
        warnings.warn(f"the metric {name!r} failed, and its numbers are missing: {failure}", stacklevel=2)
    for sentence in find_unscored(result.summary, result.notes, result.config):
        warnings.warn(sentence, stacklevel=2)
    if run.interrupted:
        raise Interrupted(result)
    if run.error is not None:
        raise _explain(run.error, result)
    return result


def make_result(
    rows: list[EvalRow],
    summary: Summary,
    config: dict[str, Any],
    metrics: Sequence[Metric],
    seconds: dict[str, float] | None = None,
) -> EvalResult:
    """Make the result of a run that has come to its end, or to as much of it as there is."""
    config = {**config, "columns": summary.columns, "failed_metrics": summary.failures}
    return EvalResult.from_summary(rows, summary, config, metrics, seconds)


def _collect_reports(systems: Sequence[System], count: Tokenizer) -> dict[str, Any]:
    """Collect what our own systems have to say of the run beside their rows."""
    reports = {each.name: system_traits(each).report for each in systems}
    return {name: report(count) for name, report in reports.items() if report is not None}


def _explain(error: BaseException, result: EvalResult) -> ContextBenchError:
    """Make the error that ended the input one of ours, which carries what was finished before it."""
    known = error
    if not isinstance(known, ContextBenchError):
        known = DataError(f"reading the dataset failed after {len(result.rows)} rows: {describe(error)}")
    attach_result(known, result)
    return known
