"""Compares mathematical answers with gold answers by value, whatever the notation.

Numbers, tuples, intervals, sets and words are compared exactly and at once. If algebra is needed, math-verify (extra
`math`) runs in a separate process, which is stopped if it takes too long.
"""

from __future__ import annotations

import importlib.util
import logging
from functools import cache
from typing import Any

from context_bench.errors import MissingExtra
from context_bench.evaluators.math.answer import find_final_answer, read_gold_text, read_parts
from context_bench.evaluators.math.answer_equality import compare, count_parts, list_readings
from context_bench.evaluators.math.notation import canonical
from context_bench.processes.child import WorkerFailed, WorkerPool
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

_EQUIVALENT = "context_bench.evaluators.math:equivalent"


class MathEquivalence:
    r"""Scores `math_equiv`: 1.0 when the final answer of the reply equals an accepted answer.

    Integers and fractions must be equal; if either number has a decimal point, a difference of a millionth passes. A
    percentage has two readings: `50%` equals 50 and 0.5. Units, currencies and degree signs are ignored. `1,234` is a
    number, `1,2` a list of two.

    If algebra cannot decide within `seconds` and `megabytes`, the answer counts as wrong, as in math-verify, and the
    details say so.
    """

    name = "math-equivalence"
    version = 3
    needs_answer = True
    score_fields = ("math_equiv",)
    slow = True

    def __init__(self, seconds: float = 10.0, megabytes: int = 2048) -> None:
        self.seconds = seconds
        self.megabytes = megabytes

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [read_gold_text(", ".join(gold)) for gold in gold_answers(original)]
        if not golds:
            return Scores(reason="no gold answer")
        reply = response_text(processed)
        answer = find_final_answer(reply)
        verdicts = {gold: compare(gold, answer) for gold in golds}
        if True not in verdicts.values() and (parts := _join_parts(reply, answer, golds)):
            answer, verdicts = parts, {gold: compare(gold, parts) for gold in golds}
        details: dict[str, Any] = {"answer": answer}
        open_golds = [gold for gold, verdict in verdicts.items() if verdict is None]
        right = True in verdicts.values()
        if not right and open_golds:
            if not _has_math_verify():
                reason = str(MissingExtra(f"comparing {answer!r} with {open_golds[0]!r}", "math"))
                return Scores(reason=reason, details=details, transient=True)
            right = any(self._compare_by_algebra(gold, answer, details) for gold in open_golds)
        return Scores({"math_equiv": float(right)}, details=details)

    def _compare_by_algebra(self, gold: str, answer: str, details: dict[str, Any]) -> bool:
        try:
            pool = _get_pool(self.seconds, self.megabytes)
            return any(bool(pool.call(canonical(gold), each)) for each in list_readings(answer))
        except WorkerFailed as failure:
            details["undecided"] = str(failure)
            return False


def _join_parts(reply: str, answer: str, golds: list[str]) -> str:
    """Join the items of the reply's list into one answer, if the gold has as many parts as the list has items."""
    for kind, count in map(count_parts, golds):
        if count > 1 and kind in ("", "()", "\\{\\}") and count_parts(answer)[1] == 1:
            parts = ", ".join(read_parts(reply, count))
            return f"({parts})" if parts and kind == "()" else parts
    return ""


@cache
def _get_pool(seconds: float, megabytes: int) -> WorkerPool:
    """Return one pool for all evaluators with the same limits, because a worker takes a second or two to start."""
    return WorkerPool(_EQUIVALENT, seconds=seconds, megabytes=megabytes)


@cache
def _has_math_verify() -> bool:
    return importlib.util.find_spec("math_verify") is not None


def prepare() -> None:
    """Do the slow imports and build the parser before the time limit starts."""
    logging.disable(logging.CRITICAL)
    equivalent("x", "x")


def equivalent(gold: str, answer: str) -> bool:
    """Whether math-verify finds two LaTeX expressions equal. Call it only in a worker: it sets no limits."""
    from math_verify import parse, verify

    parsed = [parse(f"${text}$", parsing_timeout=None) for text in (gold, answer)]
    return bool(all(parsed) and verify(*parsed, timeout_seconds=None))
