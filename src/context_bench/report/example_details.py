"""The details that a row opens to: prompt, gold answers, response, scores, reasons, measurements and context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.report.context_view import Stretch, compare_context, shorten
from context_bench.report.elements import clean_text
from context_bench.report.row_values import Source
from context_bench.results import dump_json
from context_bench.text.golds import gold_answers

__all__ = ["cut_details", "describe_row"]

_FACTS = (
    *("output", "sent_tokens", "response_tokens", "written_tokens", "upstream_calls", "extra_upstream_calls"),
    *(
        "lost_upstream_calls",
        "failed_upstream_calls",
        "untouched",
        "answered_without_call",
        "cached_answer",
        "prompt_savings",
    ),
    *("claimed_tokens_saved", "billed_prompt_tokens", "proxy_overhead", "first_token_overhead", "injected_tools"),
    *("answer_unknown", "prefix_stability", "first_message_changed", "rewritten_history", "not_applied"),
)


def describe_row(source: Source) -> tuple[dict[str, Any], list[Stretch]]:
    """Describe a row, and compare its context before and after."""
    row, example = source.row, source.example
    same = source.processed is not None and bool(row.response) and row.response == source.processed.get("context")
    details = {
        "prompt": [] if example is None else list(_list_prompt(example)),
        "gold": None if example is None else [" + ".join(gold) for gold in gold_answers(example)],
        "response": "" if same else row.response,
        "same": same,
        "scores": row.scores,
        "unscored": row.unscored,
        "error": row.error,
        "traceback": "\n".join(map(str, row.metadata.get("traceback", ()))),
        "facts": {key: row.metadata[key] for key in _FACTS if key in row.metadata},
        "reasons": {
            str(name): " ".join(str(value["rationale"]).split())
            for name, value in row.metadata.items()
            if isinstance(value, dict) and value.get("rationale")
        },
        "upstream": row.upstream_tokens,
    }
    return details, [] if example is None else compare_context(example, source.processed)


def _list_prompt(example: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("prompt", "question"):
        if example.get(key):
            yield key, str(example[key])
    choices = example.get("choices")
    if choices:
        yield "choices", "\n".join(map(str, choices)) if isinstance(choices, list | tuple) else str(choices)
    for turn in example.get("turns") or ():
        if isinstance(turn, Mapping):
            content = turn.get("content")
            yield str(turn.get("role")), content if isinstance(content, str) else dump_json(content)
    if example.get("tools"):
        yield "tools", dump_json(example["tools"], indent=True)


def cut_details(details: Mapping[str, Any], stretches: list[Stretch], room: int, length: int) -> dict[str, Any]:
    """Cut the context of a row to `room` characters, and each other text of it to `length`."""
    shown = {key: _cut(value, length) for key, value in details.items()}
    return {**shown, "context": shorten(stretches, room)}


def _cut(value: Any, length: int) -> Any:
    """Cut the texts in a value; each says how much of it is missing."""
    if isinstance(value, str):
        if len(value) <= length:
            return clean_text(value)
        return f"{clean_text(value[:length])} … ({len(value) - length:,} more characters)"
    if isinstance(value, Mapping):
        return {_cut(str(key), 80): _cut(item, length) for key, item in list(value.items())[:60]}
    if isinstance(value, list | tuple):
        return [_cut(item, length) for item in value[: max(4, length // 20)]]
    return value
