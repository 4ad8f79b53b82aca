"""Text handling for all parts: gold answers, words, replies, escapes and masked secrets.

This module has names and counts for sentences, small files of the user (settings, prices, run files), and strict JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def list_names(names: Sequence[str], most: int = 6) -> str:
    """Join names for a sentence; for many, the first ones and the number of the rest."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most:,} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else "nothing"


def count_things(number: int, thing: str) -> str:
    """Write a count with its noun: `1 row`, `2,000 rows`."""
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"


def format_bytes(size: float) -> str:
    """Write a size with its unit: `512 B`, `3.4 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:,.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"


MAX_BYTES = 64 * 2**20


def read_small_file(path: Path) -> str:
    """Read a whole text file; raise OSError for a device, a pipe or more than `MAX_BYTES`, ValueError unless it is
    UTF-8."""
    _refuse_endless(path)
    if path.stat().st_size > MAX_BYTES:
        raise OSError(None, f"it is larger than {MAX_BYTES // 2**20} MB")
    return path.read_text(encoding="utf-8")


def read_regular_file(path: Path) -> bytes:
    """Read a whole file of any size; raise OSError for a device or a pipe, which may never end."""
    _refuse_endless(path)
    return path.read_bytes()


def _refuse_endless(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise OSError(None, "it is not a regular file")


def dump_json(value: Any, *, indent: bool = False) -> str:
    """Write strict JSON: infinity and NaN become null, unknown objects their text."""
    import orjson  # imported here: the error for a wrong flag does not need it

    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, default=str, option=options).decode()
    except (TypeError, orjson.JSONEncodeError):  # lone surrogates, integers over 64 bits, odd keys
        return orjson.dumps(_make_plain(value), default=str, option=options).decode()


_JSON_KEYS = (str, int, float, type(None))


def _make_plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        named = ((key if isinstance(key, _JSON_KEYS) else str(key), item) for key, item in value.items())
        return {_make_plain(key): _make_plain(item) for key, item in named}
    if isinstance(value, list | tuple):
        return [_make_plain(item) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return value
