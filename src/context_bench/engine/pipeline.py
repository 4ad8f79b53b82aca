"""One job to one row: known already, or else called, judged and kept.

An endpoint's next request does not wait for what is made of its last answer. Answers that can be judged at once are
gathered for a moment and brought to their rows together, stage by stage: that costs half of what it costs one by one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor

from context_bench.engine.call import Outcome, call_system, is_endpoint
from context_bench.engine.jobs import Job
from context_bench.engine.recorder import Recorder
from context_bench.engine.rows import RowMaker
from context_bench.engine.scoring import Judgement, Scorer
from context_bench.engine.threads import Threads
from context_bench.results import EvalRow

__all__ = ["Pipeline"]

Emit = Callable[[Job, EvalRow, Outcome], None]
Answered = tuple[Job, Outcome]

_TOGETHER = 64
_AT_THE_LATEST = 0.01
"""Seconds: an answer is on disk within 50 ms, and what writes it down takes a part of that."""

_KNOWN, _KNOWN_CONTEXT = Outcome(known=True), Outcome(returns="context", known=True)


class Pipeline:
    """Turns jobs into rows and hands each to `emit`.

    Args:
        scorer: Judges what systems return.
        maker: Makes the rows.
        emit: Takes each finished row.
        recorder: Finds and keeps results; None keeps nothing.
        threads: For systems that are not asynchronous.
        strict: Whether a row must be there before the next request is sent, as a limit on spend wants it.
    """

    def __init__(
        self,
        scorer: Scorer,
        maker: RowMaker,
        emit: Emit,
        recorder: Recorder | None,
        threads: Executor,
        *,
        strict: bool = False,
    ) -> None:
        self._scorer, self._maker, self._emit, self._recorder = scorer, maker, emit, recorder
        self._threads, self._strict = threads, strict
        cores = os.cpu_count() or 1
        self._scoring = Threads(cores, "context-bench-score")
        self._room = asyncio.Semaphore(8 * cores)
        self._later: set[asyncio.Task[None]] = set()
        self._gathered: list[Answered] = []
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None

    def screen(self, jobs: list[Job]) -> list[Job]:
        """The jobs that are left to do; of the others the row is known, and taken over."""
        recorder = self._recorder
        if recorder is None:
            return jobs
        recorder.put_keys(jobs)
        if not recorder.reuse:
            return jobs
        rows = [recorder.known_row(job) for job in jobs]
        for job, row in zip(jobs, rows):
            if row is not None:
                self._take_over(job, row, recorder)
        return [job for job, row in zip(jobs, rows) if row is None]

    def _take_over(self, job: Job, row: EvalRow, recorder: Recorder) -> None:
        job.item.tokens = row.input_tokens
        if self._maker.price(job, row.metadata):
            recorder.keep_row(job, row, final=False)  # it is found where it was found now
        else:
            recorder.keep_known(job)
        self._emit(job, row, _KNOWN_CONTEXT if row.metadata.get("output") == "context" else _KNOWN)

    async def run(self, job: Job) -> None:
        """Bring one job to its row, or so far that it comes to it by itself."""
        if self._failure is not None:
            raise self._failure
        outcome = self._recorder.known_answer(job) if self._recorder is not None else None
        if outcome is None:
            outcome = await call_system(job.system, job.item.example, self._threads)
        if outcome.error is not None or not self._scorer.wiring(job.item.tag, job.item.example).slow:
            if self._strict or not is_endpoint(job.system):
                self._finish([(job, outcome)])
            else:
                self._gather((job, outcome))
            return
        if self._recorder is not None:
            self._recorder.keep_answer(job, outcome)
        if not is_endpoint(job.system):
            await self._judge(job, outcome)
            return
        await self._room.acquire()
        task = asyncio.ensure_future(self._judge(job, outcome))
        self._later.add(task)
        task.add_done_callback(self._judged)

    # -- answers that are judged at once

    def _gather(self, answered: Answered) -> None:
        self._gathered.append(answered)
        if len(self._gathered) >= _TOGETHER:
            self._finish_gathered()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_AT_THE_LATEST, self._finish_gathered)

    def _finish_gathered(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        gathered, self._gathered = self._gathered, []
        try:
            self._finish(gathered)
        except Exception as error:  # noqa: BLE001 - whoever runs next raises it
            self._failure = self._failure or error

    def _finish(self, answers: list[Answered]) -> None:
        """Keep the answers, judge them, make their rows, keep those and hand them on."""
        recorder = self._recorder
        if recorder is not None:
            for job, outcome in answers:
                if outcome.error is None:
                    recorder.keep_answer(job, outcome)
        judge, make = self._scorer.judge_at_once, self._maker.row
        judgements = [
            judge(job.item.example, outcome.processed, job.item.tag) if outcome.error is None else Judgement()
            for job, outcome in answers
        ]
        rows = [make(job, outcome, judgement) for (job, outcome), judgement in zip(answers, judgements)]
        if recorder is not None:
            for (job, outcome), judgement, row in zip(answers, judgements, rows):
                recorder.keep_row(job, row, final=outcome.error is None and not judgement.transient)
        for (job, outcome), row in zip(answers, rows):
            self._emit(job, row, outcome)

    # -- answers whose judging takes its time

    async def _judge(self, job: Job, outcome: Outcome) -> None:
        memory = None if self._recorder is None else self._recorder.memory(job, outcome.processed)
        example, tag = job.item.example, job.item.tag
        judgement = await self._scorer.judge(example, outcome.processed, tag, self._scoring, memory)
        row = self._maker.row(job, outcome, judgement)
        if self._recorder is not None:
            self._recorder.keep_row(job, row, final=not judgement.transient)
        self._emit(job, row, outcome)

    def _judged(self, task: asyncio.Task[None]) -> None:
        self._later.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error

    # -- the end

    async def drain(self) -> None:
        """Bring to its row what is still on its way there."""
        self._finish_gathered()
        while self._later:
            await asyncio.wait(self._later)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the scoring threads; what has been answered is kept all the same."""
        self._finish_gathered()
        for task in self._later:
            task.cancel()
        self._scoring.shutdown(cancel_futures=True)
