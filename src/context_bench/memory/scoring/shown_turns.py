"""Whether a returned text shows what a turn said; an id alone claims it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.memory.scoring.question_record import find_texts

__all__ = ["shows_turn"]


def shows_turn(text: str, turn: Mapping[str, Any]) -> bool:
    """Tell whether a text has the words of a turn."""
    return bool(find_texts([str(turn["content"])], text))
