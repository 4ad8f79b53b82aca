"""Scores of memory systems: what was retrieved, what was answered, and what is left in the store.

All are ordinary evaluators. They read `original["memory"]`, the record of the question, and of the answer `retrieved`
(before rendering), `context` (what the reader got), `response`, and `store` (see `probes`). The functions here read
these fields, for all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.text.words import normalise


def read_question(original: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the record of the question; None where the example is not one of a memory dataset."""
    record = original.get("memory")
    return record if isinstance(record, Mapping) else None


def read_retrieved(processed: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return what the memory found, best first; None where it answers by itself and does not say."""
    found = processed.get("retrieved")
    if not isinstance(found, list | tuple):
        return None
    return [item for item in found if isinstance(item, Mapping)]


def read_shown(processed: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return what the memory found and the reader got as a whole, best first: what the budget cut off is not found."""
    found, shown = read_retrieved(processed), processed.get("shown")
    return found if found is None or not isinstance(shown, int) else found[:shown]


def read_shown_text(processed: Mapping[str, Any]) -> str | None:
    """Return the text that the reader got: the rendered memories, else all that were found; None where nobody says."""
    context = processed.get("context")
    if isinstance(context, str):
        return context
    found = read_retrieved(processed)
    return None if found is None else "\n".join(str(item.get("text") or "") for item in found)


def find_texts(wanted: list[str], text: str) -> list[str]:
    """List those of the wanted texts that occur in whole words; case, layout and punctuation do not matter."""
    searched = normalise(text)
    return [each for each in wanted if normalise(each) in searched]


READ_BY_SCRIPT = "a script read, not a model: it does not know when to refuse"
STOOD_IN = "a script stood in for the model that the memory asks"
UNSEEN = "no fact that was told is seen in memories() or storage, so what is missing there proves nothing"
NO_IDS = "the retrieved memories name no turns (ids)"
