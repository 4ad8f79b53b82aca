"""The stored form of answers, rows and keys: each once, without fields of the example, and with a checksum.

A record is one byte for the encoding (`PLAIN` or `ZSTD`), four bytes of CRC-32, and the encoded content. The checksum
also covers the owner of the record, such as its id, so a changed or misplaced record is detected, and affects no other.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import starmap
from operator import attrgetter
from typing import Any
from zlib import crc32

import orjson

from context_bench.results import EvalRow
from context_bench.store.backend import RunRecord, StoredAnswer
from context_bench.text import dump_json

PLACES = 32  # bits for the place in a run

_KEY = struct.Struct("<16sq")

_BEFORE = ("system", "example_id", "scores", "input_tokens", "output_tokens", "metadata", "latency", "dataset")
_AFTER = ("error", "repeat", "unscored", "upstream_tokens")
_parts = attrgetter(*_BEFORE, *_AFTER)  # a row without its response, in the order of its fields


def identity_of(run: int, place: int) -> int:
    """Return the id of a run's record at a place; ids of later runs are higher."""
    return run << PLACES | place


def run_of(identity: int) -> int:
    """Return the number of an id's run."""
    return identity >> PLACES


def place_of(identity: int) -> int:
    """Return the place of an id in its run."""
    return identity & ((1 << PLACES) - 1)


def places_of(run: int) -> tuple[int, int]:
    """Return the first id of a run, and the first of the next run."""
    return identity_of(run, 0), identity_of(run + 1, 0)


def pack_keys(known: Iterable[tuple[bytes, int]]) -> bytes:
    """Pack keys of sixteen bytes, each with the id of its record, into one block."""
    return b"".join(starmap(_KEY.pack, known))


def unpack_keys(body: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield each key and its id from a block of `pack_keys`."""
    return _KEY.iter_unpack(body)


def to_bytes(value: Any) -> bytes:
    """Write a value as JSON, including values that orjson refuses."""
    try:
        return bytes(memoryview(orjson.dumps(value)))  # a copy: orjson's result keeps a buffer of 4 KB or more
    except TypeError:
        return dump_json(value).encode()


def pack_processed(processed: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """Pack a system's output, without the fields of the example that it did not change."""
    same = [key for key, value in processed.items() if key in example and _equal(example[key], value)]
    changed = {key: value for key, value in processed.items() if key not in same} if same else dict(processed)
    if "response" not in changed or changed["response"] != processed.get("context"):
        return {"same": same, "changed": changed}
    del changed["response"]
    return {"same": same, "changed": changed, "response": "context"}


def pack_answer(
    processed: Mapping[str, Any], metadata: Mapping[str, Any], latency: float, returns: str, example: Mapping[str, Any]
) -> bytes:
    """Pack an answer without the fields that its example has."""
    packed = pack_processed(processed, example)
    return to_bytes({"processed": packed, "metadata": metadata, "latency": latency, "returns": returns})


def _equal(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except ValueError:  # arrays have no plain truth value
        return False


def unpack_processed(packed: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """Return a system's output from the result of `pack_processed`."""
    processed = {key: example[key] for key in packed["same"] if key in example}
    processed.update(packed["changed"])
    if "response" in packed:
        processed["response"] = processed.get(packed["response"], "")  # the example may be lost
    return processed


def pack_row(row: EvalRow) -> bytes:
    """Pack a row without its response, which its answer has."""
    return to_bytes(_parts(row))


def unpack_row(parts: list[Any], response: str) -> EvalRow:
    """Rebuild the row from the JSON list of `pack_row` and its response."""
    whole = [*parts[: len(_BEFORE)], response, *parts[len(_BEFORE) :]]
    return EvalRow(*whole)


# --- the checksum


PLAIN = 0  # the unchanged content

ZSTD = 1  # the content compressed by zstandard, if that is smaller; its number is part of the checksum

_WORTH_COMPRESSING = 4_096
"""Smallest content to compress, in bytes: below this, little is saved and each short example takes longer."""

_LEVEL, _MIN_MATCH, _HASH_LOG = 1, 7, 13
"""Zstandard level 1 with matches of at least seven bytes: a tenth less time for 3 to 6% more bytes."""

_HEADER = struct.Struct("<BI")
_LENGTH = _HEADER.size
_write_header, _read_header = _HEADER.pack, _HEADER.unpack_from
_pack_one, _pack_two = struct.Struct("<q").pack, struct.Struct("<qq").pack
_NOTHING = -1  # instead of the id of a missing answer


class Damaged(Exception):
    """A record differs from its original content."""


def about_one(identity: int, key: bytes = b"") -> bytes:
    """Identify an answer or request by its id, or an example by its id and key."""
    try:
        return _pack_one(identity) + key
    except (struct.error, TypeError):  # a column of another kind
        raise Damaged from None


def about_row(example: int, response: int | None) -> bytes:
    """Identify a row by the ids of its example and answer."""
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
        import zstandard  # imported here, as it takes time

        chosen = zstandard.ZstdCompressionParameters.from_level(_LEVEL, min_match=_MIN_MATCH, hash_log=_HASH_LOG)
        self.compress = zstandard.ZstdCompressor(compression_params=chosen).compress
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.error = zstandard.ZstdError


@cache
def _codecs() -> _Codecs:
    return _Codecs()


def seal(content: bytes, about: bytes, *, compress: bool = True) -> bytes:
    """Make a record: a checksum over `about` (its owner) and content, and the content, compressed if that is
    smaller."""
    if compress and len(content) >= _WORTH_COMPRESSING:
        compressed = _codecs().compress(content)
        if len(compressed) < len(content):
            return _write_header(ZSTD, crc32(compressed, _sum_compressed(about))) + compressed
    return _write_header(PLAIN, crc32(content, crc32(about))) + content


def seal_one(content: bytes, identity: int, key: bytes = b"") -> bytes:
    """Make the record of an answer or request with this id, or of an example, which also has a key."""
    if len(content) < _WORTH_COMPRESSING:
        return _write_header(PLAIN, crc32(content, crc32(_pack_one(identity) + key))) + content
    return seal(content, about_one(identity, key))


def seal_row(content: bytes, example: int, response: int | None) -> bytes:
    """Make the record of a row."""
    if len(content) < _WORTH_COMPRESSING:
        about = crc32(_pack_two(example, _NOTHING if response is None else response))
        return _write_header(PLAIN, crc32(content, about)) + content
    return seal(content, about_row(example, response))


def seal_keys(known: Iterable[tuple[bytes, int]], run: int, kind: str) -> bytes:
    """Make the record of a block of keys, which are not compressible."""
    return seal(pack_keys(known), about_keys(run, kind), compress=False)


def _sum_compressed(about: bytes) -> int:
    return crc32(bytes((ZSTD,)), crc32(about))


def unseal(record: Any, about: bytes) -> bytes:
    """Return the content of a record; raise Damaged if the checksum does not match."""
    try:
        codec, found = _read_header(record)
        content: bytes = record[_LENGTH:]
        if codec == PLAIN and crc32(content, crc32(about)) == found:
            return content
        if codec == ZSTD and crc32(content, _sum_compressed(about)) == found:
            codecs = _codecs()
            try:
                return codecs.decompress(content)
            except codecs.error:
                raise Damaged from None
    except (struct.error, TypeError):  # too short, or a column of another kind
        pass
    raise Damaged


def load(record: Any, about: bytes) -> Any:
    """Read the JSON in a record; raise Damaged if it has none."""
    try:
        return orjson.loads(unseal(record, about))
    except orjson.JSONDecodeError:
        raise Damaged from None


def sum_values(*values: int | str | bytes | None) -> int:
    """Compute a checksum of the columns of a table."""
    return crc32(
        repr([each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in values]).encode()
    )


# --- answers and rows with all that belongs to them


def unpack_answer(record: Any, identity: int, example: Mapping[str, Any]) -> StoredAnswer:
    """Read an answer from its record; raise Damaged if its checksum is wrong."""
    return _to_answer(load(record, about_one(identity)), example)


def _to_answer(content: Any, example: Mapping[str, Any]) -> StoredAnswer:
    try:
        processed = unpack_processed(content["processed"], example)
        return StoredAnswer(processed, content["metadata"], content["latency"], content["returns"])
    except (KeyError, TypeError, AttributeError):
        raise Damaged from None


def find_response(content: Any, example: Mapping[str, Any]) -> str:
    """Find the response in the content of an answer's record."""
    packed = content["processed"]
    response: str | None = packed["changed"].get("response")
    return unpack_processed(packed, example)["response"] if response is None else response


def unpack_record(
    row: Any, response: int | None, record: Any, example_id: int, key: bytes | None, example: Mapping[str, Any] | None
) -> RunRecord:
    """Read a row of a run with its answer; raise Damaged if either is damaged.

    `example` may be None unless the response is part of it.
    """
    parts = load(row, about_row(example_id, response))
    content = None if response is None else load(record, about_one(response))
    answer = None if content is None else _to_answer(content, example or {})
    if content is not None and example is None and "response" not in content["processed"]["changed"]:
        raise Damaged
    text = "" if answer is None else answer.processed["response"]
    return RunRecord(unpack_row(parts, text), dict(example or {}), key or b"", example_id, answer, response, record)
