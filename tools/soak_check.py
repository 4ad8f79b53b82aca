"""Rows of the soak against what they must be: each example once, answered right or failed, and known to the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from soak_server import Judge, _Model, expect_answer, expect_judge_score

__all__ = ["Death", "check_asked_again", "check_requests", "check_rows"]


class Death(NamedTuple):
    """From when on what arrives at a run may be lost, and when it was gone."""

    start: float
    end: float


LATE = 1.0
"""Seconds before a kill in which an answer may get lost on its way through proxy, tap and store, on a busy machine."""

MAX_TOKENS = 10**9


def check_rows(rows: Sequence[dict[str, Any]], count: int | None, where: str) -> list[str]:
    """Say what is wrong with rows: lost, doubled, of another example, or with numbers that cannot be.

    Args:
        rows: As they stand in JSON.
        count: How many examples there are, or None when the run was stopped.
        where: What the rows are called in messages.
    """
    times = Counter(row["example_id"] for row in rows)
    wrong = [f"{where}: example {number} has {often} rows" for number, often in times.items() if often > 1]
    if count is not None:
        wrong += [f"{where}: example {number} has no row" for number in range(count) if number not in times]
        wrong += [
            f"{where}: a row of example {number!r}, which does not exist" for number in times if not 0 <= number < count
        ]
    for row in rows:
        wrong += [f"{where}: example {row['example_id']}: {what}" for what in _check_row(row)]
    return wrong


def _check_row(row: dict[str, Any]) -> Iterable[str]:
    number, metadata = row["example_id"], row["metadata"]
    for key in ("prompt_tokens", "completion_tokens", "billed_prompt_tokens"):
        if not 0 <= metadata.get(key, 0) <= MAX_TOKENS:
            yield f"{key} is {metadata[key]}"
    if row["error"] is not None:
        return
    text, field, value = expect_answer(number)
    if not row["response"].startswith(text):
        yield f"the answer of another example: {row['response'][:60]!r}"
    found = row["scores"].get(field)
    if found != value and not (found is None and "code-execution" in row["unscored"]):
        yield f"{field} is {found}, not {value}"
    judged = row["scores"].get("judge_score")
    if judged != expect_judge_score(number) and not (judged is None and "llm-judge" in row["unscored"]):
        yield f"judge_score is {judged}, not {expect_judge_score(number)}"


def check_requests(rows: Sequence[dict[str, Any]], model: _Model, judge: Judge) -> list[str]:
    """Compare rows of a run that nobody killed with the requests that the servers saw."""
    wrong = []
    for row in rows:
        number, metadata = row["example_id"], row["metadata"]
        recorded = metadata.get("upstream_calls", 0) + metadata.get("earlier_upstream_calls", 0)
        seen, attempts = model.seen[number], metadata.get("attempts", 0)
        # A call that the client gave up may not have got through to the server; one that did is always on record.
        if recorded != attempts or seen > recorded:
            wrong.append(f"example {number}: {attempts} attempts, {recorded} calls recorded, {seen} seen by the server")
        if row["error"] is None and not model.answers[number]:
            wrong.append(f"example {number} has an answer that the server never gave")
        if row["error"] is None and "judge_score" in row["scores"] and row["response"] and not judge.answers[number]:
            wrong.append(f"example {number} has a rating that the judge never gave")
    return wrong


def check_asked_again(model: _Model, deaths: Sequence[Death]) -> list[str]:
    """Say which examples were asked again although no death of the run explains it.

    It may be asked again when the run died while the request was under way, or within LATE seconds of its answer.
    """
    return [
        f"example {number} was answered after {answered - asked:.1f} s and asked again {again - answered:.1f} s later, "
        f"and no death explains it: {_describe_deaths(deaths, answered)}"
        for number, answers in model.answers.items()
        for (asked, answered), (again, _) in pairwise(answers)
        if not any(asked < death.end and death.start < min(answered + LATE, again) for death in deaths)
    ]


def _describe_deaths(deaths: Sequence[Death], moment: float) -> str:
    return (
        ", ".join(f"{death.start - moment:+.1f} to {death.end - moment:+.1f} s" for death in deaths) or "there was none"
    )
