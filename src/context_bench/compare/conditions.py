"""Conditions of a gate, such as `score drops 0.02`: parsed from text, judged by intervals.

A gate *fails* if the whole interval meets the condition and *holds* if no part does; else there are *too few* examples
to tell. A difference is judged by its 90% interval: each side of it is wrong in 5% of cases.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from context_bench.errors import UsageError
from context_bench.stats.interval import FIRST, Interval
from context_bench.stats.verdicts import WORDS, Verdict
from context_bench.text import count_things

HOLDS, FAILS, TOO_FEW = "holds", "fails", "too few"
_SAID = {HOLDS: "passed", FAILS: "failed", TOO_FEW: "too few examples to tell"}

FORMS = (
    '"score drops 0.02", "latency_p95 rises 0.5", "saved < 0.3", "error_rate > 0.01" (also <= and >=), '
    '"verdict is worse" or "verdict is not better"'
)

_CHANGE = re.compile(r"(\S+) (drops|rises) (?:by )?(\S+)")
_LIMIT = re.compile(r"(\S+?) ?(<=|>=|<|>) ?(\S+)")
_VERDICT = re.compile(r"verdict is (not )?(" + "|".join(WORDS) + ")")


@dataclass(frozen=True)
class GateJudgement:
    """The outcome of a gate (holds, fails or too few) and a sentence that explains it."""

    outcome: str
    sentence: str


@dataclass(frozen=True)
class Condition:
    """A condition under which a gate fails.

    `kind` is drops, rises, <, <=, >, >= or verdict. `metric` is the key of the judged number; drops and rises judge the
    interval of its difference from the baseline.
    """

    text: str
    kind: str
    metric: str = ""
    number: float = math.nan
    word: str = ""
    negated: bool = False

    @property
    def needs_baseline(self) -> bool:
        return self.kind in ("drops", "rises", "verdict")

    def judge(self, found: Interval | Verdict) -> GateJudgement:
        """Judge it by a 90% interval (of the difference, for drops and rises) or by a verdict, which has one."""
        if isinstance(found, Interval):
            return self._judge_interval(found)
        if self.kind == "verdict":
            return self._judge_verdict(found)
        interval = found.narrow or found.interval
        if not interval.known and found.reason:
            return self.leave_open(found.reason)
        return self._judge_interval(interval)

    def conclude(self, outcome: str, why: str) -> GateJudgement:
        return GateJudgement(outcome, f"fail if {self.text}: {_SAID[outcome]}; {why}")

    def leave_open(self, why: str) -> GateJudgement:
        """Return "too few", with the reason why it cannot be judged."""
        return GateJudgement(TOO_FEW, f"fail if {self.text}: cannot be decided; {why}")

    def _judge_verdict(self, verdict: Verdict) -> GateJudgement:
        met = (verdict.word == self.word) != self.negated
        outcome = FAILS if met else HOLDS
        if verdict.word == "undecided" and self.word != "undecided":
            outcome = TOO_FEW
        clean = f" ({verdict.word_without_errors} without errors)" if verdict.errors_disagree else ""
        return self.conclude(outcome, f"the verdict is {verdict.word}{clean}: {verdict.reason}")

    def _judge_interval(self, interval: Interval) -> GateJudgement:
        if self.kind == "verdict":
            raise TypeError("a condition on the verdict must be judged by a Verdict")
        if not interval.known:
            return self.leave_open(_explain_unknown(interval))
        limit = -self.number if self.kind == "drops" else self.number
        if self.kind in ("drops", "<"):
            met, missed = interval.high < limit, interval.low >= limit
        elif self.kind == "<=":
            met, missed = interval.high <= limit, interval.low > limit
        elif self.kind == ">=":
            met, missed = interval.low >= limit, interval.high < limit
        else:
            met, missed = interval.low > limit, interval.high <= limit
        outcome = FAILS if met else HOLDS if missed else TOO_FEW
        what = "the difference from the baseline" if self.needs_baseline else self.metric
        shown = f"{what} is {_write(interval)} with {interval.n:,} examples"
        if outcome == TOO_FEW and self._never_tells(interval, limit):
            return self.leave_open(f"{shown}: more examples cannot decide this, so allow a small tolerance")
        return self.conclude(outcome, shown)

    def _never_tells(self, interval: Interval, limit: float) -> bool:
        """Whether more such examples would not help: the value equals a limit of 0 or at the end of the interval."""
        at_the_end = interval.value in (interval.low, interval.high)
        return interval.value == limit and (at_the_end or (self.needs_baseline and limit == 0))


def _explain_unknown(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "it was not measured"
    if interval.groups == 1 and interval.n > 1:
        return f"{interval.n:,} examples of one document or conversation give no interval"
    return f"{count_things(interval.n, 'example')} {'gives' if interval.n == 1 else 'give'} no interval"


def _write(interval: Interval) -> str:
    places = interval.find_decimals()
    limits = f"[{interval.low:.{places}f}, {interval.high:.{places}f}]"
    if interval.mark == FIRST:
        limits += " (first examples, not a random sample)"
    return f"{interval.value:.{max(3, places)}f}, {interval.level:.0%} interval {limits}"


def _read_number(text: str, condition: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        must = f"{text!r} must be a number{_explain_percent(text)}"
        raise UsageError(f"{condition!r} is not a condition: {must}; write one like {FORMS}")
    return number


def _explain_percent(text: str) -> str:
    try:
        return f", and {text} is {float(text.removesuffix('%')) / 100:g}" if text.endswith("%") else ""
    except ValueError:
        return ""


def parse_condition(text: str) -> Condition:
    """Parse a condition; an error shows the valid forms."""
    words = " ".join(text.split())
    if words == "verdict is not worse":  # whichever of two meanings it has, good systems would fail
        raise UsageError(f'{words!r} is not a condition: a gate names what must not happen; write "verdict is worse"')
    if found := _VERDICT.fullmatch(words):
        return Condition(words, "verdict", word=found[2], negated=bool(found[1]))
    if found := _CHANGE.fullmatch(words):
        number = _read_number(found[3], words)
        if number < 0:
            raise UsageError(f"{words!r} is not a condition: the number after {found[2]!r} must not be below 0")
        return Condition(words, found[2], found[1], number)
    if found := _LIMIT.fullmatch(words):
        return Condition(words, found[2], found[1], _read_number(found[3], words))
    raise UsageError(f"{text!r} is not a condition: write one like {FORMS}")
