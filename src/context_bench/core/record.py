"""Records runs, for `evaluate`, `score` and (through `evaluate`) `resume`.

A run is listed in the store from its beginning and always ends with a status and a result. An error carries the part
that was finished before it. `rescore` judges a recorded run again without asking its systems. `load_result` reads a
recorded run.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from context_bench.compare.pairing import is_unread_row
from context_bench.core.cache import Cache, ScoreMemory
from context_bench.core.examples import Item, Wiring
from context_bench.core.judge import Judgement, Scorer, Spending
from context_bench.core.row import Job
from context_bench.core.run import Plan, explain_input_error
from context_bench.core.schedule import run_examples
from context_bench.core.threads import Threads
from context_bench.datasets.catalog import find_weak_thresholds
from context_bench.datasets.joined import FieldCounts
from context_bench.errors import Interrupted, StoreError, find_result
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from context_bench.pricing import Prices, load_shipped_prices, price_judges
from context_bench.results import EvalResult, EvalRow
from context_bench.settings import read_settings
from context_bench.store import RunInfo, Store, StoreBackend
from context_bench.store.backend import RunRecord, restore_result
from context_bench.summary import rebuild_metrics, summarize
from context_bench.text.golds import has_gold, list_scoring_fields
from context_bench.traits import system_traits
from context_bench.types import System
from context_bench.utils.tokens import LONG_TEXT


class Recording:
    """A run in progress in the store; `result` is set at the end.

    Attributes:
        run: The store's record of the run.
        done: Whether the run has finished, so that `result` is complete.
    """

    def __init__(self, run: RunInfo, config: dict[str, Any]) -> None:
        self.run, self.done = run, False
        self.result = EvalResult([], {}, {}, config)

    def finish(self, result: EvalResult) -> EvalResult:
        """Set the result of the finished run, and return it."""
        self.result, self.done = result, True
        return result


@contextmanager
def recording(store: StoreBackend, config: dict[str, Any], systems: Sequence[System] = ()) -> Iterator[Recording]:
    """Record a run: its beginning, its end, its status and its result."""
    run = store.start_run(config)
    config["run"] = run.id
    record = Recording(run, config)
    try:
        yield record
    except BaseException as error:
        status = "interrupted" if isinstance(error, Interrupted) else "failed"
        _end_run(systems, store, run, status, find_result(error) or record.result)
        raise
    settings = record.result.settings
    status = "stopped" if settings.stopped or settings.stopped_systems else "done"
    try:
        _end_run(systems, store, run, status, record.result)
    except StoreError as error:
        raise explain_input_error(error, record.result) from None


def _end_run(systems: Sequence[System], store: StoreBackend, run: RunInfo, status: str, result: EvalResult) -> None:
    """Store requests at the tap that belong to no example, and close the record of the run."""
    place = 0
    for system in systems:
        list_unmatched = system_traits(system).list_unmatched
        for call in list_unmatched() if list_unmatched is not None else ():
            store.put_request(run, place, {"system": system.name, **call.as_dict(since=call.started)})
            place += 1
    store.end_run(run, status, result)


@contextmanager
def open_cache(
    plan: Plan, config: dict[str, Any], store: StoreBackend | Path, *, reuse: bool, tag: str | None
) -> Iterator[tuple[Cache, Recording]]:
    """Open the cache of a run, and list the run in the store.

    Args:
        plan: The plan of the run.
        config: The settings to record.
        store: An open store, or its folder. If closing the store fails, the result still has its rows.
        reuse: Whether to use stored results; otherwise all requests are repeated.
        tag: A label for stored answers: a system's answers under one tag are not found under another.
    """
    record = None
    settings = read_settings(config)
    counting = None if settings.tokenizer is None else f"{settings.tokenizer} {settings.text_fields}"
    try:
        with ExitStack() as opened:
            used = opened.enter_context(Store(store)) if isinstance(store, Path) else store
            record = opened.enter_context(recording(used, config, plan.systems))
            cache = Cache(used, record.run, plan.scorer, counting, reuse=reuse, tag=tag)
            cache.prepare(plan.systems)
            yield cache, record
    except StoreError as error:
        if record is None or not record.done or not isinstance(store, Path):
            raise
        raise explain_input_error(error, record.result) from None


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
    """Judge the rows of a run again, several at a time, and record them as a new run; errors stay errors."""
    records: dict[int, RunRecord] = {}
    rows: dict[int, EvalRow] = {}
    slots = 8 * (os.cpu_count() or 1)
    threads, long = Threads(os.cpu_count() or 1, "context-bench-score"), Threads(2, "context-bench-long")

    def read() -> Iterator[Item]:
        for place, record in enumerate(store.run_records(run)):
            records[place] = record
            yield Item(record.example, record.row.dataset)

    async def judge(job: Job) -> None:
        record = records.pop(job.order)
        row = record.row
        if record.answer is not None:
            item, processed = job.item, record.answer.processed
            memory = ScoreMemory(store, scorer, record.example_key, processed, reuse=True)
            is_long = item.is_long or len(row.response) >= LONG_TEXT
            beside, metadata = long if is_long else None, record.answer.metadata
            judgement = await scorer.judge(item, processed, threads, memory, beside, spending, metadata=metadata)
            row = _replace_scores(row, run, scorer.wire(item), judgement, prices or load_shipped_prices())
        store.put_row(new_run, job.order, None, record.example_id, record.response, row, record.answer_record)
        if record.example:  # in case its run is removed during this
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
    """Count the examples of a run by dataset and by the fields that decide their score."""
    return Counter((each.row.dataset, list_scoring_fields(each.example)) for each in store.run_records(run))


def _replace_scores(row: EvalRow, run: RunInfo, wiring: Wiring, judgement: Judgement, prices: Prices) -> EvalRow:
    """Return a row with new scores, without the details of its former evaluators."""
    before = run.settings.evaluators or ()
    left_out = {*before, "card_threshold", "judge_cost_usd"}
    kept = {key: value for key, value in row.metadata.items() if key not in left_out}
    if wiring.threshold is not None:
        kept["card_threshold"] = wiring.threshold
    replaced = dataclasses.replace(
        row,
        scores=judgement.scores,
        unscored=judgement.unscored,
        metadata={**kept, **judgement.details, **price_judges(prices, judgement.details)},
    )
    replaced.meta = row.meta
    return replaced


def load_result(store: Store, info: RunInfo, *, rows: bool = True) -> EvalResult:
    """Load a recorded run as a result; of an unfinished run, load the recorded part.

    Without `rows`, the rows of a finished run stay in the store.
    """
    if info.summary:
        return restore_result(info, list(store.run_rows(info)) if rows else [])
    config = dict(info.config)
    for name in ("notes", "intervals", "comparison"):
        config.pop(name, None)
    found: list[EvalRow] = []
    gold: dict[str, bool] = {}
    scorer = Scorer(score_field=info.settings.score_field)
    scorer.settle(count_recorded_fields(store, info))
    for record in store.run_records(info):
        row = record.row
        found.append(row)
        scorer.note_known(Item(record.example, row.dataset), row)
        gold[row.dataset] = gold.get(row.dataset, False) or has_gold(record.example)
    examples = {(row.dataset, row.example_id) for row in found}
    config |= {
        "stopped": "the run did not finish",
        "samples": dict.fromkeys((tag for tag, _ in examples), "first"),
        "datasets": dict(Counter(tag for tag, _ in examples)),
        "gold": gold,
        "primary": scorer.primaries,
        "context_primary": scorer.context_primaries,
        "unread": list(dict.fromkeys(row.system for row in found if is_unread_row(row))),
        "returns": {row.system: row.metadata["output"] for row in found if "output" in row.metadata},
        "weak_thresholds": find_weak_thresholds(gold),
    }
    metrics = rebuild_metrics(info.settings.metrics)
    summary = summarize(found, info.settings.systems, metrics, config)
    config["columns"] = summary.columns
    return EvalResult.from_summary(found, summary, config, metrics)
