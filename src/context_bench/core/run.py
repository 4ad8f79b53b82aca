"""A run under way: its lanes, its rows, its clock, and the ways in which it may be stopped."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from context_bench.compare.pairing import is_unread_row, read_value
from context_bench.compare.verdicts import choose_baseline
from context_bench.core.call import Outcome
from context_bench.core.finish import finish_parts, prepare_parts
from context_bench.core.pipeline import Done, Pipeline
from context_bench.core.recorder import Recorder
from context_bench.core.row import Job, RowMaker
from context_bench.core.schedule import Engine, Feed, LocalEngine, run_lanes
from context_bench.core.scoring import Scorer
from context_bench.core.tracebacks import find_bug
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from context_bench.monitors.budget import Budget
from context_bench.monitors.limits import Limits
from context_bench.monitors.looks import Decisions, LookOrder
from context_bench.monitors.preflight import Preflight
from context_bench.monitors.progress import Progress
from context_bench.pricing import Prices
from context_bench.results import EvalRow
from context_bench.stats import DEFAULT_MARGIN
from context_bench.summary import Summarizer, Summary
from context_bench.tallies import is_built_in
from context_bench.text.golds import has_gold
from context_bench.types import Example, Metric, System
from context_bench.utils.tokens import Tokenizer

__all__ = ["Plan", "Run"]

_COLLECT_AFTER = 10_000
"""New containers between two looks for cycles."""

_SUMMED_TOGETHER = 256
"""Rows that are handed to the metrics at once."""

_TERM_GRACE = 5.0
"""Seconds between SIGTERM and the end of what is in flight."""


@dataclass
class Plan:
    """Everything that a run needs, checked and ready."""

    systems: list[System]
    scorer: Scorer
    metrics: Sequence[Metric]
    score_field: str
    count: Tokenizer
    text_fields: Sequence[str] | None = None
    repeats: int = 1
    max_workers: int | None = None
    keep_rows: bool = True
    limits: Limits = field(default_factory=Limits)
    prices: Prices | None = None
    progress: Progress = field(default_factory=lambda: Progress(None, False))
    expected: int | None = None
    debug: bool = False
    preflight: bool = True
    name_samples: Callable[[Mapping[str, int]], dict[str, str]] = lambda counts: dict.fromkeys(counts, "all")
    """Says how the examples of each dataset were chosen, given how many were read."""
    baseline: str | None = None
    margin: float | None = None
    fixed_groups: bool = False
    controls: Sequence[str] = ()
    twin: str | None = None
    engine: Engine = field(default_factory=LocalEngine)
    order: LookOrder | None = None
    """Stops each system when its verdict is settled, by looks at the examples in this order."""

    def list_competing(self) -> tuple[str | None, list[str]]:
        """Give the baseline, and the systems that are held against it and compete."""
        names = [each.name for each in self.systems if each.name != self.twin]
        baseline = choose_baseline(names, self.baseline, self.controls)
        return baseline, [name for name in names if name not in self.controls and name != baseline]


class Run:
    """Runs every system on the examples, and keeps the rows.

    After `execute`: `rows` in order, `tags` with the number of examples of each dataset, `gold` (whether they have
    anything to be scored against), `returns` (what each system puts out), `unread` (systems whose contexts no model has
    read), `seconds` of each system, `error` of the input, `failure` of the run itself, `stopped` with the reason when
    it did not come to its end, and `stopped_systems` with the reason for each system that alone did not.
    """

    def __init__(self, plan: Plan, recorder: Recorder | None = None) -> None:
        self._plan, self._recorder = plan, recorder
        self._limited = plan.limits.given
        self._rows: dict[int, EvalRow] = {}
        self._spans: dict[str, list[float]] = {}
        self._feed: Feed | None = None
        self._task: asyncio.Task[Any] | None = None
        self._budget: Budget | None = None
        self._preflight: Preflight | None = None
        self._summarizer = Summarizer(
            [each.name for each in plan.systems],
            plan.metrics,
            plan.score_field,
            baseline=plan.baseline,
            controls=plan.controls,
            repeats=plan.repeats,
            twin=plan.twin,
        )
        self._width = len(plan.systems) * plan.repeats
        self._row_counts: Counter[str] = Counter()
        self._decisions = self._start_decisions()
        self.tags: dict[str, int] = {}
        self.gold: dict[str, bool] = {}
        self.returns: dict[str, str] = {}
        self.unread: set[str] = set()
        self.reused = 0
        self.error: BaseException | None = None
        self.failure: Exception | None = None
        self.bug: BaseException | None = None
        self.stopped: str | None = None
        self.interrupted = self._prepared = False
        self._shows_progress = plan.progress.on
        # A metric of a user's gets each row as it comes: if it fails, the run ends before more is paid for.
        self._sums_up_at_end = plan.keep_rows and all(map(is_built_in, plan.metrics))

    @property
    def rows(self) -> list[EvalRow]:
        """The rows so far, in the order of the examples and, for each, of the systems."""
        return [self._rows[place] for place in sorted(self._rows)]

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds from the first start to the last return, for each system."""
        return {each.name: self._span(each.name) for each in self._plan.systems}

    def _span(self, name: str) -> float:
        first, last = self._spans.get(name, (0.0, 0.0))
        return last - first

    def _stretch(self, name: str, outcome: Outcome) -> None:
        span = self._spans.get(name)
        if span is None:
            span = self._spans[name] = [outcome.started, outcome.ended]
        if outcome.started < span[0]:
            span[0] = outcome.started
        if outcome.ended > span[1]:
            span[1] = outcome.ended

    def _start_decisions(self) -> Decisions | None:
        """Start to look at the rows, where systems stop when their verdict is settled."""
        plan = self._plan
        baseline, competing = plan.list_competing()
        if plan.order is None or baseline is None:
            return None
        return Decisions(
            plan.order,
            competing,
            baseline,
            read_value("score", plan.score_field, 0.0),
            margin=DEFAULT_MARGIN if plan.margin is None else plan.margin,
            repeats=plan.repeats,
            fixed_groups=plan.fixed_groups,
            keep_apart=plan.score_field == "score",
            stop=self._drop,
            stop_all=self._end,
        )

    def _drop(self, name: str) -> None:
        for system in self._plan.systems:
            if system.name == name and self._feed is not None:
                self._feed.drop(system)

    def _drop_failed(self, system: System) -> None:
        """Send nothing more to a system that does not work."""
        self._drop(system.name)
        if self._decisions is not None:
            self._decisions.close(system.name)

    def _end(self) -> None:
        """Start nothing more."""
        if self._feed is not None:
            self._feed.stop()
        if self._preflight is not None:
            self._preflight.end()

    def describe_looks(self) -> dict[str, Any]:
        """Describe the looks that were taken, for the record; nothing where none were."""
        if self._decisions is None:
            return {}
        counts = {each.name: -(-self._row_counts[each.name] // self._plan.repeats) for each in self._plan.systems}
        return {"looks": self._decisions.describe(counts, self.stopped_systems)}

    @property
    def stopped_systems(self) -> dict[str, str]:
        """Systems that were stopped after their first request, and why."""
        return self._preflight.stopped if self._preflight is not None else {}

    def summarize(self, config: Mapping[str, Any]) -> Summary:
        """Compute the summary. Rows are added in their order, so that which came in first changes no number."""
        rows = iter(self.rows if self._sums_up_at_end else ())
        while some := list(islice(rows, _SUMMED_TOGETHER)):
            self._summarizer.add(some)
        return self._summarizer.result(config)

    async def execute(self, examples: Iterator[Example]) -> None:
        """Work until the examples end, a limit is reached, or the user stops it."""
        plan = self._plan
        placement = await plan.engine.open(plan.systems, plan.scorer.chosen, plan.max_workers)
        lanes = placement.lanes
        slots = max(lane.slots for lane in lanes)
        careful = self._limited or self._decisions is not None  # so that the run can stop after any example
        scorer = plan.scorer
        maker = RowMaker(
            plan.count,
            plan.text_fields,
            plan.prices,
            scorer.find_threshold,
            scorer.find_cluster_field,
            repeats=plan.repeats > 1,
        )
        together = 1 if careful else slots
        if plan.limits.limits_spending:
            self._budget = Budget(plan.limits, plan.prices, plan.count, self.stop)
        pipeline = Pipeline(
            plan.scorer, maker, self._take, self._recorder, placement, budget=self._budget, together=together
        )
        self._feed = feed = Feed(examples, lanes, self._width, plan.repeats, 2 * slots + 2, pipeline.screen)
        self._preflight = Preflight(plan.systems if plan.preflight else (), pipeline.run, self._drop_failed)
        self._task = asyncio.current_task()
        join_shared_transport()
        plan.progress.start()
        try:
            with _interrupts(self._interrupt):
                parts = placement.choose_local([*plan.systems, *plan.scorer.chosen])
                try:
                    with _fewer_collections():
                        await prepare_parts(parts)
                        self._prepared = True
                        one_by_one = plan.debug or careful
                        await pipeline.complete(
                            run_lanes(
                                feed, lanes, pipeline.run, None if one_by_one else pipeline.run_here, self._preflight
                            )
                        )
                finally:
                    pipeline.close()
                    await finish_parts(parts)
        except asyncio.CancelledError:
            if not self.interrupted:
                raise
        except Exception as error:  # noqa: BLE001 - the caller raises it, with the rows that there are
            self.failure = error
        finally:
            await placement.close()
            await leave_shared_transport()
            plan.progress.close()
        self.error = feed.error

    def _take(self, done: list[Done]) -> None:
        for job, row, outcome in done:
            self._take_one(job, row, outcome)
        if not self._sums_up_at_end:
            self._summarizer.add([row for _, row, _ in done])  # a metric may raise: the rows are there by then
        failure = self._recorder.store.failure if self._recorder is not None else None
        if failure is not None:
            self.stop(str(failure))

    def _take_one(self, job: Job, row: EvalRow, outcome: Outcome) -> None:
        plan = self._plan
        if plan.keep_rows:
            self._rows[job.order] = row
        if outcome.known:
            self.reused += 1
            if row.error is None and self._preflight is not None:
                self._preflight.note_answered(row.system)
        if not job.item.counted:
            job.item.counted = True
            tag = row.dataset
            self.tags[tag] = self.tags.get(tag, 0) + 1
            if not self.gold.get(tag):
                self.gold[tag] = has_gold(job.item.example)
        if row.error is None:
            self.returns[row.system] = outcome.returns
            if outcome.returns == "context" and is_unread_row(row):
                self.unread.add(row.system)
        if outcome.ended:
            self._stretch(row.system, outcome)
        if self._shows_progress:
            plan.progress.add(row, known=outcome.known)
        if plan.debug and self.bug is None and (bug := find_bug(outcome.cause)) is not None:
            self.bug = bug
            self.stop(f"{row.system} raised {row.error} on example {row.example_id!r}")
        if self._limited and (reason := plan.limits.add(row, plan.expected)):
            self.stop(reason)
        if self._decisions is not None:
            self._row_counts[row.system] += 1
            self._decisions.take(job.order // self._width, row)

    def stop(self, reason: str) -> None:
        """Start nothing more; what is in flight is finished and kept."""
        if self.stopped is None:
            self.stopped = reason
        self._end()
        if self._budget is not None:
            self._budget.stop()

    def _interrupt(self) -> None:
        """Handle Ctrl-C: one lets what is in flight finish, two stop now; before the first call one stops now."""
        if self.interrupted or not self._prepared:
            self.interrupted = True
            if self._task is not None:
                self._task.cancel()
            return
        self.interrupted = True
        self._plan.progress.close()
        print("context-bench: finishing what is in flight; Ctrl-C again stops now", file=sys.stderr)
        self.stop("interrupted")


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Let Python collect cycles less often meanwhile: a run makes many rows, and next to no cycles."""
    usual = gc.get_threshold()
    patient = 0 < usual[0] < _COLLECT_AFTER
    if patient:
        gc.set_threshold(_COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        if patient:
            gc.set_threshold(*usual)


@contextmanager
def _interrupts(act: Callable[[], None]) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM call `act` meanwhile: in the main thread alone, and where nobody else handles them.

    Whoever sends SIGTERM kills soon after, as container runtimes do: what is in flight then gets seconds, and no more.
    """
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def terminate() -> None:
        act()
        timers.append(loop.call_later(_TERM_GRACE, act))

    main = threading.current_thread() is threading.main_thread()
    wanted = ((signal.SIGINT, signal.default_int_handler, act), (signal.SIGTERM, signal.SIG_DFL, terminate))
    taken = [each for each in wanted if main and signal.getsignal(each[0]) == each[1]]
    for number, _, handler in taken:
        try:
            loop.add_signal_handler(number, handler)  # it wakes the loop whichever thread the signal comes to
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_, handler=handler: loop.call_soon_threadsafe(handler))
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        for number, usual, _ in taken:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, usual)
