"""A gate for CI: conditions under which a run fails, each judged for every system under test.

Differences from the baseline are judged by their 90% interval, which also decides "not worse". Other numbers are judged
by the 95% interval of the report, or by the value alone if there is no interval; the sentence then says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from context_bench.compare.conditions import FAILS, HOLDS, Condition, GateJudgement
from context_bench.compare.runs import RunComparison
from context_bench.compare.verdicts import choose_baseline
from context_bench.errors import UsageError, suggest
from context_bench.numbers import (
    ERROR_RATE,
    MACRO_SCORE,
    MEAN_SCORE,
    PASS_RATE,
    find_saved_key,
    find_score_key,
    get_number,
)
from context_bench.results import EvalResult
from context_bench.stats import TOO_FEW, Interval, Verdict, share_interval
from context_bench.stats.planning import find_least
from context_bench.stats.verdicts import least_n_of_each

EXIT_CODES = {FAILS: 1, TOO_FEW: 4, HOLDS: 0}  # in order of precedence

_MAX_NAMES = 12


@dataclass(frozen=True)
class GateOutcome:
    """The outcome of one condition for one system (holds, fails or too few), with a sentence that explains it."""

    system: str
    condition: str
    outcome: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """Return the fields for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Numbers:
    """The summary of one system, with its known intervals."""

    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """A system under test."""

    name: str  # as the report calls it
    numbers: Numbers
    score: str  # the key that `score` means
    baseline: Numbers | None = None  # the numbers of the system that it is compared with
    verdict: Verdict | None = None  # of the comparison, if there is one
    context_unneeded: str = ""  # why its examples cannot show a loss; empty if they can
    unlike: str = ""  # why it cannot be compared with the baseline; empty if it can
    blind: str = ""  # why these examples cannot distinguish it from a naive cut of equal size; empty if they can


def _find_tested(systems: Sequence[str], baseline: str | None, controls: Sequence[str]) -> list[str]:
    """Find the systems under test: all but baseline and controls, or the baseline if nothing else remains."""
    competing = [name for name in systems if name not in controls]
    return [name for name in competing if name != baseline] or competing


def check_conditions(
    conditions: Sequence[Condition], systems: Sequence[str], baseline: str | None, controls: Sequence[str]
) -> None:
    """Refuse conditions that no run of these systems can answer, before any request is sent.

    Raises:
        UsageError: A condition compares with a baseline, and the run has no system to compare.
    """
    chosen = choose_baseline(systems, baseline, controls)
    others = [name for name in systems if name not in controls and name != chosen]
    for condition in conditions:
        if condition.needs_baseline and (chosen is None or not others):
            raise UsageError(
                f"--fail-if {condition.text!r} needs a baseline in addition to the judged system: add --system "
                "passthrough or --controls, or use `context-bench compare` with an earlier run"
            )


def count_needed(condition: Condition, datasets: int, margin: float) -> int | None:
    """Count the examples of each dataset that a condition needs to pass if no answer changes or fails.

    None if the count depends on the measurements, or if no number is enough.
    """
    limit, score = condition.number, condition.metric in ("score", MEAN_SCORE, MACRO_SCORE, PASS_RATE)
    if condition.kind == "verdict" or (condition.kind == "drops" and score):
        margin = margin if condition.kind == "verdict" else limit
        return least_n_of_each(margin, 1 if condition.metric == MEAN_SCORE else datasets) if margin else None
    if condition.metric == ERROR_RATE and condition.kind == ">" and limit:
        return find_least(lambda n: share_interval(0, n * datasets).high <= limit)
    if condition.metric == PASS_RATE and condition.kind == "<" and limit < 1:
        return find_least(lambda n: share_interval(n * datasets, n * datasets).low >= limit)
    return None


def list_candidates(result: EvalResult) -> list[Candidate]:
    """List the systems of a run that a gate judges."""
    controls, given = result.settings.controls, result.settings.baseline
    comparison = result.comparison
    systems = [name for name in result.systems if name != result.settings.twin]  # runs only to measure noise
    baseline = choose_baseline(systems, given if given in result.systems else None, controls)
    verdicts = {} if comparison is None else {each.name: each for each in comparison.verdicts}
    tested = _find_tested(systems, baseline, controls)
    tested = [name for name in tested if not _is_added(result, name)] or tested
    score = _find_score_key(result.summary, None if comparison is None else comparison.metric)
    numbers = {name: Numbers(result.summary[name], result.intervals.get(name, {})) for name in systems}
    return [
        Candidate(
            name,
            numbers[name],
            score,
            None if baseline in (None, name) else numbers[baseline],
            verdicts.get(name),
            "" if comparison is None else comparison.context_unneeded,
            result.notes.get(name, {}).get(score, "") if name not in verdicts else "",
            comparison.sensitivity[name].reason if comparison is not None and comparison.is_blind(name) else "",
        )
        for name in tested
    ]


def _is_added(result: EvalResult, name: str) -> bool:
    """Whether a gate leaves out a memory: the command added it, or it answers itself in a run without a model."""
    about = (result.settings.reports.get(name) or {}).get("memory") or {}
    own = about.get("answers") == "own" and result.settings.read_by_script
    return own or about.get("system") in result.settings.added_systems


def _find_score_key(summary: Mapping[str, Mapping[str, float]], compared: str | None) -> str:
    """Find the key that `score` means: the compared one, else the score of the run."""
    return find_score_key(summary.values()) if compared is None else compared


def list_compared(comparison: RunComparison) -> list[Candidate]:
    """List the systems of compared runs that a gate judges."""
    contests = [each for each in comparison.contests if not each.control] or comparison.contests
    return [
        Candidate(
            each.name,
            Numbers(each.source.summary.get(each.system, {}), each.source.intervals.get(each.system, {})),
            comparison.metric,
            Numbers(
                each.baseline.summary.get(each.baseline_system, {}),
                each.baseline.intervals.get(each.baseline_system, {}),
            ),
            each.verdict,
            each.context_unneeded,
            blind=each.sensitivity.reason if each.sensitivity is not None and each.sensitivity.word == "none" else "",
        )
        for each in contests
    ]


def fail_missing(comparison: RunComparison) -> list[GateOutcome]:
    """Fail the gate for each system of the baseline's run that a compared run lacks."""
    return [
        GateOutcome(
            name,
            "system is missing",
            FAILS,
            f"{name}: Failed: it is missing in {run}. If it was renamed, pass --map-system {name}=NEW; "
            "--allow-missing leaves it out.",
        )
        for name, run in comparison.missing
    ]


def judge_gate(
    conditions: Sequence[Condition],
    candidates: Sequence[Candidate],
    allowed: Collection[str] = (),
    *,
    accept_blind: bool = False,
) -> list[GateOutcome]:
    """Judge every condition for every system under test.

    Args:
        conditions: The conditions of the gate.
        candidates: The systems under test.
        allowed: Numbers that may be missing; their conditions are then undecided.
        accept_blind: Accept "equivalent" even if the data could not have shown a loss.
    Raises:
        UsageError: A condition names a number that no system has.
    """
    for condition in conditions:
        if condition.metric not in allowed:
            _check_key(condition, candidates)
    outcomes = []
    for candidate in candidates:
        for condition in conditions:
            judged = _judge(condition, candidate)
            if candidate.blind and _tells_quality(condition) and judged.outcome == HOLDS:
                judged = _doubt(condition, candidate, judged, accept_blind)
            outcomes.append(
                GateOutcome(candidate.name, condition.text, judged.outcome, f"{candidate.name}: {judged.sentence}")
            )
    return outcomes


def find_exit_code(outcomes: Sequence[GateOutcome]) -> int:
    """Find the exit code: 1 if a condition fails, else 4 if one is undecided, else 0."""
    found = {each.outcome for each in outcomes}
    return next((code for outcome, code in EXIT_CODES.items() if outcome in found), 0)


def _check_key(condition: Condition, candidates: Sequence[Candidate]) -> None:
    if condition.kind == "verdict" or condition.metric in ("score", "saved"):
        return
    known = dict.fromkeys(key for each in candidates for key in each.numbers.values)
    if condition.metric in known:
        return
    plain = [key for key in known if "@" not in key and ":" not in key]
    hint = (
        suggest(condition.metric, ["score", "saved", *known]) or f"there are {', '.join(plain[:_MAX_NAMES])} and more"
    )
    raise UsageError(f"--fail-if {condition.text!r}: {condition.metric!r} is not a number of this run: {hint}")


def _judge(condition: Condition, candidate: Candidate) -> GateJudgement:
    key = condition.metric
    if key == "score":  # differences are of the compared score, limits of the system's own run
        key = candidate.score if condition.needs_baseline else _find_score_key({"": candidate.numbers.values}, None)
    if key == "saved":
        key = find_saved_key(candidate.numbers.values)
    loses = candidate.verdict is not None and candidate.verdict.word == "worse"  # certain even if no context is needed
    if candidate.context_unneeded and _tells_quality(condition) and not loses:
        return condition.leave_open(candidate.context_unneeded)
    if condition.kind == "verdict":
        condition = replace(condition, metric=candidate.score)
    elif condition.metric == "score":
        condition = replace(condition, metric=f"the score ({key})")
    if condition.kind == "verdict" or (condition.needs_baseline and key == candidate.score):
        if candidate.verdict is None:
            return condition.leave_open(candidate.unlike or "no example has a score on both sides")
        return condition.judge(candidate.verdict)
    if condition.needs_baseline:
        return _judge_change(condition, candidate, key)
    return _judge_number(condition, candidate.numbers, key)


def _doubt(condition: Condition, candidate: Candidate, judged: GateJudgement, accept_blind: bool) -> GateJudgement:
    """Leave a claim of equal quality open if the data could not have shown a loss; for a number, add a note."""
    why = f"{candidate.name} is {candidate.blind}"
    if condition.kind == "verdict" and condition.negated and not accept_blind:
        return condition.leave_open(f"{why} (--accept-blind accepts the verdict)")
    return GateJudgement(judged.outcome, f"{judged.sentence} Note: {why}.")


def _tells_quality(condition: Condition) -> bool:
    """Whether a condition is on the score, the pass rate or the verdict."""
    return condition.kind == "verdict" or condition.metric == "score" or get_number(condition.metric).gate == "quality"


def _judge_number(condition: Condition, numbers: Numbers, key: str) -> GateJudgement:
    """Judge a number by its interval, or by its value if it has no interval."""
    value = numbers.values.get(key, math.nan)
    if math.isnan(value):
        return condition.leave_open(f"{key} was not measured")
    interval = numbers.intervals.get(key)
    if interval is not None:
        return condition.judge(interval)
    return condition.judge_value(value)


def _judge_change(condition: Condition, candidate: Candidate, key: str) -> GateJudgement:
    """Judge the difference of a number that is not paired by example: both sides count as independent samples."""
    ours, theirs = candidate.numbers, candidate.baseline or Numbers()
    change = ours.values.get(key, math.nan) - theirs.values.get(key, math.nan)
    if math.isnan(change):
        return condition.leave_open(f"{key} was not measured on both sides")
    one, other = ours.intervals.get(key), theirs.intervals.get(key)
    if one is None or other is None:
        return condition.judge_value(change)
    difference = subtract_intervals(one, other)
    judged = condition.judge(difference)
    if not difference.known:
        return judged
    return GateJudgement(judged.outcome, f"{judged.sentence} The two sides are treated as independent samples.")


def subtract_intervals(one: Interval, other: Interval) -> Interval:
    """Return the interval of the difference of two independent intervals (Zou and Donner, 2008)."""
    value = one.value - other.value
    down = math.hypot(one.value - one.low, other.high - other.value)
    up = math.hypot(one.high - one.value, other.value - other.low)
    mark = one.mark or other.mark
    return Interval(value, value - down, value + up, one.level, min(one.n, other.n), "difference of intervals", mark)
