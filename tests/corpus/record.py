"""What the runs gave when they were recorded, and how another outcome differs from it."""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus.parts_alone
import corpus.public_data
import corpus.runs  # noqa: F401  (both put their runs into RUNS)
from corpus.bench import RUNS

__all__ = ["RUNS", "describe_difference", "load_record", "save_record"]

FILE = Path(__file__).parent / "recorded.json.gz"
SHOWN = 6
"""Differences that a failing test shows."""


def load_record() -> dict[str, Any]:
    """Read the record."""
    return dict(json.loads(gzip.decompress(FILE.read_bytes()))) if FILE.exists() else {}


def save_record(record: dict[str, Any]) -> None:
    """Write the record, the same bytes for the same content."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def describe_difference(recorded: Any, made: Any) -> str:
    """Name the first places in which two outcomes differ; an empty text where they are equal."""
    made = json.loads(json.dumps(made))
    found = []
    for place, before, now in _differences(recorded, made, ""):
        found.append(f"{place or 'all'}:\n{_show(before, now)}")
        if len(found) == SHOWN:
            found.append("and more")
            break
    return "\n".join(found)


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


def _differences(before: Any, now: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(key for key in now if key not in before)]:
            yield from _differences(before.get(key, _Nothing()), now.get(key, _Nothing()), f"{place}[{key!r}]")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, pair in enumerate(zip(before, now, strict=True)):
            yield from _differences(*pair, f"{place}[{number}]")
    elif before != now or type(before) is not type(now):
        yield place, before, now


def _show(before: Any, now: Any) -> str:
    if isinstance(before, str) and isinstance(now, str):
        lines = list(difflib.unified_diff(before.split("\n"), now.split("\n"), "recorded", "now", n=0, lineterm=""))
        return "\n".join(f"  {line[:400]}" for line in lines[2:14])
    return f"  recorded {repr(before)[:400]}\n  now      {repr(now)[:400]}"
