"""From job to row: look it up, call the system, judge the answer, make the row, keep it.

`Pipeline.run` has these steps in order. An endpoint's next request does not wait for the last answer's row: answers
that are judged quickly are completed in batches. Threads handle long texts and slow evaluators, so the event loop can
always receive replies: our own time must not count as a server's latency.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

from context_bench.core.cache import Cache, ScoreMemory
from context_bench.core.call import Outcome, Stopped
from context_bench.core.examples import Item
from context_bench.core.judge import Judgement, Scorer, Spending
from context_bench.core.row import Job, RowMaker
from context_bench.core.schedule import Placement
from context_bench.core.threads import FreeMemory, Threads, call_beside, find_failure, give_up
from context_bench.errors import BadOutput, ContextBenchError, DataError, describe
from context_bench.monitors.monitor import Monitor
from context_bench.results import EvalRow
from context_bench.utils.tokens import LONG_TEXT, read_token_count

MAX_BATCH = 64

MAX_BATCH_DELAY = 0.01  # seconds to wait for a full batch; the writer has the rest of the 50 ms

MAX_LOOP_BLOCK = 0.003
"""Seconds for which a batch may block the event loop: replies that arrive during this time look slow."""

Answered = tuple[Job, Outcome]
Done = tuple[Job, EvalRow, Outcome]
Emit = Callable[[list[Done]], None]


class Batch:
    """Collects items until there are enough, or the first has waited long enough.

    The number depends on the time that the last batch took. With a `limit` of 1, nothing is collected.
    """

    def __init__(
        self, complete: Callable[[list[Answered]], None], fail: Callable[[BaseException], None], limit: int = MAX_BATCH
    ) -> None:
        self._complete, self._fail = complete, fail
        self.limit = min(limit, MAX_BATCH)
        self._enough = 1
        self._items: list[Answered] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, item: Answered) -> None:
        """Add one item, which may complete the batch."""
        self._items.append(item)
        if len(self._items) >= self._enough:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MAX_BATCH_DELAY, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Complete the items collected so far."""
        items, self._items = self._items, []
        if not items:
            return
        started = time.perf_counter()
        try:
            self._complete(items)
        except Exception as error:  # noqa: BLE001 - raised where the end of all work is awaited
            self._fail(error)
        else:
            each = max((time.perf_counter() - started) / len(items), 1e-6)
            self._enough = max(1, min(self.limit, int(MAX_LOOP_BLOCK / each)))

    def close(self) -> None:
        """Complete the remaining items."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()


_POLL_SECONDS = 0.1  # most seconds until outcomes of quick systems are taken while another system is slow

_KNOWN, _KNOWN_CONTEXT = Outcome(known=True), Outcome(returns="context", known=True)
"""The outcomes of cached rows; shared, so never changed."""

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")
"""Usage metadata, which is kept even if the answer is unusable."""


class Pipeline:
    """Turns jobs into rows and passes finished rows to `emit`, several at a time.

    `threads` are for long texts. At most `together` answers are completed as a batch. With 1, each answer becomes a row
    before its worker sends the next request, unless its texts are long or an evaluator is slow.
    """

    def __init__(
        self,
        scorer: Scorer,
        maker: RowMaker,
        emit: Emit,
        cache: Cache | None,
        placement: Placement,
        threads: Threads,
        *,
        guards: Sequence[Monitor] = (),
        spending: Spending | None = None,
        together: int = MAX_BATCH,
    ) -> None:
        self._scorer, self._maker, self._emit, self._cache = scorer, maker, emit, cache
        self._placement, self._guards, self._spending = placement, tuple(guards), spending
        self._looks_up = cache is not None and cache.looks_up
        self._callers = {
            id(system): placement.make_caller(system) for lane in placement.lanes for _, system in lane.systems
        }
        self._batch: Batch = Batch(self._complete, self._fail, together)
        self._slow_threads = placement.open_scoring()
        self._count_threads = ThreadPoolExecutor(os.cpu_count() or 1, "context-bench-count")
        self._long_threads = threads
        self._memory = FreeMemory(threads)
        self._room = asyncio.Semaphore(placement.max_judging)
        self._later: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        # called with our own first failure, which ends the run
        self.fail: Callable[[BaseException], None] = lambda _: None

    async def drain(self) -> None:
        """Wait for unfinished rows after the last request."""
        self._batch.flush()
        while self._later and self._failure is None:
            await asyncio.wait(self._later)
        if self._failure is not None:
            raise self._failure

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self.fail(self._failure)

    def screen(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs that must be done; emit the stored rows of the others."""
        cache = self._cache
        if cache is None or not self._looks_up:
            return jobs
        rows = cache.find_rows(jobs)
        known = [self._reuse_row(job, row, cache) for job, row in zip(jobs, rows) if row is not None]
        if known:
            self._emit(known)
        if len(known) < len(jobs):
            cache.prepare_for_misses()
        return [job for job, row in zip(jobs, rows) if row is None]

    def _reuse_row(self, job: Job, row: EvalRow, cache: Cache) -> Done:
        job.item.tokens, row.meta = row.input_tokens, job.item.example.get("meta")
        self._maker.set_cluster(job, row.metadata)
        corrected = self._scorer.note_known(job.item, row)
        outcome = _KNOWN_CONTEXT if row.metadata.get("output") == "context" else _KNOWN
        if self._maker.price(job, row.metadata, row.upstream_tokens, failed=row.error is not None) or corrected:
            cache.keep_row(
                job, outcome, row, final=False
            )  # its key points to the earlier row: store the copy without a key
        else:
            cache.copy_row(job)
        return job, row, outcome

    async def run(self, job: Job) -> None:
        """Answer one job. Its row is made at once, in a batch, or after slow evaluators have judged it."""
        item, cache = job.item, self._cache
        if cache is not None and cache.store.is_behind:
            await cache.store.catch_up()
        caller = self._callers[id(job.system)]
        outcome = self._find_answer(job) if self._looks_up or item.fault is not None else None
        if outcome is None:
            guards = self._guards
            if guards and not await self._admit(job, guards):
                return
            if item.is_long and item.tokens is None and item.counting is None and caller.works_elsewhere:
                item.counting = self._count_threads.submit(self._count, item)
            outcome = await caller.call(item.example)
            ended = not isinstance(outcome.cause, Stopped)
            for guard in guards:
                await guard.settle(job, outcome if ended else None)
            if not ended:
                return
            for guard in guards:
                if guard.done:
                    self._guards = tuple(each for each in self._guards if each is not guard)
        elif job.order % MAX_BATCH == 0:
            await asyncio.sleep(0)  # if nothing else waits, Ctrl-C still needs a turn
        if item.counting is not None and not item.counting.done():
            await asyncio.wrap_future(item.counting)
        if self._takes_long(job, outcome):
            await self._judge_beside(job, outcome)
        elif self._batch.limit > 1 and caller.works_elsewhere:
            self._batch.add((job, outcome))
        else:  # scoring must not compete with a system in this process, and limits must not wait for a batch
            self._complete([(job, outcome)])

    @staticmethod
    async def _admit(job: Job, guards: Sequence[Monitor]) -> bool:
        """Ask all guards to admit a job; if one refuses, tell those before it that nothing was sent."""
        for place, guard in enumerate(guards):
            if not await guard.admit(job):
                for other in guards[:place]:
                    await other.settle(job, None)
                return False
        return True

    async def run_here(self, jobs: Sequence[Job]) -> list[Job]:
        """Answer a batch of jobs of systems in this process; for runs without limits.

        Handing a call to a thread often takes longer than the call, so several calls share that cost.

        Returns:
            The jobs that were not started.
        """
        cache = self._cache
        if cache is not None and cache.store.is_behind:
            await cache.store.catch_up()
        known = [self._find_answer(job) for job in jobs]
        asked = [job for job, outcome in zip(jobs, known) if outcome is None]
        said: list[Outcome] = []
        calls = [(job.system, job.item.example) for job in asked]
        calling = asyncio.ensure_future(self._placement.call_several(calls, said))
        # One system may be slow or hang: the others' outcomes do not wait for it.
        fresh = [(job, outcome) for job, outcome in zip(jobs, known) if outcome is not None]
        taken, pause = 0, MAX_BATCH_DELAY
        while True:
            await asyncio.wait((calling,), timeout=pause)
            over = calling.done()
            answers = list(zip(asked, said))
            fresh += answers[taken:]
            for first in range(0, len(fresh), MAX_BATCH):
                if first:
                    await asyncio.sleep(0)  # a task of a cluster may return thousands
                    if cache is not None and cache.store.is_behind:
                        await cache.store.catch_up()
                await self._take_several(fresh[first : first + MAX_BATCH])
            fresh, taken, pause = [], len(answers), min(2 * pause, _POLL_SECONDS)
            if over:
                break
        await calling
        return asked[len(said) :]

    async def _take_several(self, answers: Sequence[Answered]) -> None:
        long = [self._takes_long(job, outcome) for job, outcome in answers]
        self._complete([answer for answer, is_long in zip(answers, long) if not is_long])
        for (job, outcome), is_long in zip(answers, long):
            if is_long:
                if job.item.counting is not None:
                    await asyncio.wrap_future(job.item.counting)
                await self._judge_beside(job, outcome)

    def _find_answer(self, job: Job) -> Outcome | None:
        """Return the outcome of a job without a call: its answer is stored, or it cannot be sent."""
        known = self._cache.find_answer(job) if self._looks_up and self._cache is not None else None
        if known is None and job.item.fault is not None:
            return Outcome(error=describe(DataError(f"the example cannot be sent: {job.item.fault}")))
        return known

    def _count(self, item: Item) -> None:
        """Count the tokens and digests of a long example in a thread during its request."""
        self._maker.count_input(item)
        if self._cache is not None:
            self._cache.digest(item)

    def _takes_long(self, job: Job, outcome: Outcome) -> bool:
        if outcome.error is not None:
            return False
        return _is_long(job, outcome) or (job.item.wiring or self._scorer.wire(job.item)).slow

    # -- answers that are judged at once

    def _complete(self, answers: list[Answered]) -> None:
        """Judge the answers, make their rows, keep both and emit the rows.

        Each step handles all answers before the next step begins: this halves the time.
        """
        judge, make = self._scorer.judge_at_once, self._maker.row
        judgements: list[Judgement] = []
        failure: ContextBenchError | None = None
        for job, outcome in answers:
            try:
                judged = judge(job.item, outcome.processed, outcome.metadata) if outcome.error is None else None
            except ContextBenchError as error:  # ends the run; rows judged before are kept
                failure = error
                break
            judgements.append(judged or Judgement())
        rows = [make(job, outcome, judgement) for (job, outcome), judgement in zip(answers, judgements)]
        if self._cache is not None:
            rows = [
                self._keep(self._cache, job, outcome, row, final=not judgement.transient)
                for (job, outcome), judgement, row in zip(answers, judgements, rows)
            ]
            for job, outcome in answers[len(rows) :]:  # they are paid for, though not judged
                self._keep_answer(job, outcome)
        self._emit([(job, row, outcome) for (job, outcome), row in zip(answers, rows)])
        if failure is not None:
            raise failure

    def _keep(self, cache: Cache, job: Job, outcome: Outcome, row: EvalRow, *, final: bool) -> EvalRow:
        """Store a row with its answer, and return it; if the answer cannot be stored, the row is an error."""
        try:
            cache.keep_row(job, outcome, row, final=final and outcome.error is None)
        except (TypeError, ValueError, RecursionError) as error:
            if outcome.error is not None:
                raise
            _refuse(job, outcome, error)
            row = self._maker.row(job, outcome, Judgement())
            cache.keep_row(job, outcome, row, final=False)
        return row

    def _keep_answer(self, job: Job, outcome: Outcome) -> bool:
        """Store an answer before it is judged; False if it cannot be stored."""
        if self._cache is None or outcome.error is not None:
            return True
        try:
            self._cache.keep_answer(job, outcome)
            return True
        except (TypeError, ValueError, RecursionError) as error:
            _refuse(job, outcome, error)
            return False

    # -- answers whose judging takes its time

    async def _judge_beside(self, job: Job, outcome: Outcome) -> None:
        """Judge an answer in a thread; the endpoint's next request does not wait for it."""
        long = self._long_threads if _is_long(job, outcome) else None
        if not await call_beside(long, self._keep_answer, job, outcome):
            self._complete([(job, outcome)])
        elif not self._callers[id(job.system)].works_elsewhere:
            await self._judge(job, outcome, long)
        else:
            await self._room.acquire()
            task = asyncio.ensure_future(self._judge(job, outcome, long))
            self._later.add(task)
            task.add_done_callback(self._end_judging)

    async def _judge(self, job: Job, outcome: Outcome, long: Executor | None) -> None:
        memory = await call_beside(long, self._open_memory, job, outcome)
        judgement = await self._scorer.judge(
            *(job.item, outcome.processed, self._slow_threads, memory, long, self._spending), metadata=outcome.metadata
        )
        row = await call_beside(long, self._maker.row, job, outcome, judgement)
        if self._cache is not None:
            self._cache.keep_row(job, outcome, row, final=not judgement.transient)
        self._emit([(job, row, outcome)])
        self._memory.note_text(outcome.processed.get("response") or "")

    def _open_memory(self, job: Job, outcome: Outcome) -> ScoreMemory | None:
        slow = self._scorer.wire(job.item).slow
        return self._cache.memory(job, outcome.processed) if slow and self._cache is not None else None

    def _end_judging(self, task: asyncio.Task[None]) -> None:
        """Release the slot of an answer judged in a thread; an error of our own ends the run."""
        self._later.discard(task)
        self._room.release()
        if (error := find_failure(task)) is not None:
            self._fail(error)

    def close(self) -> None:
        """End the threads; all answers are kept."""
        self._batch.close()
        give_up(self._later)
        for threads in (self._slow_threads, self._count_threads):
            threads.shutdown(wait=False, cancel_futures=True)
        self._memory.close()


def _refuse(job: Job, outcome: Outcome, error: Exception) -> None:
    """Turn an answer that cannot be stored into an error that keeps its cost."""
    counts = {key: read_token_count(outcome.metadata.get(key)) for key in _COUNTS}
    outcome.processed, outcome.metadata = {}, {key: count for key, count in counts.items() if count is not None}
    outcome.error = describe(BadOutput(f"{job.system.name}: its result cannot be stored ({error})"))


def _is_long(job: Job, outcome: Outcome) -> bool:
    """Whether a row's texts are so long that a thread should judge, count and pack them."""
    processed = outcome.processed
    if len(processed.get("response") or "") >= LONG_TEXT:
        return True
    return job.item.is_long and (outcome.returns == "context" or "tapped" in processed)
