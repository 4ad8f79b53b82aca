"""Keys: everything that can change a result, and nothing else.

An answer depends on the system and on what it may read of the example; a row also on the gold, the
evaluators and the tokenizer. A change of any of these is another key, so nothing stale is ever found.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import orjson

GOLD_FIELDS = frozenset(
    {"answer", "answers", "correct_letter", "evidence", "ground_truth", "reference", "references"}
    | {"relevant_ids", "test", "test_list"}
)
"""Fields that a system does not read, so that a corrected gold answer costs no new request."""

_SIZE = 16
_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY


def digest(*parts: bytes | str) -> bytes:
    """Digest parts of any length, in this order, into sixteen bytes."""
    hasher = blake2b(digest_size=_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def digest_of(*parts: bytes) -> bytes:
    """Digest parts of one length each, which need no marks between them."""
    return blake2b(b"".join(parts), digest_size=_SIZE).digest()


def example_digests(example: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Digest the whole example, and the part of it that a system may read."""
    read = dict(example)
    gold = {key: read.pop(key) for key in GOLD_FIELDS.intersection(example)}
    visible = digest_of(_json(read))
    return digest_of(visible, _json(gold)), visible


class Keys:
    """The keys of one system's work on one example: its answer, and its finished row. None where reuse is not safe.

    `whole` stands for the example; `response` is the id of the answer once that is stored, and `record` the answer as
    it was found in the store.
    """

    __slots__ = ("answer", "record", "response", "row", "whole")

    def __init__(self, whole: bytes, answer: bytes | None, row: bytes | None) -> None:
        self.whole, self.answer, self.row = whole, answer, row
        self.response: int | None = None
        self.record: bytes | None = None


def make_keys(whole: bytes, read: bytes, repeat: int, system: bytes | None, judged: bytes | None) -> Keys:
    """Make the keys of an answer and its row.

    Args:
        whole: Stands for the example.
        read: Stands for what the system may read of it.
        repeat: The number of the repeat.
        system: Stands for the system; None when it cannot be recognised again.
        judged: Stands for what a row depends on besides; None when that is not known.
    """
    if system is None:
        return Keys(whole, None, None)
    answer = digest_of(system, read, repeat.to_bytes(4, "little"))
    return Keys(whole, answer, None if judged is None else digest_of(answer, whole, judged))


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=_OPTIONS)
    except TypeError:  # lone surrogates, very large integers, objects: by their repr, which tells them apart
        return orjson.dumps(_spell(value), option=_OPTIONS)


def _spell(value: Any) -> Any:
    """Write every key and value as ASCII text, in the structure that they have."""
    if isinstance(value, Mapping):
        return {ascii(key): _spell(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(item) for item in value]
    return value if isinstance(value, bool | None) else ascii(value)
