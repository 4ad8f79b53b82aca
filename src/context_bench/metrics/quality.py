"""Quality over all rows: means of a score, shares that pass, and the share of the context's benefit that a system
keeps.

An errored row counts as 0, since a system that fails did not pass; a row without the score (nothing to judge) is left
out. The functions that compare two texts can be imported from here too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.running import BatchTally, MeanSpread, PlaceholderTally, RunningMetric, ScoreCount, mean
from context_bench.numbers import MACRO_SCORE, MEAN_SCORE, NUM_EXAMPLES, NUM_UNSCORED, PASS_AT_K, PASS_RATE
from context_bench.results import EvalRow
from context_bench.stats import (
    Interval,
    RepeatedAnswers,
    average_means,
    flip_share,
    pass_all_k,
    pass_at_k,
    repeat_share,
)
from context_bench.text.golds import exact_match, f1_score, normalize_answer, recall_score
from context_bench.traits import MetricTraits

__all__ = [
    "CardPassRate",
    "MeanScore",
    "MeanTally",
    "OfficialScore",
    "PassRate",
    "PerDatasetBreakdown",
    "Repeats",
    "Retention",
    "exact_match",
    "f1_score",
    "normalize_answer",
    "recall_score",
]


class MeanTally(BatchTally):
    """Adds up scores; the sum is exact, so the order of rows does not matter."""

    def __init__(self, score_field: str) -> None:
        self._rows = ScoreCount(score_field)
        self._partials: list[float] = []
        self.spread = MeanSpread()

    def add_all(self, rows: Sequence[EvalRow]) -> None:
        """Add several rows at once."""
        counted = self._rows.take_all(rows)
        self.spread.add_all(counted)
        self._partials += [value for _, value in counted]
        if len(self._partials) >= 1024:
            self._partials = _exact_parts(self._partials)

    @property
    def count(self) -> int:
        return self._rows.count

    @property
    def mean(self) -> float:
        return math.fsum(self._partials) / self.count if self.count else 0.0

    def explain_unmeasured(self) -> str:
        """Return why there is no mean; empty if there is one."""
        return self._rows.unmeasured(MEAN_SCORE).get(MEAN_SCORE, "")

    def result(self) -> dict[str, float]:
        return {MEAN_SCORE: self.mean}

    def unmeasured(self) -> dict[str, str]:
        return self._rows.unmeasured(MEAN_SCORE)

    def intervals(self) -> dict[str, Interval]:
        return {MEAN_SCORE: self.spread.interval()}


@dataclass(frozen=True)
class MeanScore(RunningMetric):
    """The mean of one score over the rows that have it; 0.0 when none has."""

    score_field: str = "score"
    name = "mean-score"
    tally = MeanTally


def _exact_parts(values: list[float]) -> list[float]:
    """Reduce numbers to a few with exactly the same sum: each holds the rounding error of those before it."""
    parts: list[float] = []
    while (rest := math.fsum([*values, *(-part for part in parts)])) and math.isfinite(rest):
        parts.append(rest)
    return parts or [math.fsum(values)]


class PassTally(BatchTally):
    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._passing = 0
        self._spread = MeanSpread()

    def add_all(self, rows: Sequence[EvalRow]) -> None:
        """Add several rows at once."""
        passes = [(row, value >= self._threshold) for row, value in self._rows.take_all(rows)]
        self._passing += sum([passed for _, passed in passes])
        self._spread.add_all(passes)

    def result(self) -> dict[str, float]:
        return {PASS_RATE: self._passing / self._rows.count if self._rows.count else 0.0}

    def unmeasured(self) -> dict[str, str]:
        return self._rows.unmeasured(PASS_RATE)

    def intervals(self) -> dict[str, Interval]:
        return {PASS_RATE: self._spread.interval()}


@dataclass(frozen=True)
class PassRate(RunningMetric):
    """The share of rows whose score reaches the threshold; a score equal to it passes."""

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "pass-rate"
    tally = PassTally


class CardPassTally:
    def __init__(self, score_field: str) -> None:
        self._rows = ScoreCount(score_field)
        self._passing = 0
        self._thresholds: set[float] = set()

    def add(self, row: EvalRow) -> None:
        threshold = row.metadata.get("card_threshold")
        if not isinstance(threshold, (int, float)):
            return
        self._thresholds.add(float(threshold))
        value = self._rows.take(row)
        if value is not None:
            self._passing += value >= threshold

    def result(self) -> dict[str, float]:
        if not self._thresholds:
            return {}
        values = {"card_pass_rate": self._passing / self._rows.count if self._rows.count else 0.0}
        if len(self._thresholds) == 1:
            values["card_threshold"] = next(iter(self._thresholds))
        return values

    def unmeasured(self) -> dict[str, str]:
        return self._rows.unmeasured("card_pass_rate") if self._thresholds else {}

    def notes(self) -> dict[str, str]:
        if not self._thresholds:
            return {}
        shown = ", ".join(f"{threshold:g}" for threshold in sorted(self._thresholds))
        return {"card_pass_rate": f"the share with a score of at least {shown}, as the dataset's card recommends"}


@dataclass(frozen=True)
class CardPassRate(RunningMetric):
    """`card_pass_rate` over the rows whose card recommends a threshold, and `card_threshold` if the cards agree. Hardly
    any system reaches a ROUGE score of 0.7, so cards may recommend a lower one. Rows name the threshold of their card
    in their metadata; without any such row there is no number.
    """

    score_field: str = "score"
    name = "card-pass-rate"
    tally = CardPassTally


class BreakdownTally:
    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._means: dict[str, MeanTally] = {}

    def add(self, row: EvalRow) -> None:
        tag = row.dataset or "unknown"
        if tag not in self._means:
            self._means[tag] = MeanTally(self._field)
        self._means[tag].add(row)

    def result(self) -> dict[str, float]:
        means = {f"dataset:{tag}": self._means[tag].mean for tag in sorted(self._means)}
        scored = self._list_scored()
        if len(scored) > 1:
            means[MACRO_SCORE] = mean([each.mean for each in scored.values()])
        return means

    def _list_scored(self) -> dict[str, MeanTally]:
        return {tag: each for tag, each in sorted(self._means.items()) if not each.explain_unmeasured()}

    def intervals(self) -> dict[str, Interval]:
        known = {f"dataset:{tag}": each.spread.interval() for tag, each in self._means.items() if each.count}
        scored = self._list_scored()
        if len(scored) > 1:
            known[MACRO_SCORE] = average_means([each.spread.estimate() for each in scored.values()])
        return known

    def notes(self) -> dict[str, str]:
        scored = self._list_scored()
        left_out = [tag for tag in sorted(self._means) if tag not in scored]
        if not left_out or not scored:
            return {}
        return {MACRO_SCORE: f"only over {', '.join(scored)}: no row of {', '.join(left_out)} has a score"}

    def unmeasured(self) -> dict[str, str]:
        return {f"dataset:{tag}": why for tag, each in self._means.items() if (why := each.explain_unmeasured())}


@dataclass(frozen=True)
class PerDatasetBreakdown(RunningMetric):
    """Mean of a score for each dataset tag, as `dataset:<tag>`; rows without a tag are `unknown`.

    `macro_score` is the mean of those means, over the datasets that have a scored row: each dataset counts the same,
    however many examples it has.
    """

    score_field: str = "f1"
    name = "per-dataset-breakdown"
    tally = BreakdownTally


class OfficialTally:
    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._counts: dict[str, ScoreCount] = {}
        self._groups: dict[str, dict[str, MeanTally]] = {}
        self._weighted: dict[str, list[tuple[float, float]]] = {}

    def add(self, row: EvalRow) -> None:
        group, weight = row.metadata.get("group"), row.metadata.get("weight")
        if group is None and not weight:
            return
        field = self._field if group is not None else row.metadata.get("weight_field") or self._field
        value = self._counts.setdefault(row.dataset, ScoreCount(field)).take(row)
        if group is not None:
            groups = self._groups.setdefault(row.dataset, {})
            groups.setdefault(str(group), MeanTally(self._field)).add(row)
        elif value is not None and weight:
            self._weighted.setdefault(row.dataset, []).append((value * weight, weight))

    def result(self) -> dict[str, float]:
        numbers = {
            tag: _mean_of_groups({path: each.mean for path, each in groups.items() if each.count})
            for tag, groups in self._groups.items()
        }
        for tag, parts in self._weighted.items():
            numbers.setdefault(tag, math.fsum(earned for earned, _ in parts) / math.fsum(units for _, units in parts))
        return {_name_official(tag, numbers): numbers[tag] for tag in sorted(numbers)}

    def unmeasured(self) -> dict[str, str]:
        tags = self._groups.keys() | self._weighted.keys()
        return {
            key: why for tag in tags for key, why in self._counts[tag].unmeasured(_name_official(tag, tags)).items()
        }


@dataclass(frozen=True)
class OfficialScore(RunningMetric):
    """`official_score`, or `official:<tag>` for each of several datasets; empty if rows are simply averaged. This is
    the number that a benchmark's authors report, if it is not a mean of rows. Rows say in their metadata how they
    count. `group` is a path such as `live/simple`: rows are averaged within it, then paths level by level (the mean of
    BBH's tasks, BFCL's groups). With `weight` and `weight_field`, the number is a ratio of sums (IFEval's
    instructions): each row has `weight` units of that score. Errored rows count 0, as everywhere.
    """

    score_field: str = "score"
    name = "official-score"
    tally = OfficialTally


def _name_official(tag: str, tags: Collection[str]) -> str:
    return "official_score" if len(tags) == 1 else f"official:{tag}"


def _mean_of_groups(means: Mapping[str, float]) -> float:
    """Average each level of the paths separately, innermost first."""
    levels: dict[str, dict[str, float]] = {}
    for path, value in means.items():
        head, _, rest = path.partition("/")
        levels.setdefault(head, {})[rest] = value
    known = [_mean_of_groups(inner) if any(inner) else inner[""] for inner in levels.values()]
    return mean(known) if known else 0.0


class RepeatsTally:
    """Keeps the answers to an example until all have arrived."""

    def __init__(self, repeats: int, threshold: float, score_field: str) -> None:
        self._repeats, self._rows = repeats, ScoreCount(score_field)
        self._answers = RepeatedAnswers(repeats, threshold)

    def add(self, row: EvalRow) -> None:
        self._answers.add((row.dataset, row.example_id), self._rows.take(row))

    def intervals(self) -> dict[str, Interval]:
        sums, k = self._answers.total(), self._repeats
        return {
            PASS_AT_K: pass_at_k(sums, k),
            "pass_all_k": pass_all_k(sums, k),
            "repeat_flips": flip_share(sums),
            "repeat_variance_share": repeat_share(sums),
        }

    def result(self) -> dict[str, float]:
        return {key: 0.0 if math.isnan(each.value) else each.value for key, each in self.intervals().items()}

    def unmeasured(self) -> dict[str, str]:
        found = self.intervals()
        if missing := self._rows.unmeasured(*found):
            return missing
        reasons = dict.fromkeys(found, f"no example has {self._repeats} answers with a score")
        reasons["repeat_flips"] = "no example has two answers with a score"
        reasons["repeat_variance_share"] = "all scores are the same, or too few examples have two answers with a score"
        return {key: reasons[key] for key, interval in found.items() if math.isnan(interval.value)}


@dataclass(frozen=True)
class Repeats(RunningMetric):
    """Consistency of K answers to each example; an answer that failed counts as 0.

    An example counts once it has K answers with a score; for `repeat_flips` and `repeat_variance_share`, two are
    enough.
    """

    repeats: int = 2
    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "repeats"
    tally = RepeatsTally


@dataclass(frozen=True)
class Retention(RunningMetric):
    """(score - floor) / (direct - floor): 0 is a model without the context, 1 is one with all of it.

    Both ends are systems of the same run: the model without a context, and with all of it. Without them, or if the
    context does not help (direct is not above floor), there is no retention. Controls and systems without a score have
    none either. It may be below 0 or above 1.
    """

    floor: str = "floor"
    direct: str = "direct"
    ceiling: str = "ceiling"
    name = "retention"

    def start(self) -> PlaceholderTally:
        """Collect nothing: one system alone has no retention; see `compare`."""
        return PlaceholderTally()

    def __context_bench_traits__(self) -> MetricTraits:
        return MetricTraits(compare=self.compare)

    def compare(self, summary: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        scores = {
            name: values[MEAN_SCORE]
            for name, values in summary.items()
            if not math.isnan(values.get(MEAN_SCORE, math.nan))
            and values.get(NUM_EXAMPLES) != values.get(NUM_UNSCORED, 0)
        }
        floor, direct = scores.get(self.floor), scores.get(self.direct)
        if floor is None or direct is None or direct <= floor:
            return {}
        controls = (self.floor, self.direct, self.ceiling)
        return {
            name: {"retention": (score - floor) / (direct - floor)}
            for name, score in scores.items()
            if name not in controls
        }
