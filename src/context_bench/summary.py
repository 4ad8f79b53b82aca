"""Sums up rows: every metric for every system, the counts behind each number, and notes on its meaning.

Rows are added as they come. A metric with `start()` gives a tally (`add(row)`, `result()`), which takes each row once;
any other gets the list of all rows at the end. Built-in metrics that compare systems get their values once all systems
are summarised. If a user's metric fails, only its own numbers are missing.

A value without rows, or without meaning for its system, is NaN, and its note says why. A number that means less than
its name suggests keeps its value and has a note too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from context_bench.caveats import add_caveats, explain_unranked
from context_bench.compare.against_baseline import Comparer
from context_bench.compare.front import FrontTally
from context_bench.compare.pairing import read_value
from context_bench.compare.verdicts import (
    LOOKED,
    NO_VERDICT,
    Comparison,
    choose_baseline,
    find_first_samples,
    find_floors,
    mark_samples,
    read_settled,
)
from context_bench.config import DEFAULT_THRESHOLD
from context_bench.errors import warn
from context_bench.numbers import COST_OF_PASS, MACRO_SCORE, MEAN_SCORE, PARETO_FRONT, PARETO_RANK, SAVED_PER_1K_USD
from context_bench.registry import registry
from context_bench.settings import read_settings
from context_bench.stats import Interval
from context_bench.tallies import GuardedTally, SystemTallies
from context_bench.traits import find_threshold, metric_traits
from context_bench.types import Metric, Tally

if TYPE_CHECKING:
    from context_bench.results import EvalRow

Numbers = dict[str, dict[str, float]]  # system -> key -> value

Intervals = dict[str, dict[str, Interval]]  # system -> key -> interval, for the numbers that have one

Notes = dict[str, dict[str, str]]  # system -> key -> how to read the value


class Summary(NamedTuple):
    numbers: Numbers
    notes: Notes
    columns: dict[str, str]  # the numbers of metrics that are not ours which the table shows, each with its format
    failures: dict[str, str]  # metrics that failed, and how
    intervals: Intervals  # the accuracy of the numbers, as far as known
    comparison: Comparison | None  # every system against the baseline, if there is one


def fold(tally: Tally, rows: Iterable[EvalRow]) -> dict[str, float]:
    for row in rows:
        tally.add(row)
    return tally.result()


class Summarizer:
    """Adds rows as they arrive, and sums them up at the end; `twin` is the second run of the baseline."""

    def __init__(
        self,
        systems: Iterable[str],
        metrics: Sequence[Metric],
        score_field: str = "score",
        *,
        baseline: str | None = None,
        controls: Sequence[str] = (),
        repeats: int = 1,
        twin: str | None = None,
    ) -> None:
        self._metrics, self._score_field, self._twin = metrics, score_field, twin
        self._suffixes = list_suffixes(metrics)
        self._systems = {name: SystemTallies(metrics, score_field) for name in systems}
        others = [name for name in self._systems if name != twin]
        chosen = choose_baseline(others, baseline, controls)
        if chosen is None and len(others) < len(self._systems):
            chosen = next(iter(others), None)
        self._comparer: Comparer | None = None
        self._front: FrontTally | None = None
        if chosen is not None:
            threshold = next(
                (found for each in metrics if (found := find_threshold(each)) is not None), DEFAULT_THRESHOLD
            )
            read = read_value("score", score_field, threshold)
            how: dict[str, Any] = {"threshold": threshold, "repeats": repeats, "twin": twin}
            self._comparer = Comparer(self._systems, chosen, read, **how, keep_apart=score_field == "score")
            if any(metric_traits(metric).rank is not None for metric in metrics):
                paired = {name for name in others if name == chosen or name not in set(controls)}
                self._front = FrontTally(self._systems, paired, read, repeats)

    def add(self, rows: Sequence[EvalRow]) -> None:
        """Add rows; many at once are cheaper."""
        if self._comparer is not None:
            self._comparer.add(rows)
        if self._front is not None:
            self._front.add(rows)
        for name in {row.system: None for row in rows}:
            if name not in self._systems:
                self._systems[name] = SystemTallies(self._metrics, self._score_field)
            self._systems[name].add([row for row in rows if row.system == name])

    def result(self, config: Mapping[str, Any] | None = None) -> Summary:
        """Return the summary, with the ranks of the systems. `config` is the record of the run."""
        config = {"score_field": self._score_field, **(config or {})}
        settings = read_settings(config)
        numbers: Numbers = {}
        notes: Notes = {}
        columns: dict[str, str] = {}
        failures: dict[str, str] = {}
        for name, system in self._systems.items():
            report = dict(settings.reports.get(name) or {})
            if priced_by := (settings.prices.get("models") or {}).get(name):
                report["priced_by"] = priced_by
            numbers[name], notes[name] = system.read(self._suffixes, report)
            columns |= system.columns
            for metric, tally in zip(self._metrics, system.tallies):
                if isinstance(tally, GuardedTally) and tally.failure:
                    failures.setdefault(metric.name, tally.failure)
            add_caveats(name, numbers[name], notes[name], system.census, system.datasets, config)
        comparison = self._compare(config)
        unlike = {} if self._comparer is None else self._comparer.explain_unlike()
        for name, note in unlike.items():
            notes[name] = {key: note for key in (MEAN_SCORE, MACRO_SCORE) if key in numbers[name]} | notes[name]
        if len(numbers) > 1:
            for metric in self._metrics:
                traits = metric_traits(metric)
                if traits.rank is not None:
                    self._put_ranks(traits.rank, traits.cost_field, numbers, notes, config, comparison)
                if traits.compare is not None:
                    alike = {name: values for name, values in numbers.items() if name not in unlike}
                    for name, values in traits.compare(alike).items():
                        numbers[name].update(values)
        self._put_front(numbers, notes, config, comparison)
        intervals = {name: _keep_measured(system.intervals, numbers[name]) for name, system in self._systems.items()}
        if comparison is not None:
            _put_savings(comparison, numbers, notes, intervals)
            if first := find_first_samples(config):
                comparison = comparison.mark_first(first)
        return Summary(
            numbers,
            {name: own for name, own in notes.items() if own},
            columns,
            failures,
            mark_samples(intervals, config),
            comparison,
        )

    def _compare(self, config: Mapping[str, Any]) -> Comparison | None:
        settings = read_settings(config)
        if self._comparer is None:
            return None
        found = self._comparer.compare(
            margin=settings.margin,
            controls=settings.controls,
            settled=read_settled(config),
            fixed_groups=settings.fixed_groups,
        )
        if found is None:
            return None
        if settings.looks_before:  # scored again: the looks used other scores
            found = dataclasses.replace(found, notes=(*found.notes, LOOKED))
        found = found.withhold_zeros(self._comparer.has_only_zeros)
        return found.withhold_unneeded(find_floors(config), self._comparer.is_perfect)

    def _explain_unranked(self, name: str, cost: str, config: Mapping[str, Any], comparison: Comparison | None) -> str:
        """Return why a system is not ranked by score and this cost; empty if it is."""
        if name == self._twin:
            return "it is the baseline, run again"
        if (reason := explain_unranked(self._systems[name].census, cost, config)) or self._comparer is None:
            return reason
        if comparison is None:
            return NO_VERDICT
        return comparison.explain_silence(name) or comparison.explain_blindness(name)

    def _put_front(
        self, numbers: Numbers, notes: Notes, config: Mapping[str, Any], comparison: Comparison | None
    ) -> None:
        settings = read_settings(config)
        if self._front is None or self._comparer is None:
            return
        controls = {*settings.controls, self._twin}
        reasons = {
            name: self._explain_unranked(name, "", config, comparison) for name in numbers if name not in controls
        }
        competing = [name for name, reason in reasons.items() if not reason]
        front = self._front.result(competing, self._comparer.baseline)
        if front is None:
            return
        for name, cost in front.costs.items():
            numbers[name][front.key] = cost
        for name, reason in reasons.items():
            if not reason:
                numbers[name][PARETO_FRONT] = float(name in front.names)
            if said := front.reasons.get(name, f"not ranked: {reason}" if reason else ""):
                notes[name][PARETO_FRONT] = said

    def _put_ranks(
        self,
        rank: Callable[[Numbers], dict[str, int]],
        cost: str,
        numbers: Numbers,
        notes: Notes,
        config: Mapping[str, Any],
        comparison: Comparison | None,
    ) -> None:
        reasons = {name: self._explain_unranked(name, cost, config, comparison) for name in numbers}
        ranks = rank({name: values for name, values in numbers.items() if not reasons[name]})
        for name, values in numbers.items():
            if name in ranks:
                values[PARETO_RANK] = float(ranks[name])
            else:
                values.pop(PARETO_RANK, None)
                if reasons[name]:
                    notes[name][PARETO_RANK] = f"not ranked: {reasons[name]}"
        outputs: set[str] = set().union(*(self._systems[name].census.outputs for name in ranks))
        if cost == COST_OF_PASS and len(outputs - {""}) > 1:
            warn(
                "the Pareto rank compares systems that return a context with systems that return an answer: "
                "their output tokens count different things"
            )


def _keep_measured(intervals: Mapping[str, Interval], values: Mapping[str, float]) -> dict[str, Interval]:
    """Keep the intervals of measured numbers, and make them contain the printed number. Sums by cluster and sums by row
    round differently, so the number could be outside by its last digit.
    """
    return {
        key: dataclasses.replace(interval, value=values[key])
        for key, interval in intervals.items()
        if not math.isnan(values.get(key, math.nan))
    }


def _put_savings(comparison: Comparison, numbers: Numbers, notes: Notes, intervals: Intervals) -> None:
    """Add the savings of each system against the baseline, or why they are not claimed."""
    for name, saving in comparison.savings.items():
        key = SAVED_PER_1K_USD
        numbers[name][key] = saving.per_1k.value
        if saving.note:
            notes[name][key] = saving.note
        if not math.isnan(saving.per_1k.value):
            intervals[name][key] = saving.per_1k


def list_suffixes(metrics: Sequence[Metric]) -> list[str | None]:
    """Find the suffix of a key that an earlier metric has used, so that each number has a unique name.

    For two metrics of one kind, the suffix is their difference, such as the field of a second score; None for an equal
    metric.
    """
    suffixes: list[str | None] = []
    seen: dict[str, list[dict[str, Any]]] = {}
    for metric in metrics:
        params = describe_metric(metric)["params"]
        others = seen.setdefault(metric.name, [])
        if params in others:
            suffixes.append(None)
        elif others:
            differing = {key: value for key, value in params.items() if value != others[0].get(key)}
            parts = [str(value) if key == "score_field" else f"{key}={value}" for key, value in differing.items()]
            suffixes.append(",".join(parts))
        else:
            suffixes.append(metric.name)
        others.append(params)
    return suffixes


def summarize(
    rows: Iterable[EvalRow], systems: Iterable[str], metrics: Sequence[Metric], config: Mapping[str, Any] | None = None
) -> Summary:
    """Compute every metric for every system, including those without rows, and their ranks."""
    config = config or {}
    settings = read_settings(config)
    names = list(systems)
    baseline = settings.baseline
    summarizer = Summarizer(
        names,
        metrics,
        settings.score_field,
        baseline=baseline if baseline in names else None,
        controls=settings.controls,
        repeats=settings.repeats,
        twin=settings.twin,
    )
    source = iter(rows)
    while some := list(islice(source, 256)):
        summarizer.add(some)
    return summarizer.result(config)


def describe_metric(metric: Metric) -> dict[str, Any]:
    """Describe a metric as data, from which `rebuild_metrics` makes it again."""
    parameters: Any = metric
    if dataclasses.is_dataclass(parameters):
        params = dataclasses.asdict(parameters)  # type: ignore[arg-type]
    else:
        params = dict(getattr(metric, "__dict__", {}))
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in params.items()}  # as JSON has it
    return {"name": metric.name, "params": plain}


def rebuild_metrics(described: Iterable[Mapping[str, Any]]) -> list[Metric]:
    """Make metrics from the data of `describe_metric`; leave out those that cannot be made here."""
    metrics: list[Metric] = []
    for item in described:
        try:
            known = registry.get("metric", item["name"])
            metrics.append(known(**item.get("params", {})) if callable(known) else known)
        except Exception:  # noqa: BLE001 - not installed here, or changed since: the values that it gave are kept
            continue
    return metrics
