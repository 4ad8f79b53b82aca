"""A recorded run judged again: other evaluators, another threshold, no request to any system."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator

from context_bench.datasets.joined import FieldCounts
from context_bench.engine.jobs import Job
from context_bench.engine.judgement import Judgement, Spending
from context_bench.engine.recorder import Fingerprints, ScoreMemory
from context_bench.engine.scheduler import run_examples
from context_bench.engine.scoring import Scorer
from context_bench.engine.threads import Threads
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from context_bench.pricing import Prices, load_shipped_prices, price_judges
from context_bench.results import EvalRow
from context_bench.store import RunInfo, Store
from context_bench.store.store import RunRecord
from context_bench.text.golds import list_scoring_fields
from context_bench.utils.tokens import LONG_TEXT

__all__ = ["count_recorded_fields", "rescore"]


async def rescore(
    store: Store,
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


def count_recorded_fields(store: Store, run: RunInfo) -> FieldCounts:
    """Count the examples of a run by dataset and by the fields that decide which score fits them."""
    return Counter((each.row.dataset, list_scoring_fields(each.example)) for each in store.run_records(run))


def _replace_scores(row: EvalRow, run: RunInfo, scorer: Scorer, judgement: Judgement, prices: Prices) -> EvalRow:
    """Return a row with new scores, and without what the evaluators of its run said beside theirs."""
    before = run.config.get("evaluators") or ()
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
