"""A recorded run judged again: other evaluators, another threshold, no request to any system."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

from context_bench.engine.recorder import ScoreMemory
from context_bench.engine.scoring import Scorer
from context_bench.results import EvalRow
from context_bench.store import Store
from context_bench.store.keys import digest, example_digests

__all__ = ["rescored"]


async def rescored(store: Store, run: str, new_run: str, scorer: Scorer) -> AsyncIterator[EvalRow]:
    """The rows of a run with fresh scores, each kept as part of a new run; errors stay errors."""
    with ThreadPoolExecutor(thread_name_prefix="context-bench-score") as threads:
        for place, record in enumerate(store.run_records(run)):
            row, example = record.row, record.example
            if record.answer is not None:
                processed = record.answer.processed
                memory = ScoreMemory(store, example_digests(example)[1], processed, reuse=True)
                judgement = await scorer.judge(example, processed, row.dataset, threads, memory)
                row = dataclasses.replace(
                    row,
                    scores=judgement.scores,
                    unscored=judgement.unscored,
                    metadata={**row.metadata, **judgement.details},
                )
            key = digest("rescored", new_run, str(place))
            store.put_row(key, record.response_key, row)
            store.put_place(new_run, place, key)
            yield row
