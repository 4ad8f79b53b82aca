"""Each record carries a checksum: one that is not as it was written is known to be damaged, and costs no other.

A record is a byte that says how its content is written (`PLAIN`: as it is), four bytes of CRC-32, and the content. The
checksum also covers what the record belongs to, such as its id: one that is found in the wrong place is damaged too.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

import orjson

__all__ = ["PLAIN", "Damaged", "about_keys", "about_one", "about_row", "load", "seal", "sum_values", "unseal"]

PLAIN = 0
"""The content as it is; other numbers are for other ways to write it."""

_HEADER = struct.Struct("<BI")
_LENGTH = _HEADER.size
_write_header, _read_header = _HEADER.pack, _HEADER.unpack_from
_pack_one, _pack_two = struct.Struct("<q").pack, struct.Struct("<qq").pack
_NOTHING = -1
"""In place of the id of an answer that is not there."""


class Damaged(Exception):
    """A record is not as it was written."""


def about_one(identity: int, key: bytes = b"") -> bytes:
    """What stands for an answer or request with this id, or an example that has a key besides."""
    try:
        return _pack_one(identity) + key
    except (struct.error, TypeError):  # a column of another kind
        raise Damaged from None


def about_row(example: int, response: int | None) -> bytes:
    """What stands for a row: the ids of its example and its answer."""
    try:
        return _pack_two(example, _NOTHING if response is None else response)
    except struct.error:
        raise Damaged from None


def about_keys(run: int, kind: str) -> bytes:
    """What stands for a piece of keys."""
    return about_one(run, kind.encode("utf-8", "replace"))


def seal(content: bytes, about: bytes) -> bytes:
    """A record with this content, of something that `about` stands for."""
    return _write_header(PLAIN, crc32(content, crc32(about))) + content


def unseal(record: Any, about: bytes) -> bytes:
    """The content of a record; Damaged when it is not what was sealed for the same thing."""
    try:
        codec, found = _read_header(record)
        content: bytes = record[_LENGTH:]
        if codec == PLAIN and crc32(content, crc32(about)) == found:
            return content
    except (struct.error, TypeError):  # too short, or a column of another kind
        pass
    raise Damaged


def load(record: Any, about: bytes) -> Any:
    """The JSON in a record; Damaged when there is none."""
    try:
        return orjson.loads(unseal(record, about))
    except orjson.JSONDecodeError:
        raise Damaged from None


def sum_values(*values: int | str | bytes | None) -> int:
    """A checksum of the columns of a table."""
    return crc32(
        repr([each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in values]).encode()
    )
