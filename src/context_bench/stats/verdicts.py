"""One word for a comparison with the baseline: equivalent, better, worse, not worse, undecided.

The words are tried in that order. *Equivalent* comes first, so that a difference too small to matter is not called a
win because there were many examples. They are for quality; a cost needs no margin within which it does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from context_bench.stats.differences import MEAN_OF_DATASETS, Difference
from context_bench.stats.interval import Interval
from context_bench.stats.planning import n_for_difference, n_for_non_inferiority

__all__ = ["DEFAULT_MARGIN", "WORDS", "Contrast", "Verdict", "decide_verdict", "find_winners", "holm", "judge_family"]

WORDS = ("equivalent", "better", "worse", "not worse", "undecided")
DEFAULT_MARGIN = 0.02


@dataclass(frozen=True)
class Verdict:
    """The verdict on a system compared with the baseline.

    `interval` is the 95% one, `narrow` the 90% one, neither corrected for other comparisons; `p_holm` is corrected.
    `needed_n` is the number of examples that would decide, where this one is undecided. `word_without_errors` is the
    word when pairs in which either side failed are left out. A control (floor, ceiling, closed book) never wins.
    `groups` is the number of clusters (documents, conversations) that it goes by; None where each example counts.
    """

    word: str
    difference: float
    interval: Interval
    p: float
    p_holm: float
    margin: float
    n: int
    needed_n: int | None = None
    reason: str = ""
    name: str = ""
    control: bool = False
    word_without_errors: str | None = None
    narrow: Interval | None = None
    groups: int | None = None

    @property
    def wins(self) -> bool:
        """Whether it beats the baseline as a system that may."""
        return self.word == "better" and not self.control

    @property
    def not_worse(self) -> bool:
        """Whether savings may be claimed for it."""
        return self.word in ("equivalent", "better", "not worse")

    @property
    def errors_disagree(self) -> bool:
        """Whether the word changes when pairs with an error are left out."""
        return self.word_without_errors is not None and self.word_without_errors != self.word

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        numbers = ("difference", "p", "p_holm")
        plain = {name: None if math.isnan(getattr(self, name)) else getattr(self, name) for name in numbers}
        intervals = {"interval": self.interval.to_dict(), "narrow": self.narrow and self.narrow.to_dict()}
        return {**asdict(self), **plain, **intervals, "errors_disagree": self.errors_disagree}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Verdict:
        """Read back what `to_dict` wrote."""
        kept = {key: value for key, value in stored.items() if key != "errors_disagree"}
        numbers = {key: math.nan if stored[key] is None else stored[key] for key in ("difference", "p", "p_holm")}
        narrow = Interval.from_dict(stored["narrow"]) if stored.get("narrow") else None
        return cls(**{**kept, **numbers, "interval": Interval.from_dict(stored["interval"]), "narrow": narrow})


@dataclass(frozen=True)
class Contrast:
    """One comparison of a family: a system's difference from the baseline, also without errored pairs."""

    name: str
    difference: Difference
    without_errors: Difference | None = None
    control: bool = False


def find_needed_n(difference: Difference, margin: float, *, alpha: float = 0.05, comparisons: int = 1) -> int | None:
    """Count the examples that would decide in four runs of five, if the difference truly is what was observed."""
    if not difference.known:
        return None
    seen, spread, unseen, groups = difference.value, difference.spread, difference.unseen, difference.groups_per_pair
    ways = (
        n_for_difference(spread, seen, alpha=alpha / comparisons, unseen=unseen, groups=groups),
        n_for_non_inferiority(spread, margin, difference=seen, alpha=alpha, unseen=unseen, groups=groups),
    )
    return max((min(n for n in ways if n is not None)), difference.n + 1) if any(ways) else None


def explain_undecided(difference: Difference, needed: int | None) -> str:
    """Say why there is no verdict, and how many examples would give one."""
    if not difference.known:
        if difference.groups == 1 and difference.n > 1:
            return f"all {difference.n:,} examples are of one document or conversation"
        if difference.method == MEAN_OF_DATASETS and difference.n > 1:
            return "a dataset has too few examples, or all of one document or conversation"
        return f"too few examples: {difference.n}"
    told = "no number of examples would" if needed is None else f"about {needed:,} would"
    clusters = f" in {difference.groups:,} clusters" if difference.groups else ""
    return f"{difference.n:,} examples{clusters} do not decide; {told} if the difference stays as it is"


def _show(interval: Interval) -> str:
    places = max(3, interval.find_decimals())
    return f"the {interval.level:.0%} interval [{interval.low:.{places}f}, {interval.high:.{places}f}]"


def decide_verdict(
    difference: Difference,
    *,
    margin: float = DEFAULT_MARGIN,
    alpha: float = 0.05,
    p_holm: float | None = None,
    comparisons: int = 1,
    name: str = "",
    control: bool = False,
) -> Verdict:
    """Decide which word a difference from the baseline deserves.

    Args:
        difference: System less baseline; above 0 is better.
        margin: A difference within it does not matter.
        alpha: The level of the test.
        p_holm: The p-value corrected for the family; without it, the plain one.
        comparisons: Size of the family, for the number of examples that would decide.
        name: The system.
        control: Whether it is a floor, a ceiling or a control.
    """
    p = difference.p_value()
    corrected = p if p_holm is None else p_holm
    wide, narrow = difference.interval(1 - alpha), difference.interval(1 - 2 * alpha)
    needed = None
    if not difference.known:
        word, reason = "undecided", explain_undecided(difference, None)
    elif -margin < narrow.low and narrow.high < margin:
        word, reason = "equivalent", f"{_show(narrow)} lies within ±{margin:g}"
    elif corrected <= alpha:
        word = "better" if difference.centre > 0 else "worse"
        reason = f"corrected p {corrected:.2g} is at most {alpha:g}"
    elif narrow.low > -margin:
        word, reason = "not worse", f"{_show(narrow)} stays above -{margin:g}"
    else:
        needed = find_needed_n(difference, margin, alpha=alpha, comparisons=comparisons)
        word, reason = "undecided", explain_undecided(difference, needed)
    return Verdict(
        *(word, difference.value, wide, p, corrected, margin, difference.n, needed, reason),
        name=name,
        control=control,
        narrow=narrow,
        groups=difference.groups,
    )


def judge_family(
    contrasts: Sequence[Contrast], *, margin: float = DEFAULT_MARGIN, alpha: float = 0.05
) -> list[Verdict]:
    """Decide all comparisons of a family, corrected by Holm; again without errored pairs where that is given.

    Controls are outside the family, as they cannot win: their p-value is not corrected, and corrects no other.
    """
    verdicts = _judge([(each, each.difference) for each in contrasts], margin, alpha)
    if all(each.without_errors is None for each in contrasts):
        return verdicts
    clean = _judge([(each, each.without_errors or each.difference) for each in contrasts], margin, alpha)
    return [
        verdict if each.without_errors is None else replace(verdict, word_without_errors=other.word)
        for each, verdict, other in zip(contrasts, verdicts, clean)
    ]


def _judge(family: Sequence[tuple[Contrast, Difference]], margin: float, alpha: float) -> list[Verdict]:
    competing = [math.nan if each.control else difference.p_value() for each, difference in family]
    size = max(1, sum(not math.isnan(p) for p in competing))
    return [
        decide_verdict(
            difference,
            margin=margin,
            alpha=alpha,
            p_holm=None if each.control else corrected,
            comparisons=1 if each.control else size,
            name=each.name,
            control=each.control,
        )
        for (each, difference), corrected in zip(family, holm(competing))
    ]


def find_winners(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Give those that beat the baseline and may, the largest difference first."""
    return sorted((each for each in verdicts if each.wins), key=lambda each: -each.difference)


def holm(p_values: Sequence[float]) -> list[float]:
    """Give the corrected p-values, in the order given; one that is NaN stays so and is not counted."""
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected, largest = [math.nan] * len(p_values), 0.0
    for step, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - step)))
        corrected[place] = largest
    return corrected
