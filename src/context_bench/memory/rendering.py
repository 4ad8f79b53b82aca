"""Renders what a memory found as the text that a reader gets: within a budget, in the order of time, with dates.

Things are taken in the order in which the memory ranked them until the budget is full; the last one is cut where it
does not fit whole. Then they are put in the order of the conversation. Dates and speakers count against the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from context_bench.memory.conversations import Retrieved, Turn
from context_bench.memory.dates import write_date
from context_bench.utils.tokens import Tokenizer

__all__ = ["index_turns", "render_history", "render_retrieved"]

Placed = tuple[int, Turn]
"""A turn, and which of the conversation it is."""

_UNPLACED = 1 << 60


def index_turns(turns: Sequence[Turn]) -> dict[str, Placed]:
    """Return each turn and its place by its id."""
    return {str(turn.get("id")): (place, turn) for place, turn in enumerate(turns)}


def render_retrieved(
    found: Iterable[Retrieved], turns: Mapping[str, Placed], budget: int | None, count: Tokenizer
) -> tuple[str, int]:
    """Render what was found for a question.

    Args:
        found: The best first.
        turns: Those of the conversation, as `index_turns` gives them.
        budget: The most tokens of the text; None for all.
        count: Counts them.

    Returns:
        The text, and how many of the first things are in it as a whole.
    """
    lines: list[tuple[int, int, str]] = []
    used = whole = 0
    for rank, item in enumerate(found):
        place, line = _write_line(item, turns)
        size = 0 if budget is None else _count_line(line, count)
        if budget is not None and used + size > budget:
            cut = _cut(line, budget - used, count)
            if cut:
                lines.append((place, rank, cut))
            break
        used += size
        whole += 1
        lines.append((place, rank, line))
    text = "\n".join(line for _, _, line in sorted(lines))
    return text if budget is None else _cut(text, budget, count), whole


@lru_cache(maxsize=1 << 16)
def _count_line(line: str, count: Tokenizer) -> int:
    """Count a line with its end; the same lines come back for many questions and budgets."""
    return count(f"{line}\n")


def render_history(turns: Sequence[Turn]) -> str:
    """Render a whole conversation as a reader without a memory would get it."""
    return "\n".join(_put_date(_write_turn(turn), turn) for turn in turns)


def _write_line(item: Retrieved, turns: Mapping[str, Placed]) -> tuple[int, str]:
    placed = [turns[str(name)] for name in item.get("ids") or () if str(name) in turns]
    if not placed:
        return _UNPLACED, item["text"]
    place, turn = min(placed, key=lambda each: each[0])
    return place, _put_date(item["text"], turn)


def _put_date(text: str, turn: Turn) -> str:
    date = write_date(turn.get("timestamp"))
    return text if not date or date in text else f"[{date}] {text}"


def _write_turn(turn: Turn) -> str:
    speaker = turn.get("speaker") or turn.get("role")
    return f"{speaker}: {turn.get('content', '')}" if speaker else str(turn.get("content", ""))


def _cut(text: str, budget: int, count: Tokenizer) -> str:
    """Return the beginning of a text that has at most so many tokens, to the last whole word."""
    if budget <= 0:
        return ""
    if count(text) <= budget:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low].rsplit(None, 1)[0] if " " in text[:low].strip() else text[:low]
