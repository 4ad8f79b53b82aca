"""One job to one row: known already, or else called, scored, counted and kept."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from context_bench.engine.call import Outcome, call_system, is_endpoint
from context_bench.engine.recorder import Keys, Recorder
from context_bench.engine.scheduler import Item, Job
from context_bench.engine.scoring import Judgement, Scorer
from context_bench.engine.threads import Threads
from context_bench.pricing import Prices
from context_bench.results import EvalRow
from context_bench.systems.prompts import merge
from context_bench.tap.numbers import tapped_numbers
from context_bench.utils.tokens import Tokenizer, count_prompt

__all__ = ["Pipeline"]

Emit = Callable[[Job, EvalRow, Outcome], None]


class Pipeline:
    """Turns jobs into rows and hands each to `emit`.

    Args:
        scorer: Judges what systems return.
        count: Counts tokens.
        text_fields: The fields that count as the prompt; None for the usual ones.
        emit: Takes each finished row.
        recorder: Finds and keeps results; None keeps nothing.
        prices: For the cost of a request.
        threads: For systems that are not asynchronous.
    """

    def __init__(
        self,
        scorer: Scorer,
        count: Tokenizer,
        text_fields: Sequence[str] | None,
        emit: Emit,
        recorder: Recorder | None,
        prices: Prices | None,
        threads: Executor,
    ) -> None:
        self._scorer, self._count, self._text_fields = scorer, count, text_fields
        self._emit, self._recorder, self._prices = emit, recorder, prices
        self._threads = threads
        cores = os.cpu_count() or 1
        self._scoring = Threads(cores, "context-bench-score")
        self._room = asyncio.Semaphore(8 * cores)
        self._later: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._unpriced: set[str] = set()

    async def run(self, job: Job) -> None:
        """Bring one job to its row. Slow scoring of an endpoint's answer goes on while its next request runs."""
        if self._failure is not None:
            raise self._failure
        recorder, keys = self._recorder, None
        outcome = None
        if recorder is not None:
            keys = recorder.keys(job)
            row = recorder.known_row(job, keys)
            if row is not None:
                job.item.tokens = row.input_tokens
                if self._prices is None:
                    recorder.keep_known(job, keys)
                else:
                    self._price(job, row.metadata)
                    recorder.keep_row(job, keys, row, final=False)  # it is found where it was found now
                self._emit(job, row, Outcome(returns=row.metadata.get("output", "response"), known=True))
                return
            outcome = recorder.known_answer(job, keys)
        if outcome is None:
            outcome = await call_system(job.system, job.item.example, self._threads)
        if outcome.error is not None:
            self._keep(job, outcome, keys, Judgement())
            return
        if recorder is not None and keys is not None:
            recorder.keep_answer(job, keys, outcome)
        item = job.item
        if not self._scorer.wiring(item.tag, item.example).slow:
            self._keep(job, outcome, keys, self._scorer.judge_at_once(item.example, outcome.processed, item.tag))
        elif not is_endpoint(job.system):
            await self._judge(job, outcome, keys)
        else:
            await self._room.acquire()
            task = asyncio.ensure_future(self._judge(job, outcome, keys))
            self._later.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._later.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error

    async def drain(self) -> None:
        """Wait for the scoring that is still under way."""
        while self._later:
            await asyncio.wait(self._later)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the scoring threads."""
        for task in self._later:
            task.cancel()
        self._scoring.shutdown(cancel_futures=True)

    async def _judge(self, job: Job, outcome: Outcome, keys: Keys | None) -> None:
        """Bring an answer to its row where that takes its time."""
        memory, item = None, job.item
        if self._recorder is not None and keys is not None:
            memory = self._recorder.memory(keys, outcome.processed)
        judgement = await self._scorer.judge(item.example, outcome.processed, item.tag, self._scoring, memory)
        self._keep(job, outcome, keys, judgement)

    def _keep(self, job: Job, outcome: Outcome, keys: Keys | None, judgement: Judgement) -> None:
        """Make the row, put it down and hand it on."""
        row = self._row(job, outcome, judgement)
        if self._recorder is not None and keys is not None:
            final = outcome.error is None and not judgement.transient
            self._recorder.keep_row(job, keys, row, final=final)
        self._emit(job, row, outcome)

    def _price(self, job: Job, metadata: dict[str, Any]) -> None:
        """Put the cost in by the prices of this run, whatever an earlier one reckoned with."""
        price = self._prices.of(getattr(job.system, "model", None)) if self._prices else None
        if price is None:
            return
        cost = price.cost(metadata)
        if cost is not None:
            metadata["cost"] = cost
        elif is_endpoint(job.system) and job.system.name not in self._unpriced:
            self._unpriced.add(job.system.name)
            warnings.warn(f"{job.system.name!r} tells no token usage, so what it costs is not known", stacklevel=2)

    def _row(self, job: Job, outcome: Outcome, judgement: Judgement) -> EvalRow:
        example, processed = job.item.example, outcome.processed
        metadata = {**outcome.metadata, **judgement.details}
        if "meta" in example:
            metadata |= _standing(example["meta"])
        if self._prices is not None and outcome.error is None:
            self._price(job, metadata)
        if "tapped" in processed and outcome.returns == "response":
            metadata |= tapped_numbers(processed["tapped"], self._count)
        upstream = metadata.pop("upstream_tokens", None)
        if metadata.pop("upstream", None) == "context":  # the model behind it was sent the context that it returned
            upstream = count_prompt(merge(example, processed), self._count)
        output_tokens = response_tokens = 0
        response = processed.get("response", "")
        if outcome.error is None:
            metadata["output"] = outcome.returns
            if outcome.returns == "context":
                output_tokens = count_prompt(merge(example, processed), self._count, self._text_fields)
                response_tokens = self._count(response)
            else:
                replies = processed.get("responses") or (response,)
                output_tokens = response_tokens = sum([self._count(reply) for reply in replies if reply])
        metadata["response_tokens"] = response_tokens
        return EvalRow(
            job.system.name,
            example["id"],
            judgement.scores,
            self._input_tokens(job.item),
            output_tokens,
            metadata,
            outcome.latency,
            job.item.tag,
            response,
            outcome.error,
            job.repeat,
            judgement.unscored,
            upstream if isinstance(upstream, int) else None,
        )

    def _input_tokens(self, item: Item) -> int:
        if item.tokens is None:
            item.tokens = count_prompt(item.example, self._count, self._text_fields)
        return item.tokens


def _standing(meta: Any) -> dict[str, Any]:
    """How the row counts in an official number that is no mean of rows."""
    if not isinstance(meta, Mapping):
        return {}
    standing = {key: meta[key] for key in ("group", "weight", "weight_field") if key in meta}
    if not isinstance(standing.get("weight", 1), int | float):
        del standing["weight"]
    return standing
