"""A recorded run judged again: other evaluators, another threshold, no request to any system."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Executor

from context_bench.engine.recorder import Fingerprints, ScoreMemory
from context_bench.engine.scoring import Scorer
from context_bench.engine.threads import Threads
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from context_bench.pricing import price_judges, shipped_prices
from context_bench.results import EvalRow
from context_bench.store import RunInfo, Store
from context_bench.store.store import RunRecord

__all__ = ["rescored"]


async def rescored(store: Store, run: RunInfo, new_run: RunInfo, scorer: Scorer) -> AsyncIterator[EvalRow]:
    """The rows of a run with fresh scores, each kept as part of a new run; errors stay errors.

    Slow evaluators judge several rows at once.
    """
    cores = os.cpu_count() or 1
    fingerprints = Fingerprints()
    under_way: deque[asyncio.Task[EvalRow]] = deque()
    threads = Threads(cores, "context-bench-score")

    async def judge(place: int, record: RunRecord) -> EvalRow:
        row = record.row
        if record.answer is not None:
            memory = ScoreMemory(store, fingerprints, record.example_key, record.answer.processed, reuse=True)
            row = await _judged(record, run, scorer, threads, memory)
        store.put_row(new_run, place, None, record.example_id, record.response, row, record.answer_record)
        if record.example:  # in case the run that it is from is removed meanwhile
            store.put_example(record.example_id, record.example_key, record.example)
        return row

    join_shared_transport()
    try:
        for place, record in enumerate(store.run_records(run)):
            under_way.append(asyncio.ensure_future(judge(place, record)))
            if len(under_way) >= 8 * cores:
                yield await under_way.popleft()
        while under_way:
            yield await under_way.popleft()
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        threads.shutdown(cancel_futures=True)
        await leave_shared_transport()


async def _judged(record: RunRecord, run: RunInfo, scorer: Scorer, threads: Executor, memory: ScoreMemory) -> EvalRow:
    row, answer = record.row, record.answer
    assert answer is not None
    judgement = await scorer.judge(record.example, answer.processed, row.dataset, threads, memory)
    before = run.config.get("evaluators") or ()
    left_out = {*before, "card_threshold", "judge_cost_usd"}
    kept = {key: value for key, value in row.metadata.items() if key not in left_out}
    if (threshold := scorer.find_threshold(row.dataset)) is not None:
        kept["card_threshold"] = threshold
    return dataclasses.replace(
        row,
        scores=judgement.scores,
        unscored=judgement.unscored,
        metadata={**kept, **judgement.details, **price_judges(shipped_prices(), judgement.details)},
    )
