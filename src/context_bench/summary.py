"""From rows to a summary: every metric for every system, the counts behind each number, and notes on what it means.

Rows are added as they come. A metric with `start()` gives a tally (`add(row)`, `result()`) and needs no row twice; any
other gets the list of all rows at the end. A metric with `rank(summary)` or `compare(summary)` holds systems against
each other: its values are put in once all systems are summarised.

A value that stands on no row is NaN, and its note says why; so is one that means nothing for the system that it is said
of. A number that means less than its name suggests keeps its value, and has a note too.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from context_bench.caveats import Census, add_caveats, can_be_ranked
from context_bench.errors import UnknownName, UsageError
from context_bench.registry import registry
from context_bench.types import Metric

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = [
    "Notes",
    "Numbers",
    "Summarizer",
    "Summary",
    "Tally",
    "describe_metric",
    "fold",
    "rebuild_metrics",
    "summarize",
]

Numbers = dict[str, dict[str, float]]
"""System -> key -> value."""

Notes = dict[str, dict[str, str]]
"""System -> key -> what has to be known to read the value."""


class Summary(NamedTuple):
    """The numbers of a run, and the notes on them."""

    numbers: Numbers
    notes: Notes


class Tally(Protocol):
    """A number in the making.

    Optional members: `unmeasured()` gives the keys of `result()` that stand on no row, each with the reason; their
    value becomes NaN. `notes()` gives a sentence for keys whose value needs one. `bound(report)` gives numbers that
    depend on what a system reports at the end of a run.
    """

    def add(self, row: EvalRow) -> None: ...

    def result(self) -> dict[str, float]: ...


def fold(tally: Tally, rows: Iterable[EvalRow]) -> dict[str, float]:
    """Add all rows to a tally and return its result."""
    for row in rows:
        tally.add(row)
    return tally.result()


class _ListTally:
    """For a metric that wants all rows at once."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._rows: list[EvalRow] = []

    def add(self, row: EvalRow) -> None:
        self._rows.append(row)

    def result(self) -> dict[str, float]:
        try:
            values = self._metric.compute(self._rows)
        except Exception as error:
            raise UsageError(f"metric {self._metric.name!r} fails: {type(error).__name__}: {error}") from error
        if not isinstance(values, Mapping):
            raise UsageError(
                f"metric {self._metric.name!r} returned {type(values).__name__}: compute() must return a dict"
            )
        return dict(values)


class _SystemTallies:
    """All tallies of one system: over all its rows and, from the second dataset on, for each dataset too."""

    def __init__(self, metrics: Sequence[Metric], score_field: str) -> None:
        self._metrics, self._score_field = metrics, score_field
        self.tallies: list[Tally] = [
            metric.start() if hasattr(metric, "start") else _ListTally(metric) for metric in metrics
        ]
        self.census = Census(score_field)
        self._first: str | None = None
        self._by_dataset: dict[str, tuple[Census, list[Tally]]] = {}
        self._broken_down = [place for place, metric in enumerate(metrics) if getattr(metric, "by_dataset", ())]

    def add(self, rows: Sequence[EvalRow]) -> None:
        tags = {row.dataset for row in rows}
        if self._first is None:
            self._first = rows[0].dataset
        elif not self._by_dataset and tags != {self._first}:
            # All rows so far are of the first dataset: what they add up to is where its own tallies go on from.
            self._by_dataset[self._first] = copy.deepcopy((self.census, self._own_tallies()))
        for tally in self.tallies:
            for row in rows:
                tally.add(row)
        for row in rows:
            self.census.add(row)
        if self._by_dataset or len(tags) > 1:
            self._add_by_dataset(rows)

    def _own_tallies(self) -> list[Tally]:
        return [self.tallies[place] for place in self._broken_down]

    def _add_by_dataset(self, rows: Sequence[EvalRow]) -> None:
        for row in rows:
            if row.dataset not in self._by_dataset:
                metrics: list[Any] = [self._metrics[place] for place in self._broken_down]
                self._by_dataset[row.dataset] = (Census(self._score_field), [metric.start() for metric in metrics])
            census, tallies = self._by_dataset[row.dataset]
            census.add(row)
            for tally in tallies:
                tally.add(row)

    def read(
        self, suffixes: Sequence[str | None], report: Mapping[str, Any]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """The numbers so far with their notes; a key that is taken already gets the suffix of its metric."""
        values: dict[str, float] = {}
        notes: dict[str, str] = {}
        for tally, suffix in zip(self.tallies, suffixes):
            if suffix is None:
                continue
            own, said = _read(tally, report)
            taken = {key: f"{key}:{suffix}" for key in own if key in values}
            values |= {taken.get(key, key): value for key, value in own.items()}
            notes |= {taken.get(key, key): note for key, note in said.items()}
        values |= self.census.counts()
        for tag in sorted(self._by_dataset):
            more, said = self._read_dataset(tag)
            values |= {f"{key}@{tag or 'unknown'}": value for key, value in more.items()}
            notes |= {f"{key}@{tag or 'unknown'}": note for key, note in said.items()}
        return values, notes

    def _read_dataset(self, tag: str) -> tuple[dict[str, float], dict[str, str]]:
        census, tallies = self._by_dataset[tag]
        values: dict[str, float] = census.counts()
        notes: dict[str, str] = {}
        for place, tally in zip(self._broken_down, tallies):
            shown: Sequence[str] = self._metrics[place].by_dataset  # type: ignore[attr-defined]
            own, said = _read(tally, {})
            values |= {key: own[key] for key in shown if key in own}
            notes |= {key: said[key] for key in shown if key in said}
        return values, notes

    @property
    def datasets(self) -> dict[str, Census]:
        """The census of each dataset, where there are several."""
        return {tag: census for tag, (census, _) in self._by_dataset.items()}


def _read(tally: Any, report: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """What a tally says, NaN where that stands on nothing."""
    values = tally.result()
    if report and hasattr(tally, "bound"):
        values |= tally.bound(report)
    notes = dict(tally.notes()) if hasattr(tally, "notes") else {}
    if hasattr(tally, "unmeasured"):
        reasons = tally.unmeasured()
        values |= {key: math.nan for key in reasons if key in values}
        notes |= {key: f"not measured: {reason}" for key, reason in reasons.items()}
    return values, notes


class Summarizer:
    """Adds rows as they come, and sums them up at the end."""

    def __init__(self, systems: Iterable[str], metrics: Sequence[Metric], score_field: str = "score") -> None:
        self._metrics, self._score_field = metrics, score_field
        self._suffixes = _suffixes(metrics)
        self._systems = {name: _SystemTallies(metrics, score_field) for name in systems}

    def add(self, rows: Sequence[EvalRow]) -> None:
        """Add rows; many at once cost less."""
        for name in {row.system: None for row in rows}:
            if name not in self._systems:
                self._systems[name] = _SystemTallies(self._metrics, self._score_field)
            self._systems[name].add([row for row in rows if row.system == name])

    def result(self, config: Mapping[str, Any] | None = None) -> Summary:
        """The summary, ranks between systems included. `config` is the run's, which says what its numbers mean."""
        config = {"score_field": self._score_field, **(config or {})}
        numbers: Numbers = {}
        notes: Notes = {}
        for name, system in self._systems.items():
            report = dict((config.get("reports") or {}).get(name) or {})
            if priced_by := ((config.get("prices") or {}).get("models") or {}).get(name):
                report["priced_by"] = priced_by
            numbers[name], notes[name] = system.read(self._suffixes, report)
            add_caveats(name, numbers[name], notes[name], system.census, system.datasets, config)
        if len(numbers) > 1:
            for metric in self._metrics:
                if hasattr(metric, "rank"):
                    self._put_ranks(metric, numbers, notes, config)
                if hasattr(metric, "compare"):
                    for name, values in metric.compare(numbers).items():
                        numbers[name].update(values)
        return Summary(numbers, {name: own for name, own in notes.items() if own})

    def _put_ranks(self, metric: Any, numbers: Numbers, notes: Notes, config: Mapping[str, Any]) -> None:
        cost = getattr(metric, "cost_field", "cost_of_pass")
        reasons = {name: can_be_ranked(self._systems[name].census, cost, config) for name in numbers}
        ranks = metric.rank({name: values for name, values in numbers.items() if not reasons[name]})
        for name, values in numbers.items():
            if name in ranks:
                values["pareto_rank"] = float(ranks[name])
            else:
                values.pop("pareto_rank", None)
                if reasons[name]:
                    notes[name]["pareto_rank"] = f"not ranked: {reasons[name]}"
        outputs: set[str] = set().union(*(self._systems[name].census.outputs for name in ranks))
        if cost == "cost_of_pass" and len(outputs - {""}) > 1:
            warnings.warn(
                "the Pareto rank compares systems that return a context with systems that return an answer: "
                "their output tokens count different things",
                stacklevel=2,
            )


def _suffixes(metrics: Sequence[Metric]) -> list[str | None]:
    """What is added to a key that an earlier metric has given already, so that each number has a name of its own.

    Of two metrics of one kind it is what they differ in, as in `mean_score:exact_match`; None for the very same metric.
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
    """Compute every metric for every system, and the ranks between them.

    Args:
        rows: All rows of a run.
        systems: The systems in their order; one without rows has a summary too.
        metrics: What to compute.
        config: Of the run: `score_field`, and what its numbers mean.
    """
    config = config or {}
    summarizer = Summarizer(systems, metrics, config.get("score_field") or "score")
    source = iter(rows)
    while some := list(islice(source, 256)):
        summarizer.add(some)
    return summarizer.result(config)


def describe_metric(metric: Metric) -> dict[str, Any]:
    """A metric as data, from which `rebuild_metrics` makes it again."""
    parameters: Any = metric
    if dataclasses.is_dataclass(parameters):
        params = dataclasses.asdict(parameters)  # type: ignore[arg-type]
    else:
        params = dict(getattr(metric, "__dict__", {}))
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in params.items()}  # as JSON has it
    return {"name": metric.name, "params": plain}


def rebuild_metrics(described: Iterable[Mapping[str, Any]]) -> list[Metric]:
    """Metrics from what `describe_metric` said of them; those that this process does not know are left out."""
    metrics: list[Metric] = []
    for item in described:
        try:
            known = registry.get("metric", item["name"])
            metrics.append(known(**item.get("params", {})) if callable(known) else known)
        except (UnknownName, TypeError):
            continue
    return metrics
