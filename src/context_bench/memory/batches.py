"""How the turns of a conversation are handed to a memory: one by one, in pairs, or by session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from context_bench.errors import UsageError
from context_bench.memory.conversations import Turn
from context_bench.memory.dates import put_date_before

__all__ = ["GRANULARITIES", "Step", "check_granularity", "plan_steps"]

GRANULARITIES = ("turn", "pair", "session")

Step = tuple[str, str | None, Any]
"""The next call (`ingest` or `forget`), for which user, and with what."""

_NO_LIMIT = 1 << 60
_SIZES = {"turn": 1, "pair": 2, "session": _NO_LIMIT}


def check_granularity(granularity: str) -> str:
    """Return a granularity that can be."""
    if granularity not in GRANULARITIES:
        raise UsageError(f"granularity must be one of {', '.join(GRANULARITIES)} (got {granularity!r})")
    return granularity


def plan_steps(
    turns: Sequence[Turn], granularity: str, *, takes_dates: bool = True, forgets: bool = False
) -> Iterator[Step]:
    """Yield the calls that bring a conversation into a memory, in the order of its turns.

    A batch never joins two sessions or two users. Where the system has `forget`, a turn that asks for deletion is a
    call of its own; else it is a turn like any other.

    Args:
        turns: Of the conversation.
        granularity: How many turns a call brings: `turn`, `pair` or `session`.
        takes_dates: Whether the system reads `timestamp`; else the date is put before the text of each turn.
        forgets: Whether the system has `forget`.
    """
    size = _SIZES[granularity]
    batch: list[Turn] = []
    place: tuple[Any, Any] | None = None
    for turn in turns:
        here = turn.get("session"), turn.get("user")
        asks_to_forget = forgets and turn.get("forget") is not None
        if batch and (here != place or len(batch) == size or asks_to_forget):
            yield "ingest", batch[0].get("user"), batch
            batch = []
        place = here
        if asks_to_forget:
            yield "forget", turn.get("user"), turn["forget"]
        else:
            batch.append(turn if takes_dates else put_date_before(turn))
    if batch:
        yield "ingest", batch[0].get("user"), batch
