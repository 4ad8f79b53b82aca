"""The story of one example on one system: look it up, call the system, judge the answer, make the row, keep it.

An endpoint's next request does not wait for what is made of its last answer. Answers that are quickly judged are
completed in batches. Long texts and slow evaluators are worked on in threads, so that the event loop goes on listening
to servers: time that we take must not look like theirs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor

from context_bench.core.batch import MAX_BATCH, MAX_BATCH_DELAY, Batch
from context_bench.core.call import Outcome
from context_bench.core.free_memory import FreeMemory
from context_bench.core.judgement import Judgement
from context_bench.core.recorder import Recorder, ScoreMemory
from context_bench.core.row import Item, Job, RowMaker
from context_bench.core.schedule import Placement, SystemCaller
from context_bench.core.scoring import Scorer
from context_bench.core.threads import Threads, call_beside
from context_bench.errors import BadOutput, ContextBenchError, DataError, describe
from context_bench.monitors.budget import Budget
from context_bench.results import EvalRow
from context_bench.types import System
from context_bench.utils.tokens import LONG_TEXT, read_token_count

__all__ = ["Done", "Pipeline"]

Answered = tuple[Job, Outcome]
Done = tuple[Job, EvalRow, Outcome]
Emit = Callable[[list[Done]], None]

_LOOK_AGAIN = 0.1
"""Seconds at most until what quick systems returned is taken, while one of them takes its time."""

_KNOWN, _KNOWN_CONTEXT = Outcome(known=True), Outcome(returns="context", known=True)
"""The outcomes of rows that were found in the cache; shared, so never changed."""


_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")
"""The usage of an answer, which is kept also when the answer is of no use."""


class Pipeline:
    """Turns jobs into rows and hands them to `emit`, as many as there are at once.

    Args:
        scorer: Judges what systems return.
        maker: Makes the rows.
        emit: Takes finished rows.
        recorder: Finds and keeps results; None keeps nothing.
        placement: Says where systems and slow evaluators run.
        budget: Admits requests; None admits all.
        together: The most answers that are completed as a batch; with 1 each becomes a row before the next request of
            its worker is sent, unless that takes a slow evaluator.
    """

    def __init__(
        self,
        scorer: Scorer,
        maker: RowMaker,
        emit: Emit,
        recorder: Recorder | None,
        placement: Placement,
        *,
        budget: Budget | None = None,
        together: int = MAX_BATCH,
    ) -> None:
        self._budget = budget
        self._scorer, self._maker, self._emit, self._recorder = scorer, maker, emit, recorder
        self._placement = placement
        self._looks_up = recorder is not None and recorder.looks_up
        self._callers: dict[int, SystemCaller] = {}
        self._batch: Batch[Answered] = Batch(self._complete, self._fail, together)
        cores = os.cpu_count() or 1
        self._slow_threads = placement.open_scoring()
        self._count_threads = Threads(cores, "context-bench-count")
        self._long_threads = Threads(2, "context-bench-long")  # more would only compete for the interpreter
        self._memory = FreeMemory(self._long_threads)
        self._room = asyncio.Semaphore(placement.max_judging)
        self._later: set[asyncio.Task[None]] = set()
        self._work: asyncio.Future[None] | None = None
        self._failure: BaseException | None = None

    async def complete(self, work: Awaitable[None]) -> None:
        """Await the work on all jobs and the rows that are still being made; the first failure of our own ends it."""
        self._work = asyncio.ensure_future(work)
        try:
            await self._work
            self._batch.flush()
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
        """Return the jobs that must be done; the rows of the others are in the store, and are emitted from there."""
        recorder = self._recorder
        if recorder is None or not self._looks_up:
            return jobs
        rows = recorder.find_rows(jobs)
        known = [self._reuse_row(job, row, recorder) for job, row in zip(jobs, rows) if row is not None]
        if known:
            self._emit(known)
        if len(known) < len(jobs):
            recorder.prepare_for_misses()
        return [job for job, row in zip(jobs, rows) if row is None]

    def _reuse_row(self, job: Job, row: EvalRow, recorder: Recorder) -> Done:
        job.item.tokens = row.input_tokens
        self._maker.set_cluster(job, row.metadata)
        corrected = self._scorer.note_known(job.item, row)
        outcome = _KNOWN_CONTEXT if row.metadata.get("output") == "context" else _KNOWN
        if self._maker.price(job, row.metadata, row.upstream_tokens, failed=row.error is not None) or corrected:
            recorder.keep_row(job, outcome, row, final=False)  # it is found where it was found now
        else:
            recorder.copy_row(job)
        return job, row, outcome

    async def run(self, job: Job) -> Outcome | None:
        """Answer one job. Its row is made now, with its batch, or once slow evaluators have judged it.

        Returns:
            What the system said, if it was asked: the answer may be known, or the budget spent.
        """
        item = job.item
        if self._recorder is not None and self._recorder.store.is_behind:
            await self._recorder.store.catch_up()
        known = self._find_answer(job) if self._looks_up or item.fault is not None else None
        if known is not None:
            if job.order % MAX_BATCH == 0:
                await asyncio.sleep(0)  # there may be nothing to wait for, and Ctrl-C wants to be heard
            await self._take(job, known)
            return None
        if self._budget is None and not item.is_long:
            outcome: Outcome | None = await self._caller(job.system).call(item.example)
        else:
            outcome = await self._call(job)
        if outcome is None:
            return None
        if item.counting is None and not self._takes_long(job, outcome):
            self._take_quick(job, outcome)
        else:
            await self._take(job, outcome)
        return outcome

    async def run_here(self, jobs: Sequence[Job]) -> list[Job]:
        """Answer jobs of systems in this process, as many as fit into a moment; for runs without limits.

        To hand a call to a thread and its result back takes longer than many a system: several share that.

        Returns:
            The jobs that are left.
        """
        if self._recorder is not None and self._recorder.store.is_behind:
            await self._recorder.store.catch_up()
        known = [self._find_answer(job) for job in jobs]
        asked = [job for job, outcome in zip(jobs, known) if outcome is None]
        said: list[Outcome] = []
        calls = [(job.system, job.item.example) for job in asked]
        calling = asyncio.ensure_future(self._placement.call_several(calls, said))
        # One of them may take its time, or hang: what the others returned does not wait for it.
        fresh = [(job, outcome) for job, outcome in zip(jobs, known) if outcome is not None]
        taken, pause = 0, MAX_BATCH_DELAY
        while True:
            await asyncio.wait((calling,), timeout=pause)
            over = calling.done()
            answers = list(zip(asked, said))
            fresh += answers[taken:]
            for first in range(0, len(fresh), MAX_BATCH):
                if first:
                    await asyncio.sleep(0)  # a task of a cluster may bring thousands
                    if self._recorder is not None:
                        await self._recorder.store.catch_up()
                await self._take_several(fresh[first : first + MAX_BATCH])
            fresh, taken, pause = [], len(answers), min(2 * pause, _LOOK_AGAIN)
            if over:
                break
        await calling
        return asked[len(said) :]

    async def _take_several(self, answers: Sequence[Answered]) -> None:
        quick = [(job, outcome) for job, outcome in answers if not self._takes_long(job, outcome)]
        self._complete(quick)
        if len(quick) < len(answers):
            for job, outcome in answers:
                if self._takes_long(job, outcome):
                    await self._take(job, outcome)

    def _find_answer(self, job: Job) -> Outcome | None:
        """Return the outcome of a job that needs no call: its answer is known, or it cannot be sent."""
        known = self._recorder.find_answer(job) if self._looks_up and self._recorder is not None else None
        if known is None and job.item.fault is not None:
            return Outcome(error=describe(DataError(f"the example cannot be sent: {job.item.fault}")))
        return known

    async def _call(self, job: Job) -> Outcome | None:
        """Call the system of a job; None when the budget is spent."""
        if self._budget is not None and not await self._budget.reserve(job, self._long_threads):
            return None
        item, caller = job.item, self._caller(job.system)
        if item.is_long and item.tokens is None and item.counting is None and caller.works_elsewhere:
            item.counting = self._count_threads.submit(self._count, item)  # while the request is under way
        outcome = await caller.call(item.example)
        if self._budget is not None:
            await self._budget.settle(job, outcome, self._long_threads)
        return outcome

    def _caller(self, system: System) -> SystemCaller:
        """Return what calls a system, which is made once."""
        caller = self._callers.get(id(system))
        if caller is None:
            caller = self._callers[id(system)] = self._placement.make_caller(system)
        return caller

    def _count(self, item: Item) -> None:
        """Start counting the tokens and the digests of a long example in a thread, while its system is called."""
        self._maker.count_input(item)
        if self._recorder is not None:
            self._recorder.digest(item)

    async def _take(self, job: Job, outcome: Outcome) -> None:
        """Make the row of an answer: with its batch, at once, or in a thread."""
        counting = job.item.counting
        if counting is not None and not counting.done():
            await asyncio.wrap_future(counting)
        if self._takes_long(job, outcome):
            await self._judge_beside(job, outcome)
        else:
            self._take_quick(job, outcome)

    def _take_quick(self, job: Job, outcome: Outcome) -> None:
        """Complete an answer that is quickly judged, with its batch or at once."""
        if self._batch.limit > 1 and self._caller(job.system).works_elsewhere:
            self._batch.add((job, outcome))
        else:  # scoring must not compete with a system in this process, nor a limit wait for a batch
            self._complete([(job, outcome)])

    def _takes_long(self, job: Job, outcome: Outcome) -> bool:
        if outcome.error is not None:
            return False
        return _is_long(job, outcome) or (job.item.wiring or self._scorer.wire(job.item)).slow

    # -- answers that are judged at once

    def _complete(self, answers: list[Answered]) -> None:
        """Judge the answers, make their rows, keep both and hand the rows on.

        Each step is done for all of them before the next one, which costs half as much.
        """
        judge, make = self._scorer.judge_at_once, self._maker.row
        judgements: list[Judgement] = []
        failure: ContextBenchError | None = None
        for job, outcome in answers:
            try:
                judged = judge(job.item, outcome.processed, outcome.metadata) if outcome.error is None else None
            except ContextBenchError as error:  # it ends the run; what was judged before it is kept
                failure = error
                break
            judgements.append(judged or Judgement())
        rows = [make(job, outcome, judgement) for (job, outcome), judgement in zip(answers, judgements)]
        if self._recorder is not None:
            rows = [
                self._keep(self._recorder, job, outcome, row, final=not judgement.transient)
                for (job, outcome), judgement, row in zip(answers, judgements, rows)
            ]
            for job, outcome in answers[len(rows) :]:  # they are paid for, though nobody judged them
                self._keep_answer(job, outcome)
        self._emit([(job, row, outcome) for (job, outcome), row in zip(answers, rows)])
        if failure is not None:
            raise failure

    def _keep(self, recorder: Recorder, job: Job, outcome: Outcome, row: EvalRow, *, final: bool) -> EvalRow:
        """Store a row with its answer, and return the row; an answer that cannot be stored makes it an error."""
        try:
            recorder.keep_row(job, outcome, row, final=final and outcome.error is None)
        except (TypeError, ValueError, RecursionError) as error:
            if outcome.error is not None:
                raise
            _refuse(job, outcome, error)
            row = self._maker.row(job, outcome, Judgement())
            recorder.keep_row(job, outcome, row, final=False)
        return row

    def _keep_answer(self, job: Job, outcome: Outcome) -> bool:
        """Store an answer before it is judged; False if it cannot be stored."""
        if self._recorder is None or outcome.error is not None:
            return True
        try:
            self._recorder.keep_answer(job, outcome)
            return True
        except (TypeError, ValueError, RecursionError) as error:
            _refuse(job, outcome, error)
            return False

    # -- answers whose judging takes its time

    async def _judge_beside(self, job: Job, outcome: Outcome) -> None:
        """Judge an answer in a thread; the next request of an endpoint does not wait for that."""
        long = self._long_threads if _is_long(job, outcome) else None
        if not await call_beside(long, self._keep_answer, job, outcome):
            self._complete([(job, outcome)])
        elif not self._caller(job.system).works_elsewhere:
            await self._judge(job, outcome, long)
        else:
            await self._room.acquire()
            task = asyncio.ensure_future(self._judge(job, outcome, long))
            self._later.add(task)
            task.add_done_callback(self._end_judging)

    async def _judge(self, job: Job, outcome: Outcome, long: Executor | None) -> None:
        memory = await call_beside(long, self._open_memory, job, outcome)
        judgement = await self._scorer.judge(
            *(job.item, outcome.processed, self._slow_threads, memory, long, self._budget), metadata=outcome.metadata
        )
        row = await call_beside(long, self._maker.row, job, outcome, judgement)
        if self._recorder is not None:
            self._recorder.keep_row(job, outcome, row, final=not judgement.transient)
        self._emit([(job, row, outcome)])
        self._memory.note_text(outcome.processed.get("response") or "")

    def _open_memory(self, job: Job, outcome: Outcome) -> ScoreMemory | None:
        slow = self._scorer.wire(job.item).slow
        return self._recorder.memory(job, outcome.processed) if slow and self._recorder is not None else None

    def _end_judging(self, task: asyncio.Task[None]) -> None:
        """Make room for the next answer that is judged beside; an error of our own ends the run."""
        self._later.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def close(self) -> None:
        """End the threads; what has been answered is kept all the same."""
        self._batch.close()
        for task in self._later:
            task.cancel()
        for threads in (self._slow_threads, self._count_threads, self._long_threads):
            threads.shutdown(cancel_futures=True)
        self._memory.close()


def _refuse(job: Job, outcome: Outcome, error: Exception) -> None:
    """Make an answer that cannot be written down an error; what it has cost is still said."""
    counts = {key: read_token_count(outcome.metadata.get(key)) for key in _COUNTS}
    outcome.processed, outcome.metadata = {}, {key: count for key, count in counts.items() if count is not None}
    outcome.error = describe(BadOutput(f"{job.system.name}: what it returned cannot be written down ({error})"))


def _is_long(job: Job, outcome: Outcome) -> bool:
    """Whether the texts that are judged, counted and packed for a row are so long that a thread should do it."""
    processed = outcome.processed
    if len(processed.get("response") or "") >= LONG_TEXT:
        return True
    return job.item.is_long and (outcome.returns == "context" or "tapped" in processed)
