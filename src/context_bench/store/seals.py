"""Each record carries a checksum: one that is not as it was written is known to be damaged, and costs no other.

A record is a byte that says how its content is written (`PLAIN`: as it is, `ZSTD`: compressed), four bytes of CRC-32,
and the content as it is written. The checksum also covers what the record belongs to, such as its id: one that is found
in the wrong place is damaged too.
"""

from __future__ import annotations

import struct
import threading
from functools import cache
from typing import Any
from zlib import crc32

import orjson

__all__ = [
    *("PLAIN", "ZSTD", "Damaged", "about_keys", "about_one", "about_row", "load", "seal"),
    *("seal_keys", "seal_one", "seal_row", "sum_values", "unseal"),
]

PLAIN = 0
"""The content as it is."""

ZSTD = 1
"""The content compressed by zstandard, where that is smaller; its number is part of the checksum."""

_WORTH_COMPRESSING = 4_096
"""Bytes from which a content is compressed: less would save little, and cost time for each short example."""

_LEVEL, _MIN_MATCH, _HASH_LOG = 1, 7, 13
"""Zstandard's first level, but repeats of six bytes are left alone: a tenth less time for 3 to 6% more bytes."""

_HEADER = struct.Struct("<BI")
_LENGTH = _HEADER.size
_write_header, _read_header = _HEADER.pack, _HEADER.unpack_from
_pack_one, _pack_two = struct.Struct("<q").pack, struct.Struct("<qq").pack
_NOTHING = -1
"""In place of the id of an answer that is not there."""


class Damaged(Exception):
    """A record is not as it was written."""


def about_one(identity: int, key: bytes = b"") -> bytes:
    """Identify an answer or request by its id, or an example by its id and key."""
    try:
        return _pack_one(identity) + key
    except (struct.error, TypeError):  # a column of another kind
        raise Damaged from None


def about_row(example: int, response: int | None) -> bytes:
    """Identify a row by the ids of its example and its answer."""
    try:
        return _pack_two(example, _NOTHING if response is None else response)
    except struct.error:
        raise Damaged from None


def about_keys(run: int, kind: str) -> bytes:
    """Identify a stored block of keys."""
    return about_one(run, kind.encode("utf-8", "replace"))


class _Codecs(threading.local):
    """A compressor and a decompressor for each thread: they cannot be shared."""

    def __init__(self) -> None:
        import zstandard  # where it is needed, as it takes its time

        chosen = zstandard.ZstdCompressionParameters.from_level(_LEVEL, min_match=_MIN_MATCH, hash_log=_HASH_LOG)
        self.compress = zstandard.ZstdCompressor(compression_params=chosen).compress
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.error = zstandard.ZstdError


@cache
def _codecs() -> _Codecs:
    return _Codecs()


def seal(content: bytes, about: bytes, *, compress: bool = True) -> bytes:
    """Make a record with this content, of something that `about` stands for; digests do not get smaller."""
    if compress and len(content) >= _WORTH_COMPRESSING:
        compressed = _codecs().compress(content)
        if len(compressed) < len(content):
            return _write_header(ZSTD, crc32(compressed, _sum_compressed(about))) + compressed
    return _write_header(PLAIN, crc32(content, crc32(about))) + content


def seal_one(content: bytes, identity: int, key: bytes = b"") -> bytes:
    """Make the record of an answer or request with this id, or of an example that has a key besides."""
    return seal(content, about_one(identity, key))


def seal_row(content: bytes, example: int, response: int | None) -> bytes:
    """Make the record of a row."""
    return seal(content, about_row(example, response))


def seal_keys(content: bytes, run: int, kind: str) -> bytes:
    """Make the record of a piece of keys, which do not get smaller."""
    return seal(content, about_keys(run, kind), compress=False)


def _sum_compressed(about: bytes) -> int:
    return crc32(bytes((ZSTD,)), crc32(about))


def unseal(record: Any, about: bytes) -> bytes:
    """Return the content of a record; Damaged when it is not what was sealed for the same thing."""
    try:
        codec, found = _read_header(record)
        content: bytes = record[_LENGTH:]
        if codec == PLAIN and crc32(content, crc32(about)) == found:
            return content
        if codec == ZSTD and crc32(content, _sum_compressed(about)) == found:
            return _decompress(content)
    except (struct.error, TypeError):  # too short, or a column of another kind
        pass
    raise Damaged


def _decompress(content: bytes) -> bytes:
    codecs = _codecs()
    try:
        return codecs.decompress(content)
    except codecs.error:
        raise Damaged from None


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
