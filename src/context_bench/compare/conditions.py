"""Conditions of a gate, such as `score drops 0.02`: parsed from text, judged by intervals.

A gate *fails* if the whole interval meets the condition and *holds* if no part does; else there are *too few* examples
to decide. A difference is judged by its 90% interval: each of its limits is wrong in 5% of cases.
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
_SAID = {HOLDS: "Passed", FAILS: "Failed", TOO_FEW: "Too few examples"}
_REQUIRED = {"<": "at least", "<=": "above", ">": "at most", ">=": "below"}  # the opposite of the condition
_OTHER_WAY = {"dropped": "rise", "rose": "drop"}
_LARGE = 1e300

FORMS = (
    '"score drops 0.02", "latency_p95 rises 0.5", "saved < 0.3", "error_rate > 0.01" (also <= and >=), '
    '"verdict is worse" or "verdict is not better"'
)

_CHANGE = re.compile(r"(\S+) (drops|rises) (?:by )?(\S+)")
_LIMIT = re.compile(r"(\S+?) ?(<=|>=|<|>) ?(\S+)")
_VERDICT = re.compile(r"verdict is (not )?(" + "|".join(WORDS) + ")")


@dataclass(frozen=True)
class GateJudgement:
    """The outcome of one condition (holds, fails or too few) with a sentence that explains it."""

    outcome: str
    sentence: str


@dataclass(frozen=True)
class Condition:
    """A condition under which a gate fails.

    `kind` is drops, rises, <, <=, >, >= or verdict. `metric` is the key of the judged number. Drops and rises judge
    the interval of its difference from the baseline.
    """

    text: str
    kind: str
    metric: str = ""
    number: float = math.nan
    word: str = ""
    negated: bool = False

    @property
    def needs_baseline(self) -> bool:
        """Whether the condition is about a difference from the baseline."""
        return self.kind in ("drops", "rises", "verdict")

    def judge(self, found: Interval | Verdict) -> GateJudgement:
        """Judge a 90% interval (of the difference, for drops and rises), or a verdict, which has such an interval."""
        if isinstance(found, Interval):
            return self._judge_interval(found)
        if self.kind == "verdict":
            return self._judge_verdict(found)
        interval = found.narrow or found.interval
        if not interval.known and found.reason:
            return self.leave_open(found.reason)
        return self._judge_interval(interval)

    def judge_value(self, value: float) -> GateJudgement:
        """Judge a number that has no interval; it may be infinite."""
        finite = max(-_LARGE, min(_LARGE, value))
        outcome = self._find_outcome(Interval(finite, finite, finite))
        shown = self._describe(value, f"{abs(value) if self.needs_baseline else value:.4g}")
        return GateJudgement(outcome, f"{_SAID[outcome]}: {shown}; no interval, so only the value counts).")

    def leave_open(self, why: str) -> GateJudgement:
        """Explain why the condition cannot be judged."""
        return GateJudgement(TOO_FEW, f'Undecided ("{self.text}"): {why}.')

    def _judge_verdict(self, verdict: Verdict) -> GateJudgement:
        met = (verdict.word == self.word) != self.negated
        outcome = FAILS if met else HOLDS
        if verdict.word == "undecided" and self.word != "undecided":
            if verdict.narrow is not None and not verdict.narrow.known:  # withheld, whatever the number of examples
                return self.leave_open(verdict.reason)
            outcome = TOO_FEW
        clean = f" ({verdict.word_without_errors} without errors)" if verdict.errors_disagree else ""
        on = f" on {self.metric}" if self.metric else ""
        return GateJudgement(outcome, f"{_SAID[outcome]}: the verdict{on} is {verdict.word}{clean}: {verdict.reason}.")

    def _judge_interval(self, interval: Interval) -> GateJudgement:
        if self.kind == "verdict":
            raise TypeError("a condition on the verdict must be judged by a Verdict")
        if not interval.known:
            return self.leave_open(_explain_unknown(interval))
        outcome = self._find_outcome(interval)
        places = interval.find_decimals()
        low, high, value = interval.low, interval.high, interval.value
        if self._name_move(value) == "dropped":
            low, high, value = -high, -low, -value
        first = ", the first ones and not a random sample" if interval.mark == FIRST else ""
        shown = (
            f"{self._describe(interval.value, f'{value + 0.0:.{max(3, places)}f}')}; {interval.level:.0%} interval "
            f"[{low + 0.0:.{places}f}, {high + 0.0:.{places}f}]; {interval.n:,} examples{first})"
        )
        if outcome == TOO_FEW and self._never_tells(interval):
            return self.leave_open(f"{shown}. No number of examples can show this: choose a less strict limit")
        return GateJudgement(outcome, f"{_SAID[outcome]}: {shown}.")

    def _find_outcome(self, interval: Interval) -> str:
        limit = -self.number if self.kind == "drops" else self.number
        if self.kind in ("drops", "<"):
            met, missed = interval.high < limit, interval.low >= limit
        elif self.kind == "<=":
            met, missed = interval.high <= limit, interval.low > limit
        elif self.kind == ">=":
            met, missed = interval.low >= limit, interval.high < limit
        else:
            met, missed = interval.low > limit, interval.high <= limit
        return FAILS if met else HOLDS if missed else TOO_FEW

    def _name_move(self, value: float) -> str:
        """Name the direction of a difference, as in "dropped by"; for a difference of 0, the direction of the
        condition."""
        if not self.needs_baseline:
            return ""
        return "dropped" if value < 0 or (value == 0 and self.kind == "drops") else "rose"

    def _describe(self, value: float, shown: str) -> str:
        """Describe a value and its limit, with an open parenthesis for more."""
        name = "the score" if self.metric == "score" else self.metric
        if move := self._name_move(value):
            same = move == ("dropped" if self.kind == "drops" else "rose")
            limit = f"limit {self.number:g}" if same else f"limit: a {_OTHER_WAY[move]} of {self.number:g}"
            return f"{name} {move} by {shown} ({limit}"
        return f"{name} is {shown} (required: {_REQUIRED[self.kind]} {self.number:g}"

    def _never_tells(self, interval: Interval) -> bool:
        """Whether more examples like these cannot decide: the limit is no change at all, or an end of the range."""
        limit = -self.number if self.kind == "drops" else self.number
        at_the_end = interval.value in (interval.low, interval.high)
        return interval.value == limit and (at_the_end or (self.needs_baseline and limit == 0))


def _explain_unknown(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "it was not measured"
    if interval.groups == 1 and interval.n > 1:
        return f"{interval.n:,} examples of one document or conversation give no interval"
    return f"{count_things(interval.n, 'example')} {'gives' if interval.n == 1 else 'give'} no interval"


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
    """Read a condition.

    Raises:
        UsageError: The text is not a condition; the message lists the forms.
    """
    words = " ".join(text.split())
    if words == "verdict is not worse":  # ambiguous, and both meanings fail good systems
        raise UsageError(f'{words!r} is not a condition: a gate names what makes it fail; write "verdict is worse"')
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
