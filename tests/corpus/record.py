"""What the runs gave when they were recorded, and how another outcome differs from it."""

from __future__ import annotations

import difflib
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus.parts_alone
import corpus.public_data
import corpus.runs  # noqa: F401  (both put their runs into RUNS)
from corpus.bench import RUNS

__all__ = ["RUNS", "describe_difference", "load_record", "save_record"]

FOLDER = Path(__file__).parent / "recorded"
"""One packed file for each run, so that two changes may record different runs."""
SHOWN = 6
"""Differences that a failing test shows."""


def load_record() -> dict[str, Any]:
    """Read the record of every run."""
    paths = {name: _find_file(name) for name in RUNS}
    return {name: json.loads(gzip.decompress(path.read_bytes())) for name, path in paths.items() if path.exists()}


def save_record(record: dict[str, Any]) -> None:
    """Write the record of each run, the same bytes for the same content."""
    FOLDER.mkdir(exist_ok=True)
    for name, outcome in record.items():
        text = json.dumps(outcome, ensure_ascii=False, separators=(",", ":"))
        _find_file(name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _find_file(name: str) -> Path:
    return FOLDER / (re.sub(r"\W+", "-", name) + ".json.gz")


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
