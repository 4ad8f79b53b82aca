"""Parts of a sentence: names in a row, and how many there are of something."""

from __future__ import annotations

from collections.abc import Sequence


def list_names(names: Sequence[str], most: int = 6) -> str:
    """List names as a sentence does; of many, the first ones and how many more."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nothing"


def count_things(number: int, thing: str) -> str:
    """Say how many there are of a thing: `1 row`, `2,000 rows`."""
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"
