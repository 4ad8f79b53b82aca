"""Decisions on claims: the verdict is whether the number holds; the validity is whether the data could show otherwise.

A number on fixed data is reproduced or differs, without interval and p-value. A claimed effect has a region: it is
supported if the 90% interval is inside the region, and refuted if the 95% interval is outside, with Holm's correction
over all effects of a page. A claim about every example is refuted by one counterexample, and never supported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from context_bench.claims.claim import Claim
from context_bench.compare.pairing import compare_answers, gather_answers
from context_bench.metrics.quality import MeanTally
from context_bench.numbers import MEAN_SCORE
from context_bench.results import EvalResult, EvalRow
from context_bench.stats import Interval, holm
from context_bench.stats.distributions import normal_quantile
from context_bench.text import count_things

ALPHA = 0.05
SUPPORT_LEVEL = 0.90
GOOD, BAD = ("reproduced", "supported"), ("differs", "refuted")
OPEN = ("undecided", "not reproducible", "not recomputed")
COUNTED = "counted"
SEEING = (COUNTED, "shown")
"""Validities which mean that the data could have shown the opposite."""
_STEPS = 40  # of the bisection for a p-value

IntervalAt = Callable[[float], Interval]


@dataclass(frozen=True)
class Measured:
    """Measurement for a claim."""

    value: float = math.nan  # in the unit of the claim
    n: int = 0  # examples
    interval: IntervalAt | None = None  # of an effect, at a level
    failed: Sequence[str] = ()  # for `always`: examples that failed in every repeat, unlike with the baseline
    once: bool = False  # whether a model gave the answers, each only once
    scored: bool = False  # whether it is a score, which only data that can show losses makes valid
    validity: str = "not judged"  # whether the data can show losses: a word of the blind-spot check
    data: str = ""  # SHA-256 of the data
    version: str = ""  # of the system
    made: str = ""  # date of the run
    how: str = ""  # source of the value
    problem: str = ""  # reason for a missing value


@dataclass(frozen=True)
class Decision:
    """Verdict on a claim, with its validity."""

    claim: Claim
    word: str
    reason: str
    validity: str
    measured: Measured

    @property
    def verdict(self) -> str:
        """Verdict as shown; if the data could not show a loss, a correct number is said not to measure loss."""
        blind = self.word in GOOD and self.validity == "none"
        return f"{self.word}; does not measure loss" if blind else self.word

    @property
    def green(self) -> bool:
        return self.word in GOOD and self.validity in SEEING


def find_code(decisions: Sequence[Decision]) -> int:
    """Return the exit code: 1 if a claim differs or is refuted, 4 if one is open, else 0."""
    words = {each.word for each in decisions}
    return 1 if words & {*BAD} else 4 if words & {*OPEN} else 0


def decide_all(claims: Sequence[Claim], measured: Sequence[Measured]) -> list[Decision]:
    """Decide the claims of a page, with one correction over all effects."""
    pairs = list(zip(claims, measured))
    effects = [
        compute_p(claim.region, found.interval) if claim.kind == "effect" and found.interval else math.nan
        for claim, found in pairs
    ]
    return [decide(claim, found, p) for (claim, found), p in zip(pairs, holm(effects))]


def decide(claim: Claim, found: Measured, p_holm: float = math.nan) -> Decision:
    """Decide one claim; `p_holm` is the corrected p-value of an effect outside its region."""
    if claim.missing:
        word, reason = "not reproducible", f"missing: {claim.missing}"
    elif found.problem:
        word, reason = "not recomputed", found.problem
    elif claim.data and found.data and not found.data.startswith(claim.data):
        word, reason = "not reproducible", f"the data here differs (SHA-256 {found.data[:16]}…)"
    elif claim.version and found.version not in ("", claim.version):
        word, reason = "not reproducible", f"the version here is {found.version}, not {claim.version}"
    elif claim.kind == "number":
        word, reason = _decide_number(claim, found)
    elif claim.kind == "effect":
        word, reason = _decide_effect(claim, found, p_holm)
    else:
        word, reason = _decide_always(found)
    validity = found.validity if claim.says == "loss" or found.scored else COUNTED
    if word not in OPEN[1:] and "" < found.made < claim.decided:
        reason += f"; its terms were set after this run of {found.made}"
    if word not in OPEN[1:] and claim.data and not found.data and not claim.bundle:
        reason += "; the data was not verified"
    return Decision(claim, word, reason, "–" if word in OPEN[1:] else validity, found)


def _decide_number(claim: Claim, found: Measured) -> tuple[str, str]:
    low, high = claim.region
    slack = 1e-9 * max(1.0, abs(claim.number))
    if low - slack <= found.value <= high + slack:
        return "reproduced", claim.show(found.value)
    more = 1 if claim.unit else 0
    return "differs", f"{claim.show(found.value, more)} (claimed {claim.show(claim.number)})"


def _decide_effect(claim: Claim, found: Measured, p_holm: float) -> tuple[str, str]:
    if found.interval is None:
        return "undecided", "this number has no interval"
    fixed = "" if claim.published_n else "; published without n, so treated as a fixed value"
    narrow, (low, high) = found.interval(SUPPORT_LEVEL), claim.region
    shown = f"{claim.show(found.value)} [{narrow.low:.{claim.digits + 1}f}, {narrow.high:.{claim.digits + 1}f}] (90%)"
    if narrow.known and low <= narrow.low and narrow.high <= high:
        return "supported", f"{shown} lies within the claimed {_show_region(claim)}{fixed}"
    if p_holm <= ALPHA:
        return "refuted", f"{shown} lies outside the claimed {_show_region(claim)}, p = {p_holm:.2g}{fixed}"
    return "undecided", f"{shown}, claimed {_show_region(claim)}; {_estimate_n(claim, found, narrow)}{fixed}"


def _decide_always(found: Measured) -> tuple[str, str]:
    if found.failed:
        shown = f"{count_things(len(found.failed), 'counterexample')} in {found.n:,}, such as {found.failed[0]}"
        return (
            ("undecided", f"{shown}, each seen once: run with --repeats to confirm")
            if found.once
            else ("refuted", shown)
        )
    if not found.n:
        return "not reproducible", "it applies to no example of the run"
    return "not refuted", f"no counterexample in {found.n:,}; at most {1 - ALPHA ** (1 / found.n):.2%} at 95%"


def _show_region(claim: Claim) -> str:
    low, high = claim.region
    shown = [f"{each:.{claim.digits + 1}f}" if math.isfinite(each) else "" for each in (low, high)]
    return f"[{', '.join(shown)}]" if all(shown) else f"range, {claim.direction} {shown[0] or shown[1]}"


def _estimate_n(claim: Claim, found: Measured, narrow: Interval) -> str:
    """Estimate how many examples would decide the claim, at the current distance from the edge and at half of it."""
    low, high = claim.region
    room = min(abs(found.value - edge) for edge in (low, high) if math.isfinite(edge))
    half = max(narrow.high - found.value, found.value - narrow.low)
    if not narrow.known or room <= 0 or not found.n:
        return "the number of examples needed is unknown"
    least, most = (math.ceil(found.n * (half / each) ** 2) for each in (room, room / 2))
    return f"about {max(found.n + 1, least):,} to {max(found.n + 1, most):,} examples would decide"


def compute_p(region: tuple[float, float], interval: IntervalAt) -> float:
    """Return the two-sided p-value of a value outside the region, by bisection; 1 if the value is inside."""

    def is_outside(level: float) -> bool:
        found = interval(level)
        return found.known and (found.high < region[0] or found.low > region[1])

    least, most = 0.0, 1.0
    if not is_outside(1e-9):
        return 1.0
    for _ in range(_STEPS):
        middle = (least + most) / 2
        least, most = (least, middle) if is_outside(1 - middle) else (middle, most)
    return most


# --- measurements from a result


def measure(claim: Claim, result: EvalResult, rows: Sequence[EvalRow], how: str, data: str = "") -> Measured:
    """Measure a claim from a result, in the unit of the claim."""
    system = claim.system if claim.system in result.summary else None
    if system is None:
        return Measured(problem=f"the run has no system {claim.system!r}; it has {', '.join(result.summary)}")
    tags = result.settings.datasets
    if claim.dataset and claim.dataset not in tags:
        return Measured(problem=f"the run has no dataset {claim.dataset!r}; it has {', '.join(tags)}")
    own = [row for row in rows if row.system == system and claim.dataset in ("", row.dataset)]
    day = (result.settings.run or "").partition("-")[0]  # a run's id begins with its date
    made = f"{day[:4]}-{day[4:6]}-{day[6:]}" if day.isdigit() else ""
    found = Measured(n=len(own), how=how, data=data, made=made, validity=_find_validity(claim, result))
    baseline = "" if result.comparison is None else result.comparison.baseline
    usual = [row for row in rows if row.system == baseline and claim.dataset in ("", row.dataset)]
    scale = 100.0 if claim.unit == "%" else 1.0
    at: IntervalAt | None
    if claim.kind == "always":
        others = [] if system == baseline else usual
        return _find_counterexamples(claim, own, others, replace(found, scored=True))
    if claim.metric == "difference":
        field = result.settings.score_field
        answers = gather_answers(own, field), gather_answers(usual, field)
        difference = compare_answers(*answers)
        at = partial(_scale_at, difference.interval, scale)
        return replace(found, value=scale * difference.value, n=difference.n, interval=at, scored=True)
    tally = MeanTally(result.settings.score_field if claim.metric == MEAN_SCORE else claim.metric)
    tally.add_all(own)
    if any(claim.metric in (MEAN_SCORE, *row.scores) for row in own):
        at = partial(_scale_at, tally.spread.estimate().interval, scale)
        return replace(found, value=scale * tally.mean, n=tally.count, interval=at, scored=True)
    name = f"{claim.metric}@{claim.dataset}" if claim.dataset and len(tags) > 1 else claim.metric
    if name not in result.summary[system]:
        return Measured(problem=f"{system!r} has no number and no score {name!r}")
    value = result.summary[system][name]
    if math.isnan(value):
        return Measured(problem=f"{name} of {system!r} is {result.notes.get(system, {}).get(name, 'not measured')}")
    known = result.intervals.get(system, {}).get(name)
    at = None if known is None else partial(_scale_at, partial(_stretch, known), scale)
    return replace(found, value=scale * value, interval=at)


def _find_counterexamples(
    claim: Claim, rows: Sequence[EvalRow], baseline: Sequence[EvalRow], found: Measured
) -> Measured:
    """Find the examples that failed in every repeat; occasional failures are not reproducible.

    Examples that also fail with the baseline are ignored.
    """
    best, usual = (_find_best(claim, each) for each in (rows, baseline))
    counted = {name: score for name, score in best.items() if usual.get(name, math.inf) >= claim.at_least}
    failed = [name for name, score in counted.items() if score < claim.at_least]
    answered = any(row.metadata.get("output") == "response" for row in rows)
    return replace(found, n=len(counted), failed=failed, once=answered and len(rows) == len(best))


def _find_best(claim: Claim, rows: Sequence[EvalRow]) -> dict[str, float]:
    best: dict[str, float] = {}
    for row in rows:
        score = row.scores.get(claim.metric)
        if score is not None:
            name = f"{row.dataset} {row.example_id}".strip()
            best[name] = max(score, best.get(name, -math.inf))
    return best


def _find_validity(claim: Claim, result: EvalResult) -> str:
    """Return whether the data could show a loss of this system, if the claim is about the score of the run."""
    compared, field = result.comparison, result.settings.score_field
    if compared is None or claim.metric not in (field, MEAN_SCORE, "difference"):
        return "not judged"
    by_system = compared.sensitivity_by_dataset.get(claim.dataset, {}) if claim.dataset else compared.sensitivity
    known = by_system.get(claim.system)
    return "not judged" if known is None else known.word


def _stretch(interval: Interval, level: float) -> Interval:
    """Convert an interval to another level, by a normal approximation on each side."""
    factor = normal_quantile((1 + level) / 2) / normal_quantile((1 + interval.level) / 2)
    low, high = (interval.value + factor * (end - interval.value) for end in (interval.low, interval.high))
    return replace(interval, low=low, high=high, level=level)


def _scale_at(interval: IntervalAt, scale: float, level: float) -> Interval:
    return interval(level).multiply(scale)


def read_measured(values: dict[str, Any], claim: Claim, how: str) -> Measured:
    """Read the return value of a claim's function: a result, or a value with its details."""
    result = values.get("result")
    known = {key: values[key] for key in ("n", "data", "version", "validity", "failed") if key in values}
    if isinstance(result, EvalResult):
        return replace(measure(claim, result, result.rows, how), **known)
    return Measured(value=float(values.get("value", math.nan)), how=how, **known)
