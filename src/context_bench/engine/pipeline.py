"""One job to one row: known already, or else called, judged and kept.

An endpoint's next request does not wait for what is made of its last answer. Answers that are quickly judged are
gathered for a moment and brought to their rows together, stage by stage: that costs half of what it costs one by one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from context_bench.engine.budget import Budget
from context_bench.engine.call import Outcome, call_system, is_endpoint
from context_bench.engine.jobs import Job
from context_bench.engine.recorder import Recorder
from context_bench.engine.rows import RowMaker
from context_bench.engine.scoring import Judgement, Scorer
from context_bench.engine.threads import Threads
from context_bench.errors import BadOutput, DataError, describe
from context_bench.results import EvalRow
from context_bench.utils.tokens import read_token_count

__all__ = ["Done", "Pipeline"]

Answered = tuple[Job, Outcome]
Done = tuple[Job, EvalRow, Outcome]
Emit = Callable[[list[Done]], None]

_TOGETHER = 64
_AT_THE_LATEST = 0.01
"""Seconds: an answer is on disk within 50 ms, and what writes it down takes a part of that."""

_HOLD = 0.003
"""Seconds that the event loop is held for what was gathered: replies that come in meanwhile wait, and look slow."""

_KNOWN, _KNOWN_CONTEXT = Outcome(known=True), Outcome(returns="context", known=True)
"""What is said of a row that was found; only to be read."""


_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")
"""What an answer has cost, also when it is of no use."""


class Pipeline:
    """Turns jobs into rows and hands them to `emit`, as many as there are at once.

    Args:
        scorer: Judges what systems return.
        maker: Makes the rows.
        emit: Takes finished rows.
        recorder: Finds and keeps results; None keeps nothing.
        threads: For systems that are not asynchronous.
        budget: Admits requests; None admits all.
        together: The most answers that are gathered; with 1 each is brought to its row before the next request of
            its worker is sent, unless that takes a slow evaluator.
    """

    def __init__(
        self,
        scorer: Scorer,
        maker: RowMaker,
        emit: Emit,
        recorder: Recorder | None,
        threads: Executor,
        *,
        budget: Budget | None = None,
        together: int = _TOGETHER,
    ) -> None:
        self._budget = budget
        self._scorer, self._maker, self._emit, self._recorder = scorer, maker, emit, recorder
        self._threads = threads
        self._most = min(together, _TOGETHER)
        self._together = 1
        cores = os.cpu_count() or 1
        self._scoring = Threads(cores, "context-bench-score")
        self._room = asyncio.Semaphore(8 * cores)
        self._later: set[asyncio.Task[None]] = set()
        self._gathered: list[Answered] = []
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None

    async def complete(self, work: Awaitable[None]) -> None:
        """See the work on all jobs through, until everything is a row; the first failure ends it."""
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
            self._finish_gathered()
            while self._later and self._failure is None:
                await asyncio.wait(self._later)
        except asyncio.CancelledError:
            if self._failure is None:
                raise
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        if self._work is not None:
            self._work.cancel()

    def screen(self, jobs: list[Job]) -> list[Job]:
        """The jobs that are left to do; of the others the row is known, and taken over."""
        recorder = self._recorder
        if recorder is None:
            return jobs
        recorder.set_keys(jobs)
        rows = recorder.known_rows(jobs)
        known = [self._taken_over(job, row, recorder) for job, row in zip(jobs, rows) if row is not None]
        if known:
            self._emit(known)
        if len(known) < len(jobs):
            recorder.settle()
        return [job for job, row in zip(jobs, rows) if row is None]

    def _taken_over(self, job: Job, row: EvalRow, recorder: Recorder) -> Done:
        job.item.tokens = row.input_tokens
        self._scorer.note_known(job.item.tag, job.item.example, row.scores, row.unscored)
        if self._maker.price(job, row.metadata, row.upstream_tokens, failed=row.error is not None):
            recorder.keep_row(job, row, final=False)  # it is found where it was found now
        else:
            recorder.keep_known(job)
        return job, row, _KNOWN_CONTEXT if row.metadata.get("output") == "context" else _KNOWN

    async def run(self, job: Job) -> Outcome | None:
        """Bring one job to its row, or so far that it comes to it by itself.

        Returns:
            What the system said, if it was asked: the answer may be known, or the budget spent.
        """
        outcome = self._recorder.known_answer(job) if self._recorder is not None else None
        if outcome is not None:
            if job.order % _TOGETHER == 0:
                await asyncio.sleep(0)  # there may be nothing to wait for, and Ctrl-C wants to be heard
            await self._take(job, outcome)
            return None
        if job.item.fault is not None:
            await self._take(job, Outcome(error=describe(DataError(f"the example cannot be sent: {job.item.fault}"))))
            return None
        if self._budget is not None and not await self._budget.reserve(job):
            return None
        outcome = await call_system(job.system, job.item.example, self._threads)
        if self._budget is not None:
            self._budget.land(job, outcome)
        await self._take(job, outcome)
        return outcome

    async def _take(self, job: Job, outcome: Outcome) -> None:
        """Bring an answer to its row, at once or together with others."""
        if outcome.error is not None or not self._scorer.wiring(job.item.tag, job.item.example).slow:
            if self._most == 1 or not is_endpoint(job.system):
                self._finish([(job, outcome)])
            else:
                self._gather((job, outcome))
            return
        if not self._keep_answer(job, outcome):
            self._finish([(job, outcome)])
            return
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
        if len(self._gathered) >= self._together:
            self._finish_gathered()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_AT_THE_LATEST, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self._finish_gathered()

    def _finish_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        if not gathered:
            return
        started = time.perf_counter()
        try:
            self._finish(gathered)
        except Exception as error:  # noqa: BLE001 - `complete` raises it
            self._fail(error)
        else:
            each = max((time.perf_counter() - started) / len(gathered), 1e-6)
            self._together = max(1, min(self._most, int(_HOLD / each)))

    def _finish(self, answers: list[Answered]) -> None:
        """Keep the answers, judge them, make their rows, keep those and hand them on."""
        recorder = self._recorder
        for job, outcome in answers:
            self._keep_answer(job, outcome)
        judge, make = self._scorer.judge_at_once, self._maker.row
        judgements = [
            judge(job.item.example, outcome.processed, job.item.tag) if outcome.error is None else Judgement()
            for job, outcome in answers
        ]
        rows = [make(job, outcome, judgement) for (job, outcome), judgement in zip(answers, judgements)]
        if recorder is not None:
            for (job, outcome), judgement, row in zip(answers, judgements, rows):
                recorder.keep_row(job, row, final=outcome.error is None and not judgement.transient)
        self._emit([(job, row, outcome) for (job, outcome), row in zip(answers, rows)])

    def _keep_answer(self, job: Job, outcome: Outcome) -> bool:
        """Put an answer down; False for one that cannot be, which is an error of that row and of no other."""
        if self._recorder is None or outcome.error is not None:
            return True
        try:
            self._recorder.keep_answer(job, outcome)
            return True
        except (TypeError, ValueError, RecursionError) as error:
            counts = {key: read_token_count(outcome.metadata.get(key)) for key in _COUNTS}
            outcome.processed, outcome.metadata = {}, {key: count for key, count in counts.items() if count is not None}
            outcome.error = describe(BadOutput(f"{job.system.name}: what it returned cannot be written down ({error})"))
            return False

    # -- answers whose judging takes its time

    async def _judge(self, job: Job, outcome: Outcome) -> None:
        memory = None if self._recorder is None else self._recorder.memory(job, outcome.processed)
        example, tag = job.item.example, job.item.tag
        judgement = await self._scorer.judge(example, outcome.processed, tag, self._scoring, memory)
        row = self._maker.row(job, outcome, judgement)
        if self._recorder is not None:
            self._recorder.keep_row(job, row, final=not judgement.transient)
        self._emit([(job, row, outcome)])

    def _judged(self, task: asyncio.Task[None]) -> None:
        self._later.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def close(self) -> None:
        """End the scoring threads; what has been answered is kept all the same."""
        self._finish_gathered()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._later:
            task.cancel()
        self._scoring.shutdown(cancel_futures=True)
