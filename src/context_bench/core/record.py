"""One path that runs and records, for `evaluate`, `score` and, by way of `evaluate`, `resume`.

A run is listed in the store when it begins, and ends there with a status and a result, whatever becomes of it. An error
carries what was finished before it. `rescore` judges a recorded run again, without a request to any system.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from context_bench.caveats import find_unscored
from context_bench.config import read_settings
from context_bench.core.judgement import Judgement, Spending
from context_bench.core.recorder import Fingerprints, Recorder, ScoreMemory
from context_bench.core.row import Job
from context_bench.core.run import Plan, Run
from context_bench.core.schedule import run_examples
from context_bench.core.scoring import Scorer
from context_bench.core.threads import Threads
from context_bench.core.tracebacks import open_debugger
from context_bench.datasets.catalog import find_weak_thresholds
from context_bench.datasets.joined import FieldCounts
from context_bench.errors import (
    ContextBenchError,
    DataError,
    Interrupted,
    StoreError,
    attach_result,
    describe,
    find_result,
)
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from context_bench.pricing import Prices, load_shipped_prices, price_judges
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo, Store, StoreBackend
from context_bench.store.backend import RunRecord
from context_bench.summary import Summary
from context_bench.text.golds import list_scoring_fields
from context_bench.traits import system_traits
from context_bench.types import Example, Metric, System
from context_bench.utils.tokens import LONG_TEXT, Tokenizer

__all__ = ["count_recorded_fields", "execute_plan", "make_result", "record_run", "rescore", "run_with_store"]


async def record_run(
    store: StoreBackend,
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
        status = "stopped" if result.settings.stopped or result.settings.stopped_systems else "done"
    except BaseException as error:
        status = "interrupted" if isinstance(error, Interrupted) else "failed"
        _end_run(systems, store, run, status, find_result(error) or result)
        raise
    try:
        _end_run(systems, store, run, status, result)
    except StoreError as error:
        raise _explain(error, result) from None
    return result


def _end_run(systems: Sequence[System], store: StoreBackend, run: RunInfo, status: str, result: EvalResult) -> None:
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
    store: StoreBackend | Path,
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
        settings = read_settings(config)
        counting = None if settings.tokenizer is None else f"{settings.tokenizer} {settings.text_fields}"
        recorder = Recorder(opened, run, plan.scorer, counting, reuse=reuse, tag=tag)
        recorder.announce(plan.systems)
        return await execute_plan(plan, examples, config, recorder)

    opened: StoreBackend
    if not isinstance(store, Path):
        opened = store
        return await record_run(opened, config, work, plan.systems)
    result = None
    try:
        with Store(store) as folder:
            opened = folder
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
        "returns": {each.name: run.returns[each.name] for each in plan.systems if each.name in run.returns},
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
    for name, failure in result.settings.failed_metrics.items():
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


async def rescore(
    store: StoreBackend,
    run: RunInfo,
    new_run: RunInfo,
    scorer: Scorer,
    on_row: Callable[[EvalRow], None] = lambda _: None,
    *,
    prices: Prices | None = None,
    spending: Spending | None = None,
) -> list[EvalRow]:
    """Judge the rows of a run again, several at once, and keep each as part of a new run; errors stay errors.

    Args:
        store: Where both runs are.
        run: The run that was recorded.
        new_run: What its rows become part of.
        scorer: Judges.
        on_row: Told of each row as it is judged.
        prices: What judges cost; None takes the table that ships with the package.
        spending: The limit on what judges cost; None for no limit.
    """
    records: dict[int, RunRecord] = {}
    rows: dict[int, EvalRow] = {}
    fingerprints = Fingerprints(scorer.fingerprint)
    slots = 8 * (os.cpu_count() or 1)
    threads, long = Threads(os.cpu_count() or 1, "context-bench-score"), Threads(2, "context-bench-long")

    def read() -> Iterator[dict[str, object]]:
        for place, record in enumerate(store.run_records(run)):
            records[place] = record
            yield record.example

    async def judge(job: Job) -> None:
        record = records.pop(job.order)
        row = record.row
        if record.answer is not None:
            item, processed = job.item, record.answer.processed
            item.tag = row.dataset
            memory = ScoreMemory(store, fingerprints, record.example_key, processed, reuse=True)
            is_long = item.is_long or len(row.response) >= LONG_TEXT
            beside, metadata = long if is_long else None, record.answer.metadata
            judgement = await scorer.judge(item, processed, threads, memory, beside, spending, metadata=metadata)
            row = _replace_scores(row, run, scorer, judgement, prices or load_shipped_prices())
        store.put_row(new_run, job.order, None, record.example_id, record.response, row, record.answer_record)
        if record.example:  # in case the run that it is from is removed meanwhile
            store.put_example(record.example_id, record.example_key, record.example)
        rows[job.order] = row
        on_row(row)

    scorer.settle(count_recorded_fields(store, run))
    join_shared_transport()
    try:
        await run_examples(read(), slots, judge)
    finally:
        for each in (threads, long):
            each.shutdown(cancel_futures=True)
        await leave_shared_transport()
    return [rows[place] for place in sorted(rows)]


def count_recorded_fields(store: StoreBackend, run: RunInfo) -> FieldCounts:
    """Count the examples of a run by dataset and by the fields that decide which score fits them."""
    return Counter((each.row.dataset, list_scoring_fields(each.example)) for each in store.run_records(run))


def _replace_scores(row: EvalRow, run: RunInfo, scorer: Scorer, judgement: Judgement, prices: Prices) -> EvalRow:
    """Return a row with new scores, and without what the evaluators of its run said beside theirs."""
    before = run.settings.evaluators or ()
    left_out = {*before, "card_threshold", "judge_cost_usd"}
    kept = {key: value for key, value in row.metadata.items() if key not in left_out}
    if (threshold := scorer.find_threshold(row.dataset)) is not None:
        kept["card_threshold"] = threshold
    return dataclasses.replace(
        row,
        scores=judgement.scores,
        unscored=judgement.unscored,
        metadata={**kept, **judgement.details, **price_judges(prices, judgement.details)},
    )
