"""Whether a returned text shows what a turn said. An id alone only claims it: a memory may name every turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.text.evidence_state import find_state
from context_bench.text.golds import gold_answers

__all__ = ["list_shown_turns", "shows_turn"]


def shows_turn(text: str, content: str, question: str = "", answers: Sequence[str] = ()) -> bool:
    """Tell whether what a turn said stands in a text word for word, or can be recovered from it."""
    return find_state(content, text, question, answers) != "lost"


def list_shown_turns(
    found: Sequence[Mapping[str, Any]], original: Mapping[str, Any], processed: Mapping[str, Any]
) -> list[set[str]]:
    """List for each memory the evidence turns that it names and shows.

    A turn that was cut in pieces is shown by the memory that completes it. Controls return turns as they were.

    Args:
        found: The memories, best first.
        original: The example, whose record has the evidence turns.
        processed: What the system made of it.
    """
    turns: Mapping[str, str] = (original.get("memory") or {}).get("evidence_turns") or {}
    named = [{str(each) for each in item.get("ids") or ()} for item in found]
    if processed.get("is_control"):
        return [ids & turns.keys() for ids in named]
    asked = str(original.get("question") or ""), [part for gold in gold_answers(original) for part in gold]
    shown: list[set[str]] = [set() for _ in found]
    for turn, content in turns.items():
        pieces: list[str] = []
        for place, item in enumerate(found):
            if turn not in named[place]:
                continue
            text = str(item.get("text") or "")
            pieces.append(text)
            if shows_turn(text, content, *asked) or (
                len(pieces) > 1
                and not any(turn in each for each in shown)
                and shows_turn(" ".join(pieces), content, *asked)
            ):
                shown[place].add(turn)
    return shown
