"""Texts as every part of the package reads them: gold answers, words, replies, escapes and masked secrets.

Here: names and counts in a sentence, and small files that a user names (settings, prices, run files).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def list_names(names: Sequence[str], most: int = 6) -> str:
    """List names as a sentence does; of many, the first ones and how many more."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nothing"


def count_things(number: int, thing: str) -> str:
    """Say how many there are of a thing: `1 row`, `2,000 rows`."""
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"


MAX_BYTES = 64 * 2**20


def read_small_file(path: Path) -> str:
    """Read a text file whole, unless it may never end.

    Raises:
        OSError: It cannot be read, or it is a device, a pipe or larger than `MAX_BYTES`.
        ValueError: It is not UTF-8.
    """
    _refuse_endless(path)
    if path.stat().st_size > MAX_BYTES:
        raise OSError(None, f"it is larger than {MAX_BYTES // 2**20} MB")
    return path.read_text(encoding="utf-8")


def read_regular_file(path: Path) -> bytes:
    """Read a file of any size whole, unless it is a device or a pipe.

    Raises:
        OSError: It cannot be read, or may never end.
    """
    _refuse_endless(path)
    return path.read_bytes()


def _refuse_endless(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(None, "it is not a regular file")
