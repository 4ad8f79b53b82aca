"""A run, from its plan to its result: starts the lanes, takes the rows, asks the monitors, and handles stops.

Read this file first, then `schedule`, `pipeline`, `call`, `judge` and `row`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from context_bench.caveats import find_unscored
from context_bench.compare.pairing import is_unread_row, read_value
from context_bench.compare.verdicts import choose_baseline
from context_bench.config import DEFAULT_MARGIN
from context_bench.core.cache import Cache
from context_bench.core.call import Outcome, open_debugger
from context_bench.core.examples import Item
from context_bench.core.judge import Scorer
from context_bench.core.lifecycle import fewer_collections, finish_parts, handle_interrupts, prepare_parts
from context_bench.core.pipeline import Done, Pipeline
from context_bench.core.row import Job, RowMaker
from context_bench.core.schedule import Engine, Feed, LocalEngine, Workers
from context_bench.core.threads import Threads
from context_bench.datasets.catalog import find_weak_thresholds
from context_bench.errors import ContextBenchError, DataError, Interrupted, attach_result, describe, warn
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from context_bench.monitors.budget import Budget
from context_bench.monitors.limits import ErrorLimit, Limits
from context_bench.monitors.looks import Decisions, LookOrder
from context_bench.monitors.monitor import Debug, Followed, Monitor
from context_bench.monitors.preflight import Preflight
from context_bench.monitors.progress import Progress
from context_bench.pricing import Prices
from context_bench.results import EvalResult, EvalRow
from context_bench.summary import Summarizer, Summary
from context_bench.tallies import is_built_in
from context_bench.text.golds import has_gold
from context_bench.traits import system_traits
from context_bench.types import Metric, System
from context_bench.utils.tokens import Tokenizer

SUMMED_TOGETHER = 256  # rows to pass to the metrics at once


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
    """Returns how the examples of each dataset were chosen, given the number that was read."""
    baseline: str | None = None
    margin: float | None = None
    fixed_groups: bool = False
    controls: Sequence[str] = ()
    twin: str | None = None
    engine: Engine = field(default_factory=LocalEngine)
    order: LookOrder | None = None
    """If set: run the examples in this order, with interim looks that stop each system when its verdict is settled."""

    def list_competing(self) -> tuple[str | None, list[str]]:
        """Return the baseline, and the competing systems that are compared with it."""
        names = [each.name for each in self.systems if each.name != self.twin]
        baseline = choose_baseline(names, self.baseline, self.controls)
        return baseline, [name for name in names if name not in self.controls and name != baseline]


class Facts(Monitor):
    """Collects the contents of the result: the rows in order, their sums, and facts about datasets and systems."""

    def __init__(self, plan: Plan) -> None:
        self._keep_rows = plan.keep_rows
        self._rows: dict[int, EvalRow] = {}
        self._spans: dict[str, list[float]] = {}
        self._summarizer = Summarizer(
            [each.name for each in plan.systems],
            plan.metrics,
            plan.score_field,
            baseline=plan.baseline,
            controls=plan.controls,
            repeats=plan.repeats,
            twin=plan.twin,
        )
        # A user's metric gets each row on arrival: if it fails, the run ends before it costs more.
        self._sums_up_at_end = plan.keep_rows and all(map(is_built_in, plan.metrics))
        self.tags: dict[str, int] = {}  # number of examples of each dataset
        self.gold: dict[str, bool] = {}  # whether any of them has a gold answer
        self.returns: dict[str, str] = {}  # kind of each system's output
        self.unread: set[str] = set()  # systems whose contexts no model has read
        self.reused = 0  # number of rows from the cache

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> None:
        if self._keep_rows:
            self._rows[job.order] = row
        if outcome.known:
            self.reused += 1
        item, name = job.item, row.system
        if not item.counted:
            item.counted = True
            tag = row.dataset
            self.tags[tag] = self.tags.get(tag, 0) + 1
            if not self.gold.get(tag):
                self.gold[tag] = has_gold(item.example)
        if row.error is None:
            self.returns[name] = returns = outcome.returns
            if returns == "context" and is_unread_row(row):
                self.unread.add(name)
        if ended := outcome.ended:
            span = self._spans.get(name)
            if span is None:
                span = self._spans[name] = [outcome.started, ended]
            if outcome.started < span[0]:
                span[0] = outcome.started
            if ended > span[1]:
                span[1] = ended

    def add_up(self, done: Sequence[Done]) -> None:
        """Pass rows to the metrics, unless that is done at the end. If a metric raises, the rows are already kept."""
        if not self._sums_up_at_end:
            self._summarizer.add([row for _, row, _ in done])

    @property
    def rows(self) -> list[EvalRow]:
        """Return the rows so far, in the order of the examples, then of the systems."""
        return [self._rows[place] for place in sorted(self._rows)]

    def measure_seconds(self, systems: Sequence[System]) -> dict[str, float]:
        """Return the seconds between the first start and the last return of each system."""
        spans = {each.name: self._spans.get(each.name, (0.0, 0.0)) for each in systems}
        return {name: last - first for name, (first, last) in spans.items()}

    def summarize(self, config: Mapping[str, Any]) -> Summary:
        """Compute the summary.

        Our own metrics get the rows in the order of the examples, so the order of arrival changes no number. A user's
        metric already got each row on arrival.
        """
        rows = iter(self.rows if self._sums_up_at_end else ())
        while some := list(islice(rows, SUMMED_TOGETHER)):
            self._summarizer.add(some)
        return self._summarizer.result(config)


class Run:
    """Runs every system on the examples.

    After `execute`, `stopped` has the reason if the run was stopped early.
    """

    def __init__(self, plan: Plan, cache: Cache | None = None) -> None:
        self._plan, self._cache, self._facts = plan, cache, Facts(plan)
        self._monitors: list[Monitor] = []
        self._watching: list[Monitor] = []
        self._feed: Feed | None = None
        self._task: asyncio.Task[Any] | None = None
        self._prepared = self._interrupted = False
        self.stopped: str | None = None

    async def execute(self, examples: Iterator[Item], config: dict[str, Any]) -> EvalResult:
        """Run until the examples end, a limit is reached or the user stops it; return the result.

        Raises:
            ContextBenchError: The input or the run itself failed. The error's `result` has the finished part.
            Interrupted: The user pressed Ctrl-C. The error's `result` has the finished part.
        """
        plan, failure = self._plan, None
        placement = await plan.engine.open(plan.systems, plan.scorer.chosen, plan.max_workers)
        lanes, slots = placement.lanes, max(lane.slots for lane in placement.lanes)
        threads = Threads(2, "context-bench-long")  # more threads would only compete for the interpreter
        preflight, debug, looks = Preflight(plan.systems, self._drop), Debug(), self._start_looks()
        budget = None
        if plan.limits.limits_spending:
            budget = Budget(plan.limits, plan.prices, plan.count, self.stop, threads)
        for system in plan.systems:
            if (join_run := system_traits(system).join_run) is not None:
                join_run(budget, self._is_stopped)
        self._choose_monitors(preflight, budget, looks, debug)
        careful = plan.limits.given or looks is not None  # the run can then stop after any example
        pipeline = Pipeline(
            plan.scorer,
            RowMaker(plan.count, plan.text_fields, plan.prices, plan.systems, repeats=plan.repeats > 1),
            *(self._take, self._cache, placement, threads),
            guards=[each for each in self._monitors if type(each).admit is not Monitor.admit],
            spending=budget,
            together=1 if careful else slots,
        )
        width = len(plan.systems) * plan.repeats
        self._feed = feed = Feed(examples, lanes, width, plan.repeats, 2 * slots + 2, pipeline.screen)
        self._task = asyncio.current_task()
        join_shared_transport()
        plan.progress.start()
        try:
            with handle_interrupts(self._interrupt):
                parts = placement.choose_local([*plan.systems, *plan.scorer.chosen])
                try:
                    with fewer_collections():
                        await prepare_parts(parts)
                        self._prepared = True
                        one_by_one = plan.debug or careful
                        workers = Workers(feed, lanes, pipeline.run, None if one_by_one else pipeline.run_here)
                        pipeline.fail = workers.fail
                        try:
                            await workers.over
                            await pipeline.drain()
                        finally:
                            await workers.close()
                finally:
                    pipeline.close()
                    threads.shutdown(cancel_futures=True)
                    await finish_parts(parts)
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
        except Exception as error:  # noqa: BLE001 - it is raised below, with the rows that there are
            failure = error
        finally:
            await placement.close()
            await leave_shared_transport()
            plan.progress.close()
        if debug.bug is not None:
            open_debugger(debug.bug)
        config = {**config, **self._describe(preflight.stopped)}
        if looks is not None:
            config["looks"] = looks.describe([each.name for each in plan.systems], preflight.stopped)
        summary, seconds = self._facts.summarize(config), self._facts.measure_seconds(plan.systems)
        result = make_result(self._facts.rows, summary, config, plan.metrics, seconds)
        self._raise_problem(failure, feed.error, result)
        return result

    def _choose_monitors(
        self, preflight: Preflight, budget: Budget | None, looks: Decisions | None, debug: Debug
    ) -> None:
        """Choose the monitors of this run; they see requests and rows in this order."""
        plan, followed = self._plan, Followed(self._plan.systems)
        chosen: list[tuple[bool, Monitor | None]] = [
            (True, self._facts),
            (plan.preflight and not preflight.done, preflight),
            (True, budget),
            (plan.progress.on, plan.progress),
            (plan.debug, debug),
            (plan.limits.max_errors is not None, ErrorLimit(plan.limits, plan.expected)),
            (True, looks),
            (followed.wanted, followed),
        ]
        self._monitors = [monitor for wanted, monitor in chosen if wanted and monitor is not None]
        self._watching = [each for each in self._monitors if type(each).on_row is not Monitor.on_row]
        if self._cache is None or not self._cache.looks_up:  # preflight counts known answers, and a new store has none
            self._watching = [each for each in self._watching if each is not preflight]

    def _start_looks(self) -> Decisions | None:
        """Start the interim looks, if systems stop when their verdict is settled."""
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
            width=len(plan.systems) * plan.repeats,
            fixed_groups=plan.fixed_groups,
            keep_apart=plan.score_field == "score",
            stop=self._drop,
            stop_all=self.stop,
        )

    def _take(self, done: list[Done]) -> None:
        """Take finished rows: every monitor sees each row and may return a reason to stop."""
        for job, row, outcome in done:
            for monitor in self._watching:
                if (reason := monitor.on_row(job, row, outcome)) is not None:
                    self.stop(reason)
        self._facts.add_up(done)
        failure = self._cache.store.failure if self._cache is not None else None
        if failure is not None:
            self.stop(str(failure))

    def _drop(self, name: str) -> None:
        """Stop one system and the controls that follow it: it does not work, or its verdict is settled."""
        for system in self._plan.systems:
            follows = system_traits(system).follows
            if self._feed is not None and name in (system.name, follows and follows.system):
                self._feed.drop(system)
        for monitor in self._monitors:
            monitor.drop(name)

    def stop(self, reason: str | None = None) -> None:
        """Start nothing more; jobs in flight are finished and kept. Without a reason, the run is complete."""
        if self.stopped is None:
            self.stopped = reason
        if self._feed is not None:
            self._feed.stop()
        for monitor in self._monitors:
            monitor.stop()

    def _is_stopped(self) -> bool:
        return self._interrupted or self.stopped is not None

    def _interrupt(self) -> None:
        """Handle Ctrl-C: the first lets jobs in flight finish, the second (or the first before any call) stops now."""
        if self._interrupted or not self._prepared:
            self._interrupted = True
            if self._task is not None:
                self._task.cancel()
            return
        self._interrupted = True
        self._plan.progress.close()
        print("context-bench: finishing the requests in flight; press Ctrl-C again to stop now", file=sys.stderr)
        self.stop("interrupted")

    def _describe(self, stopped_systems: Mapping[str, str]) -> dict[str, Any]:
        """Describe the finished run for its record."""
        plan, facts, scorer = self._plan, self._facts, self._plan.scorer
        names = [each.name for each in plan.systems]
        reports = {each.name: system_traits(each).report for each in plan.systems}
        return {
            "evaluators": scorer.names,
            "evaluator_versions": scorer.versions,
            "primary": scorer.primaries,
            "context_primary": scorer.context_primaries,
            "datasets": facts.tags,
            "samples": plan.name_samples(facts.tags),
            "gold": facts.gold,
            "weak_thresholds": find_weak_thresholds(facts.tags),
            "returns": {name: facts.returns[name] for name in names if name in facts.returns},
            "unread": [name for name in names if name in facts.unread],
            "stopped": self.stopped,
            "stopped_systems": dict(stopped_systems),
            "reused": facts.reused,
            "reports": {name: report(plan.count) for name, report in reports.items() if report is not None},
        }

    def _raise_problem(self, failure: Exception | None, error: BaseException | None, result: EvalResult) -> None:
        """Raise the error that ended the run, with its result; warn about missing numbers."""
        if failure is not None:
            raise attach_result(failure, result)
        for name, problem in result.settings.failed_metrics.items():
            warn(f"the metric {name!r} failed, and its numbers are missing: {problem}")
        for sentence in find_unscored(result.summary, result.notes, result.config):
            warn(sentence)
        if self._interrupted:
            raise Interrupted(result)
        if error is not None:
            raise explain_input_error(error, result)


def make_result(
    rows: list[EvalRow],
    summary: Summary,
    config: dict[str, Any],
    metrics: Sequence[Metric],
    seconds: dict[str, float] | None = None,
) -> EvalResult:
    """Make the result of a finished run, or of the part that is finished."""
    config = {**config, "columns": summary.columns, "failed_metrics": summary.failures}
    return EvalResult.from_summary(rows, summary, config, metrics, seconds)


def explain_input_error(error: BaseException, result: EvalResult) -> ContextBenchError:
    """Wrap the error that ended the input in one of ours, which carries the finished part."""
    known = error
    if not isinstance(known, ContextBenchError):
        known = DataError(f"reading the dataset failed after {len(result.rows)} rows: {describe(error)}")
    attach_result(known, result)
    return known
