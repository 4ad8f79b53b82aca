"""One question to a memory: what was asked, what the evidence is, what was retrieved, and what was answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.cli.diff_view import View, visible
from context_bench.store.backend import RunRecord
from context_bench.text.evidence_state import list_shown_turns
from context_bench.text.golds import gold_answers

__all__ = ["describe_question"]

_FEW = 20
"""Memories that are shown unless all are asked for."""


def describe_question(record: RunRecord, view: View, *, full: bool) -> Iterator[str]:
    """Describe a row of a memory system, with its evidence and what it found of it."""
    example, about = record.example, record.example["memory"]
    yield f"conversation: {about.get('conversation')}, {about.get('history_turns')} turns, type "
    yield f"{visible(str((example.get('meta') or {}).get('type') or 'not given'))}\n"
    yield "\n" + view.title("question") + "\n" + visible(str(example.get("question", ""))) + "\n"
    golds = [" and ".join(gold) for gold in gold_answers(example)]
    yield f"gold: {visible(' | '.join(golds) or 'none: it cannot be answered from the conversation')}\n"
    processed = {} if record.answer is None else record.answer.processed
    yield from _describe_retrieved(example, processed, view, full=full)
    if processed.get("context") is not None:
        yield "\n" + view.title("what the reader got") + "\n" + _show(str(processed["context"]), full) + "\n"


def _describe_retrieved(
    example: Mapping[str, Any], processed: Mapping[str, Any], view: View, *, full: bool
) -> Iterator[str]:
    evidence = [str(each) for each in example["memory"].get("evidence_ids") or ()]
    found = processed.get("retrieved")
    in_words = set[str]().union(*list_shown_turns(found or (), example, processed))
    places = {
        str(each): rank for rank, item in reversed(list(enumerate(found or ()))) for each in item.get("ids") or ()
    }
    yield "\n" + view.title("evidence") + "\n"
    if not evidence:
        yield "none is named\n"
    for name in evidence:
        state = _tell_state(found, places.get(name), processed.get("shown"))
        state = "claimed, not shown" if state == "retrieved" and name not in in_words else state
        yield f"turn {visible(name)}: {state}\n"
    if found is None:
        return
    shown = found if full else found[:_FEW]
    yield "\n" + view.title(f"retrieved, {len(found)}") + "\n"
    for rank, item in enumerate(shown, 1):
        own = [str(each) for each in item.get("ids") or ()]
        mark = " ⟦evidence⟧" if set(own) & set(evidence) else ""
        text = " ".join(str(item.get("text") or "").split())
        yield f"{rank}. {visible(', '.join(own))}{mark} {visible(text)}\n"
    if len(found) > len(shown):
        yield f"… {len(found) - len(shown)} more\n"


def _tell_state(found: Sequence[Any] | None, place: int | None, shown: int | None) -> str:
    """Tell what became of a turn with evidence."""
    if found is None:
        return "not known"
    if place is None:
        return "missing"
    return "retrieved" if shown is None or place < shown else "retrieved, but not whole within the budget"


def _show(text: str, full: bool) -> str:
    shown = text if full else text[:2000]
    return visible(shown) + (f"… {len(text) - len(shown):,} more characters" if len(shown) < len(text) else "")
