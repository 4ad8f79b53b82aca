"""Shared parts of the metrics: rows are added one at a time, so that a run of any length fits in memory.

Intervals come from running sums. Rows that share a document or a conversation (`cluster` in their metadata) are not
independent: if there are any, intervals are computed by cluster, and each other row is a cluster by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, ClassVar

from context_bench.numbers import list_keys
from context_bench.results import EvalRow
from context_bench.stats import ClusterSums, Interval, Mean, RatioSums, ScoreSums, clustered_ratio, ratio_interval
from context_bench.summary import fold
from context_bench.types import Tally


class RunningMetric:
    """A metric whose numbers grow row by row. A user's metric needs no parent class: `name` and `compute` are enough.

    `context_bench.numbers` declares the numbers of built-in metrics, and which of them exist by dataset.
    """

    name: ClassVar[str]
    tally: ClassVar[Callable[..., Tally]]  # made with the parameters of the metric, in their order
    by_dataset: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = list_keys(str(cls.__dict__.get("name", "")), by_dataset=True)
        if declared and "by_dataset" not in cls.__dict__:
            cls.by_dataset = declared

    def start(self) -> Any:
        """Return a new tally, to which the rows of one system are added."""
        declaring: Any = next((kind for kind in type(self).__mro__ if "tally" in vars(kind)), None)
        if declaring is None:
            raise TypeError(f"the metric {self.name!r} must name its `tally`, or have a start() of its own")
        return self.tally(*(getattr(self, each.name) for each in fields(declaring)))

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        return fold(self.start(), rows)


class BatchTally:
    """A tally that adds several rows at once; one row is a batch of one."""

    def add(self, row: EvalRow) -> None:
        self.add_all((row,))

    def add_all(self, rows: Sequence[EvalRow]) -> None:
        raise NotImplementedError


class PlaceholderTally:
    """Counts nothing, for numbers that compare systems; `values` are shown until systems are compared."""

    def __init__(self, **values: float) -> None:
        self._values = values

    def add(self, row: EvalRow) -> None:
        """Ignore the row."""

    def result(self) -> dict[str, float]:
        return dict(self._values)


class ScoreCount:
    """Counts the rows behind a number computed from scores."""

    __slots__ = ("failed", "field", "scored", "unscored")

    def __init__(self, score_field: str) -> None:
        self.field = score_field
        self.scored = self.failed = self.unscored = 0

    def take(self, row: EvalRow) -> float | None:
        """Count a row and return its value in a mean; None when it does not count."""
        if row.error is not None:
            self.failed += 1
            return 0.0
        value = row.scores.get(self.field)
        if value is None:
            self.unscored += 1
        else:
            self.scored += 1
        return value

    def take_all(self, rows: Sequence[EvalRow]) -> list[tuple[EvalRow, float]]:
        """Count rows, and return those that count in a mean, each with its value."""
        values = [row.scores.get(self.field) for row in rows if row.error is None]
        if len(values) == len(rows) and None not in values:
            self.scored += len(values)
            return list(zip(rows, values))  # type: ignore[arg-type]
        return [(row, value) for row in rows if (value := self.take(row)) is not None]

    def passes(self, row: EvalRow, threshold: float) -> bool:
        """Count a row, and return whether its score reaches the threshold; a failed row has no score."""
        value = self.take(row)
        return row.error is None and value is not None and value >= threshold

    @property
    def count(self) -> int:
        """Number of rows in a mean; errors count as 0."""
        return self.scored + self.failed

    def unmeasured(self, *keys: str) -> dict[str, str]:
        """Return a reason for each key if no row has the score; a system that failed on every row keeps its 0."""
        if self.scored or (self.failed and not self.unscored):
            return {}
        reason = f"no row has the score {self.field!r}" if self.count or self.unscored else "there are no rows to score"
        return dict.fromkeys(keys, reason)


# -- intervals


def _find_cluster(row: EvalRow) -> str | None:
    """Return the cluster of a row: a document, a conversation, or the repeated example, by dataset."""
    cluster = row.metadata.get("cluster")
    if cluster is None:
        return None
    kind, name = ("group", cluster) if isinstance(cluster, str | int) else cluster
    return f"{row.dataset} {kind} {name}"


MAX_PENDING = 1024  # values that wait to be added together, which costs a fraction of adding them one by one


class MeanSpread:
    def __init__(self) -> None:
        self._sums = ScoreSums()
        self._pending: list[float] = []

    def add(self, row: EvalRow, value: float) -> None:
        if "cluster" in row.metadata:
            self._sums.add(value, _find_cluster(row))
            return
        self._pending.append(value)
        if len(self._pending) >= MAX_PENDING:
            self._add_pending()

    def add_all(self, values: Sequence[tuple[EvalRow, float]]) -> None:
        """Add the values of several rows; all at once if none belongs to a cluster."""
        if any("cluster" in row.metadata for row, _ in values):
            for row, value in values:
                self.add(row, value)
            return
        self._pending += [value for _, value in values]
        if len(self._pending) >= MAX_PENDING:
            self._add_pending()

    def _add_pending(self) -> None:
        self._sums.alone.extend(self._pending)
        self._pending.clear()

    def estimate(self) -> Mean:
        self._add_pending()
        return self._sums.estimate()

    def interval(self) -> Interval:
        return self.estimate().interval()


class RatioSpread:
    """A ratio of sums and its spread; `positive` is for costs, which are skewed and never negative."""

    def __init__(self, *, positive: bool = False) -> None:
        self._alone, self._grouped, self._clusters = RatioSums(), RatioSums(), ClusterSums()
        self._positive = positive
        self._pending: list[tuple[float, float]] = []
        self.above: float = 0
        self.below: float = 0

    @property
    def ratio(self) -> float:
        """The ratio; infinite where the denominator is 0."""
        return self.above / self.below if self.below else math.inf

    def add(self, row: EvalRow, above: float, below: float) -> None:
        self.above += above
        self.below += below
        if "cluster" not in row.metadata or (cluster := _find_cluster(row)) is None:
            self._pending.append((above, below))
            if len(self._pending) >= MAX_PENDING:
                self._add_pending()
        else:
            self._grouped.add(above, below)
            self._clusters.add(cluster, above, below)

    def add_all(self, parts: Sequence[tuple[EvalRow, float, float]]) -> None:
        """Add the two parts of several rows; all at once if none belongs to a cluster."""
        if any("cluster" in row.metadata for row, _, _ in parts):
            for row, above, below in parts:
                self.add(row, above, below)
            return
        total, under = self.above, self.below
        for _, above, below in parts:  # not `sum`, which rounds differently from Python 3.12 on
            total += above
            under += below
        self.above, self.below = total, under
        self._pending += [(above, below) for _, above, below in parts]
        if len(self._pending) >= MAX_PENDING:
            self._add_pending()

    def _add_pending(self) -> None:
        self._alone.extend(self._pending)
        self._pending.clear()

    def interval(self) -> Interval:
        self._add_pending()
        if self._clusters.shared:
            return clustered_ratio(self._clusters, self._alone, positive=self._positive)
        joined = RatioSums()
        joined.merge(self._alone)
        joined.merge(self._grouped)
        return ratio_interval(joined, positive=self._positive)


# -- facts in the metadata of a row


def read_fact(row: EvalRow, key: str) -> float | None:
    """Read a number of a row's metadata; None when there is none."""
    value = row.metadata.get(key)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def read_sides(row: EvalRow) -> tuple[float, float] | None:
    """Return the tokens sent to a system and those that it sent on; None if either is unknown, or the row failed. Also
    None if nothing was sent on only because this run repeated the example, which real traffic does not.
    """
    sent = read_fact(row, "sent_tokens")
    if row.error is not None or sent is None or row.upstream_tokens is None or was_repeated(row):
        return None
    return sent, float(row.upstream_tokens)


def was_repeated(row: EvalRow) -> bool:
    """Whether a proxy saved on a row only because the run repeats its examples."""
    return row.metadata.get("saved_by_repeating") is True


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
