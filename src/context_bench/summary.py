"""From rows to a summary: every metric for every system, with the counts that each number stands on.

Rows are taken in as they come. A metric with `start()` gives a tally (`add(row)`, `result()`) and needs
no row twice; any other gets the list of all rows at the end. A metric with `rank(summary)` or
`compare(summary)` holds systems against each other: what it says is put in once all are summarised.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from context_bench.errors import UnknownName, UsageError
from context_bench.registry import registry
from context_bench.types import Metric

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["Summarizer", "Tally", "describe_metric", "fold", "rebuild_metrics", "summarize"]


class Tally(Protocol):
    """A number in the making."""

    def add(self, row: EvalRow) -> None: ...

    def result(self) -> dict[str, float]: ...


def fold(tally: Tally, rows: Iterable[EvalRow]) -> dict[str, float]:
    """Take all rows in and give the result."""
    for row in rows:
        tally.add(row)
    return tally.result()


class _CountTally:
    """How many rows there are, and how many of them carry no score and why."""

    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._rows = self._errors = self._unscored = 0

    def add(self, row: EvalRow) -> None:
        self._rows += 1
        if row.error is not None:
            self._errors += 1
        elif self._field not in row.scores:
            self._unscored += 1

    def result(self) -> dict[str, float]:
        return {
            "num_examples": float(self._rows),
            "num_errors": float(self._errors),
            "error_rate": self._errors / self._rows if self._rows else 0.0,
            "num_unscored": float(self._unscored),
        }


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
                f"metric {self._metric.name!r} returned {type(values).__name__}: compute() returns a dict of numbers"
            )
        return dict(values)


class Summarizer:
    """Takes rows in as they come, and sums them up at the end."""

    def __init__(self, systems: Iterable[str], metrics: Sequence[Metric], score_field: str = "score") -> None:
        self._metrics, self._score_field = metrics, score_field
        self._tallies: dict[str, list[Tally]] = {}
        self._outputs: dict[str, set[str]] = {}
        for name in systems:
            self._open(name)

    def _open(self, name: str) -> list[Tally]:
        tallies: list[Tally] = [
            metric.start() if hasattr(metric, "start") else _ListTally(metric) for metric in self._metrics
        ]
        self._outputs[name] = set()
        self._tallies[name] = [*tallies, _CountTally(self._score_field)]
        return self._tallies[name]

    def add(self, rows: Sequence[EvalRow]) -> None:
        """Take rows in; many at once cost less."""
        for name in {row.system: None for row in rows}:
            own = [row for row in rows if row.system == name]
            for tally in self._tallies.get(name) or self._open(name):
                for row in own:
                    tally.add(row)
            self._outputs[name].update([row.metadata.get("output", "") for row in own if row.error is None])

    def result(self) -> dict[str, dict[str, float]]:
        """The summary, ranks between systems included."""
        summary: dict[str, dict[str, float]] = {}
        for name, tallies in self._tallies.items():
            summary[name] = {}
            for tally in tallies:
                summary[name].update(tally.result())
        if len(summary) > 1:
            for metric in self._metrics:
                if hasattr(metric, "rank"):
                    own_cost = getattr(metric, "cost_field", "cost_of_pass") == "cost_of_pass"
                    self._put_ranks(metric.rank(summary), summary, warn=own_cost)
                if hasattr(metric, "compare"):
                    for name, values in metric.compare(summary).items():
                        summary[name].update(values)
        return summary

    def _put_ranks(self, ranks: Mapping[str, int], summary: dict[str, dict[str, float]], *, warn: bool) -> None:
        for name, values in summary.items():
            if name in ranks:
                values["pareto_rank"] = float(ranks[name])
            else:
                values.pop("pareto_rank", None)
        if warn and len(set().union(*(self._outputs[name] for name in ranks)) - {""}) > 1:
            warnings.warn(
                "the Pareto rank compares systems that return a context with systems that return an answer: "
                "their output tokens count different things",
                stacklevel=2,
            )


def summarize(
    rows: Iterable[EvalRow], systems: Iterable[str], metrics: Sequence[Metric], score_field: str = "score"
) -> dict[str, dict[str, float]]:
    """Compute every metric for every system, and the ranks between them."""
    summarizer = Summarizer(systems, metrics, score_field)
    source = iter(rows)
    while some := list(islice(source, 256)):
        summarizer.add(some)
    return summarizer.result()


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
