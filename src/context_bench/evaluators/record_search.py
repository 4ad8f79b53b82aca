"""JSON records in another form: their fields in another order, or as the row of a table."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from context_bench.text.words import normalise

__all__ = ["has_record"]


class _Field(NamedTuple):
    """The words of a key and of its value; without a value, as null is, it may be an empty cell."""

    key: str
    value: str
    nested: bool


def has_record(span: str, form: str) -> bool:
    """Whether all fields of a JSON record stand together, in any order, with nothing else between them.

    With their keys, or as the row of a table, which has none. Where the values alone could stand together by
    chance (fewer than three words, or numbers only) a table's row is not recognised.
    """
    record = _read_record(span)
    if record is None:
        return False
    fields = list(_list_fields(record))
    keyed = [f"{field.key} {field.value}" for field in fields if field.value]
    empty = [field.key for field in fields if not field.value]
    if _stand_together(keyed, [*empty, *(f"{key} null" for key in empty)], form):
        return True
    values = [field.value for field in fields if field.value]
    together = " ".join(values)
    if len(values) < 2 or len(together.split()) < 3 or not re.search(r"[^\W\d_]", together):
        return False
    return _stand_together(values, [*(field.key for field in fields if field.nested), "null", "none"], form)


def _read_record(span: str) -> dict[str, Any] | None:
    try:
        record = json.loads(span.rstrip(", \n"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _list_fields(value: Any, key: str = "", depth: int = 0) -> Iterator[_Field]:
    """The fields of a record, and of the records in it; a list of plain values is one value."""
    if isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value)):
        items = value.items() if isinstance(value, Mapping) else ((key, each) for each in value)
        if depth:
            yield _Field(key, "", depth > 1)
        for name, item in items:
            yield from _list_fields(item, normalise(name).strip(), depth + 1)
    else:
        yield _Field(key, " ".join(_list_plain_words(value)), depth > 1)


def _list_plain_words(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _list_plain_words(each)
    elif value is not None:
        yield from normalise(value if isinstance(value, str) else json.dumps(value)).split()


def _stand_together(pieces: Sequence[str], between: Sequence[str], form: str) -> bool:
    """Whether a stretch of words is made of all the pieces, and of nothing else but what may stand between."""
    if not pieces or not all(f" {piece} " in form for piece in pieces):
        return False
    needed, seen, end = Counter(pieces), Counter[str](), -1
    may = sorted({*pieces, *between} - {""}, key=len, reverse=True)
    for match in re.finditer(f"(?<= )({'|'.join(map(re.escape, may))}) ", form):
        if match.start() != end:
            seen.clear()
        end = match.end()
        seen[match[1]] += 1
        if needed <= seen:
            return True
    return False
