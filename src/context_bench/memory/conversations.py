"""The shapes of a memory dataset, conversations of turns and questions about them, and of what is retrieved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from context_bench.errors import BadOutput

__all__ = ["Conversation", "Question", "Retrieved", "Turn", "check_retrieved"]


class Turn(TypedDict, total=False):
    """One message of a conversation."""

    id: str
    role: str  # "user", "assistant" or "system"
    speaker: str
    content: str
    timestamp: str | None  # ISO 8601
    session: str
    user: str  # whose memory it goes into, where a conversation has several users
    forget: dict[str, Any]  # a request to delete: {"what": ...}


class Question(TypedDict, total=False):
    """One question about a conversation, with its gold. A date that matters stands in its text."""

    id: str
    question: str
    answer: Any
    answers: list[Any]  # accepted ones; a list among them is an answer in parts, all of which must be given
    type: str
    evidence_ids: list[str]  # of turns
    evidence_sessions: list[str]
    unanswerable: bool
    pair: str  # joins an answerable question and its unanswerable twin
    user: str
    date: str
    instruction: str  # for the reader, beside the question: how to answer
    category: int  # of LoCoMo
    options: dict[str, str]  # by letter, where one of two answers is to be chosen
    known_error: str  # a letter of `locomo_errors.KINDS`, or a sentence
    rule: str  # by which a judge accepts an answer: a name of `judge_rules.RULES`
    user_evidence: list[str]  # of LongMemEval: the evidence that a user said
    correct_letter: str  # of a multiple-choice question, whose options stand in its text
    choices: list[str]
    evidence_texts: list[str]  # where evidence is told as memories and not as turns
    rubric: list[str]  # points that a judge looks for, one by one
    probe: dict[str, Any]  # {"kind": ..., "present": [...], "absent": [...]}: exact gold on text


class Conversation(TypedDict, total=False):
    """A history, and what is asked about it."""

    id: str
    turns: list[Turn]
    questions: list[Question]
    meta: dict[str, Any]


class Retrieved(TypedDict, total=False):
    """One thing that a memory found for a question."""

    text: str
    ids: list[str]  # of the turns that it came from
    score: float  # kept with the row; the order of the list is the ranking
    timestamp: str  # of the turn that it came from, ISO 8601
    session: str


def check_retrieved(found: Any, name: str) -> list[Retrieved]:
    """Refuse what is not a list of objects with a text, and keep what evaluators read of them."""
    if not isinstance(found, list | tuple):
        given = "None" if found is None else f"a {type(found).__name__}"
        raise BadOutput(f"{name}: retrieve() returned {given}; it must return a list of objects with 'text'")
    checked: list[Retrieved] = []
    for item in found:
        if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
            raise BadOutput(f"{name}: retrieve() must return objects with 'text' (got a {type(item).__name__})")
        kept: Retrieved = {"text": item["text"]}
        if isinstance(item.get("ids"), list | tuple):
            kept["ids"] = [str(each) for each in item["ids"]]
        if isinstance(item.get("score"), int | float):
            kept["score"] = float(item["score"])
        checked.append(kept)
    return checked
