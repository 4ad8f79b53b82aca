"""The gold answers of an example, and the texts that hold them: read the same way by every evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.text.reasoning import remove_reasoning

__all__ = [
    "Gold",
    "evidence_texts",
    "gold_answers",
    "has_gold",
    "is_blank",
    "list_scoring_fields",
    "response_text",
    "turn_answers",
    "turn_responses",
]

Gold = tuple[str, ...]
"""One accepted answer: its parts, all of which must be given. Most have a single part."""


def gold_answers(example: Mapping[str, Any]) -> list[Gold]:
    """Return every accepted answer, without repeats; empty when there is nothing to compare with."""
    given, answer = example.get("answers"), example.get("answer")
    if not given and type(answer) is str:  # as most have it
        return [(answer,)] if answer.strip() else []
    if not given or not isinstance(given, (list, tuple)):
        given = [answer]
    golds: dict[Gold, None] = {}
    for answer in given:
        parts = answer if isinstance(answer, (list, tuple)) else [answer]
        gold = tuple(str(part) for part in parts if part is not None and str(part).strip())
        if gold:
            golds[gold] = None
    return list(golds)


_GOLD_FIELDS = (
    *("answer", "answers", "correct_letter", "test", "test_list"),
    *("instruction_id_list", "ground_truth", "reference", "references", "relevant_ids"),
)


def has_gold(example: Mapping[str, Any]) -> bool:
    """Whether an example has anything that an answer to it could be scored against."""
    given = (example[field] for field in _GOLD_FIELDS if field in example)
    return any(value is not None and (not isinstance(value, str | list | tuple) or len(value) > 0) for value in given)


_SCORING_FIELDS = (
    *("evidence", "answer", "answers", "correct_letter", "test", "test_list", "instruction_id_list", "ground_truth"),
)


def list_scoring_fields(example: Mapping[str, Any]) -> tuple[str, ...]:
    """List the fields of an example that decide which score fits it."""
    return tuple(field for field in _SCORING_FIELDS if example.get(field))


def response_text(processed: Mapping[str, Any]) -> str:
    """Return the system's answer without its reasoning; nothing at all reads as an empty answer.

    With `keep_reasoning` the whole reply is the answer. A context that stands for an answer is no reply: it stays.
    """
    response = processed.get("response")
    text = "" if response is None else str(response)
    whole = processed.get("keep_reasoning") or response is processed.get("context")
    return text if whole else remove_reasoning(text)


def turn_responses(processed: Mapping[str, Any]) -> list[str]:
    """Return the reply to each turn of a conversation; empty when there was one reply to the whole."""
    replies = processed.get("turn_responses") or processed.get("responses")  # the latter in older stores
    if not isinstance(replies, (list, tuple)):
        return []
    contents = (reply.get("content") if isinstance(reply, Mapping) else reply for reply in replies)
    return ["" if content is None else str(content) for content in contents]


def turn_answers(processed: Mapping[str, Any]) -> list[str]:
    """Return the answer in the reply to each turn, without its reasoning unless that is kept."""
    replies = turn_responses(processed)
    return replies if processed.get("keep_reasoning") else [remove_reasoning(reply) for reply in replies]


def is_blank(processed: Mapping[str, Any]) -> bool:
    """Whether a reply has no text and calls no tool: it answers nothing, also where a gold normalises to nothing."""
    return not response_text(processed).strip() and not processed.get("tool_calls")


def evidence_texts(example: Mapping[str, Any]) -> list[str]:
    """Return the passages that an answer needs. A span is a text, a {start, end} of the context, or both."""
    texts, context = [], example.get("context") or ""
    for span in example.get("evidence") or ():
        if isinstance(span, str):
            text = span
        elif isinstance(span, Mapping):
            text = span.get("text") or context[span["start"] : span["end"]]
        else:
            start, end = span
            text = context[start:end]
        if text.strip():
            texts.append(text)
    return texts
