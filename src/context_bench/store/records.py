"""How answers, rows and keys are written down: once, without what the example holds already."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import orjson

from context_bench.results import EvalRow, dump_json

__all__ = [
    *(
        "PLACES",
        "identity_of",
        "pack_answer",
        "pack_keys",
        "pack_processed",
        "pack_row",
        "place_of",
        "places_of",
        "run_of",
        "to_bytes",
    ),
    *("unpack_keys", "unpack_processed", "unpack_row"),
]

PLACES = 32
"""Bits for the place in a run."""

_KEY = struct.Struct("<16sq")

_BEFORE = ("system", "example_id", "scores", "input_tokens", "output_tokens", "metadata", "latency", "dataset")
_AFTER = ("error", "repeat", "unscored", "upstream_tokens")
_parts = attrgetter(*_BEFORE, *_AFTER)
"""A row without its response, in the order of its fields."""


def identity_of(run: int, place: int) -> int:
    """The id of what a run makes at a place: what later runs make has higher ones."""
    return run << PLACES | place


def run_of(identity: int) -> int:
    """The number of the run that made something."""
    return identity >> PLACES


def place_of(identity: int) -> int:
    """The place of something in the run that made it."""
    return identity & ((1 << PLACES) - 1)


def places_of(run: int) -> tuple[int, int]:
    """The first id of a run, and that of the next."""
    return identity_of(run, 0), identity_of(run + 1, 0)


def pack_keys(known: Iterable[tuple[bytes, int]]) -> bytes:
    """Keys of sixteen bytes, each with the id of what is found under it, as one piece."""
    return b"".join([_KEY.pack(key, identity) for key, identity in known])


def unpack_keys(body: bytes) -> Iterator[tuple[bytes, int]]:
    """The inverse of `pack_keys`."""
    return _KEY.iter_unpack(body)


def to_bytes(value: Any) -> bytes:
    """JSON, whatever the value holds."""
    try:
        return bytes(memoryview(orjson.dumps(value)))  # a copy: what orjson gives keeps room for 4 KB and more
    except TypeError:
        return dump_json(value).encode()


def pack_processed(processed: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """Pack what a system returned, less what it left as it was; a response that is its context is kept once."""
    same = [key for key, value in processed.items() if key in example and _equal(example[key], value)]
    changed = {key: value for key, value in processed.items() if key not in same} if same else dict(processed)
    if "response" not in changed or changed["response"] != processed.get("context"):
        return {"same": same, "changed": changed}
    del changed["response"]
    return {"same": same, "changed": changed, "response": "context"}


def pack_answer(
    processed: Mapping[str, Any],
    metadata: Mapping[str, Any],
    latency: float,
    returns: str,
    example: Mapping[str, Any],
) -> bytes:
    """An answer, less what is in its example already."""
    packed = pack_processed(processed, example)
    return to_bytes({"processed": packed, "metadata": metadata, "latency": latency, "returns": returns})


def _equal(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except ValueError:  # arrays do not say
        return False


def unpack_processed(packed: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `pack_processed`."""
    processed = {key: example[key] for key in packed["same"] if key in example}
    processed.update(packed["changed"])
    if "response" in packed:
        processed["response"] = processed.get(packed["response"], "")  # the example may be lost
    return processed


def pack_row(row: EvalRow) -> bytes:
    """A row without its response, which is kept with the answer."""
    return to_bytes(_parts(row))


def unpack_row(parts: list[Any], response: str) -> EvalRow:
    """The inverse of `pack_row`, from what JSON makes of that."""
    whole = [*parts[: len(_BEFORE)], response, *parts[len(_BEFORE) :]]
    return EvalRow(*whole)
