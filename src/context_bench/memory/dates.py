"""Dates of turns as a reader sees them."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from context_bench.memory.conversations import Turn

__all__ = ["put_date_before", "write_date"]


@lru_cache(maxsize=4096)
def write_date(timestamp: str | None) -> str:
    """Write a timestamp as `8 May 2023, 13:56`, or `8 May 2023` at midnight; what is not ISO 8601 stays as it is."""
    if not timestamp:
        return ""
    try:
        moment = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return timestamp
    day = f"{moment.day} {moment:%B} {moment.year}"
    return f"{day}, {moment:%H:%M}" if moment.hour or moment.minute else day


def put_date_before(turn: Turn) -> Turn:
    """Return the turn with its date before its text, for a memory that does not read timestamps."""
    date = write_date(turn.get("timestamp"))
    return {**turn, "content": f"[{date}] {turn.get('content', '')}"} if date else turn
