"""One word for a comparison with the baseline: equivalent, better, worse, not worse, undecided.

The words are tried in that order. *Equivalent* comes first, so that a difference too small to matter is not called a
win just because there are many examples. The words are for quality; costs need no margin. A verdict over documents
or conversations also covers others like them, unless the groups are fixed: then only these matter, and each example
counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from context_bench.config import DEFAULT_MARGIN
from context_bench.stats.differences import (
    MEAN_OF_DATASETS,
    SAME,
    Difference,
    PairedSums,
    average_differences,
    paired_difference,
)
from context_bench.stats.distributions import beta_quantile
from context_bench.stats.interval import Interval
from context_bench.stats.planning import find_least, least_n, n_for_difference, n_for_equivalence, n_for_non_inferiority

__all__ = [
    "ALL_GROUPS",
    "DEFAULT_MARGIN",
    "THESE_GROUPS",
    "WORDS",
    "Contrast",
    "Needed",
    "Verdict",
    "decide_verdict",
    "find_needed",
    "holm",
    "judge_family",
    "least_n_of_each",
]

WORDS = ("equivalent", "better", "worse", "not worse", "undecided")
ALL_GROUPS, THESE_GROUPS = "all groups", "these groups"
"""What a verdict covers: all documents or conversations like those of the run, or only those of the run."""
PESSIMISTIC = 0.8  # quantile of the share of discordant examples that a plan after an undecided run assumes


@dataclass(frozen=True)
class Verdict:
    """The verdict on a system compared with the baseline.

    `interval` is the 95% interval, `narrow` the 90% interval, neither corrected for other comparisons; `p_holm` is
    corrected. `narrow` decides "equivalent" and "not worse". Where the word is undecided, `needed_n` is the least
    number of examples that would decide if the difference stays the same, and `needed_n_if_equal` the number if there
    is no difference; `promised` is false if the 90% interval contains the margin, so that neither number is sure to
    suffice. `word_without_errors` is the word when pairs in which either side failed are left out. A control (floor,
    ceiling, closed book) never wins. `groups` is the number of clusters (documents, conversations) that count; None if
    each example counts. `scope` is "these groups" if the word, or the word in the reason of an undecided one, holds
    only for the groups of the run.
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
    needed_n_if_equal: int | None = None
    promised: bool = True
    scope: str = ALL_GROUPS

    @property
    def wins(self) -> bool:
        """Whether the system is better than the baseline and not a control."""
        return self.word == "better" and not self.control

    @property
    def not_worse(self) -> bool:
        """Whether savings may be claimed for the system."""
        return self.word in ("equivalent", "better", "not worse")

    @property
    def errors_disagree(self) -> bool:
        """Whether the verdict changes if pairs with an error are left out."""
        return self.word_without_errors is not None and self.word_without_errors != self.word

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for strict JSON."""
        numbers = ("difference", "p", "p_holm")
        plain = {name: None if math.isnan(getattr(self, name)) else getattr(self, name) for name in numbers}
        intervals = {"interval": self.interval.to_dict(), "narrow": self.narrow and self.narrow.to_dict()}
        return {**asdict(self), **plain, **intervals, "errors_disagree": self.errors_disagree}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Verdict:
        """Read the dict of `to_dict`."""
        kept = {key: value for key, value in stored.items() if key != "errors_disagree"}
        numbers = {key: math.nan if stored[key] is None else stored[key] for key in ("difference", "p", "p_holm")}
        narrow = Interval.from_dict(stored["narrow"]) if stored.get("narrow") else None
        return cls(**{**kept, **numbers, "interval": Interval.from_dict(stored["interval"]), "narrow": narrow})


@dataclass(frozen=True)
class Contrast:
    """One comparison of a family: a system's difference from the baseline, with and without errored pairs."""

    name: str
    difference: Difference
    without_errors: Difference | None = None
    control: bool = False


@dataclass(frozen=True)
class Needed:
    """How many examples would decide: if the difference stays the same, and if there is no difference.

    `promised` is false if the interval contains the margin: the true difference may equal the margin, and then no
    number of examples decides.
    """

    if_same: int | None = None
    if_equal: int | None = None
    promised: bool = True

    def describe(self) -> str:
        """Write the range as a part of a sentence; empty without a number."""
        parts = [f"at least {self.if_same:,} examples if the difference stays the same"] if self.if_same else []
        parts += [f"{self.if_equal:,} if there is none"] if self.if_equal else []
        return ", ".join(parts) + ("" if self.promised else "; even these may not be enough")


def find_needed(difference: Difference, margin: float, *, alpha: float = 0.05, comparisons: int = 1) -> Needed:
    """Count the examples that would decide in four runs of five.

    If there is no difference, the discordant share is taken at its upper 80% limit: the observed share may be low
    by chance.
    """
    if not difference.known:
        return Needed()
    scores, value, n = difference.independent is not None, difference.value, difference.n
    size = difference.independent or n
    spread = difference.spread * math.sqrt(size / n)
    ways = (
        n_for_difference(spread, value, alpha=alpha / comparisons, scores=scores),
        n_for_non_inferiority(spread, margin, difference=value, alpha=alpha, scores=scores),
    )
    changed = min(size, (spread * spread + value * value) * size) if scores else 0.0
    if size - changed > SAME * size:
        spread = math.sqrt(beta_quantile(PESSIMISTIC, changed + 1, size - changed)) if scores else spread
    equal = n_for_equivalence(spread, margin, alpha=alpha, scores=scores)

    def scale(number: int) -> int:
        return max(math.ceil(number * n / size), n + 1)

    low, high = difference.limits(alpha)
    return Needed(
        min((scale(each) for each in ways if each is not None), default=None),
        None if equal is None else scale(equal),
        promised=not any(low <= end <= high for end in (-margin, margin)),
    )


def explain_undecided(difference: Difference, needed: Needed) -> str:
    """Explain why there is no verdict, and how many examples would give one."""
    if not difference.known:
        if difference.groups == 1 and difference.n > 1:
            return f"all {difference.n:,} examples are of one document or conversation"
        if difference.method == MEAN_OF_DATASETS and difference.n > 1:
            return "a dataset has too few examples, or all of one document or conversation"
        return f"too few examples: {difference.n}"
    clusters = f" in {difference.groups:,} clusters" if difference.groups else ""
    told = needed.describe()
    return f"{difference.n:,} examples{clusters} do not decide" + (f"; it takes {told}" if told else "")


def _show(interval: Interval) -> str:
    places = max(3, interval.find_decimals())
    return f"the {interval.level:.0%} interval [{interval.low:.{places}f}, {interval.high:.{places}f}]"


def _find_margin_word(narrow: Interval, margin: float) -> tuple[str, str]:
    """Find the word that the 90% interval alone supports, with the reason; undecided if none."""
    if narrow.known and -margin < narrow.low and narrow.high < margin:
        return "equivalent", f"{_show(narrow)} lies within ±{margin:g}"
    if narrow.known and narrow.low > -margin:
        return "not worse", f"{_show(narrow)} stays above -{margin:g}"
    return "undecided", ""


def name_groups(difference: Difference) -> str:
    """Name the groups of a run for a sentence."""
    return f"these {difference.groups or 0:,} conversations or documents"


def decide_verdict(
    difference: Difference,
    *,
    margin: float = DEFAULT_MARGIN,
    alpha: float = 0.05,
    p_holm: float | None = None,
    comparisons: int = 1,
    name: str = "",
    control: bool = False,
    fixed_groups: bool = False,
) -> Verdict:
    """Choose the word for a difference from the baseline; `p_holm` is corrected for the family of `comparisons`.

    With `fixed_groups` only the documents or conversations of the run matter: "equivalent" and "not worse" then count
    rows. Better and worse keep their p-value.
    """
    p = difference.p_value()
    corrected = p if p_holm is None else p_holm
    word, reason, scope = _find_word(difference, margin, alpha, corrected, fixed_groups)
    needed = Needed()
    if word == "undecided":
        needed = find_needed(difference, margin, alpha=alpha, comparisons=comparisons)
        reason = reason or explain_undecided(difference, needed)
    return Verdict(
        *(word, difference.value, difference.interval(1 - alpha), p, corrected, margin, difference.n),
        needed_n=needed.if_same,
        reason=reason,
        name=name,
        control=control,
        narrow=choose_judged(difference, fixed_groups).narrow(alpha),
        groups=difference.groups,
        needed_n_if_equal=needed.if_equal,
        promised=needed.promised,
        scope=scope,
    )


@lru_cache
def least_n_of_each(margin: float, datasets: int) -> int | None:
    """Return the smallest number of examples per dataset that can show "equivalent" over several, if no answer
    changes."""

    def is_enough(n: int) -> bool:
        same = paired_difference(PairedSums(n))
        return _find_margin_word(average_differences([same] * datasets).narrow(), margin)[0] == "equivalent"

    return least_n(margin) if datasets == 1 else find_least(is_enough)


def choose_judged(difference: Difference, fixed_groups: bool) -> Difference:
    """Choose the difference that decides "equivalent" and "not worse": by row if the groups are fixed."""
    return difference.rows or difference if fixed_groups else difference


def _find_word(
    difference: Difference, margin: float, alpha: float, corrected: float, fixed_groups: bool
) -> tuple[str, str, str]:
    """Find the word with its reason and scope; the reason may be empty if the word is "undecided"."""
    judged = choose_judged(difference, fixed_groups)
    fixed = judged is not difference
    word, reason = _find_margin_word(judged.narrow(alpha), margin)
    if difference.known and word != "equivalent" and corrected <= alpha:
        word = "better" if difference.centre > 0 else "worse"
        shown = "< 0.001" if corrected < 0.001 else f"= {corrected:.2g}"
        return word, f"corrected p {shown} (limit {alpha:g})", ALL_GROUPS
    if word != "undecided":
        here = f" on {name_groups(difference)}, ignoring all others (--fixed-groups)" if fixed else ""
        return word, reason + here, THESE_GROUPS if fixed else ALL_GROUPS
    here = "undecided" if difference.rows is None else _find_margin_word(difference.rows.narrow(alpha), margin)[0]
    if here == "undecided":
        return word, "", ALL_GROUPS
    least = least_n(margin, alpha=alpha)
    return word, f"{here} on {name_groups(difference)}; a verdict beyond these takes at least {least:,}", THESE_GROUPS


def judge_family(
    contrasts: Sequence[Contrast], *, margin: float = DEFAULT_MARGIN, alpha: float = 0.05, fixed_groups: bool = False
) -> list[Verdict]:
    """Decide all comparisons of a family, corrected by Holm.

    If contrasts without errored pairs are given, decide these too. Controls cannot win, so they are outside the
    family: their p-values are not corrected and affect no others.
    """
    corrected = _correct([(each, each.difference) for each in contrasts])
    size = max(1, sum(not each.control and not math.isnan(p) for each, p in zip(contrasts, corrected)))
    verdicts = [
        decide_verdict(
            each.difference,
            margin=margin,
            alpha=alpha,
            p_holm=p,
            comparisons=1 if each.control else size,
            name=each.name,
            control=each.control,
            fixed_groups=fixed_groups,
        )
        for each, p in zip(contrasts, corrected)
    ]
    clean = [(each, each.without_errors or each.difference) for each in contrasts]
    return [
        verdict
        if each.without_errors is None
        else replace(verdict, word_without_errors=_find_word(difference, margin, alpha, p, fixed_groups)[0])
        for (each, difference), verdict, p in zip(clean, verdicts, _correct(clean))
    ]


def _correct(family: Sequence[tuple[Contrast, Difference]]) -> list[float]:
    corrected = holm([math.nan if each.control else difference.p_value() for each, difference in family])
    return [difference.p_value() if each.control else p for (each, difference), p in zip(family, corrected)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the corrected p-values in the given order; NaN stays NaN and is not counted."""
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected, largest = [math.nan] * len(p_values), 0.0
    for step, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - step)))
        corrected[place] = largest
    return corrected
