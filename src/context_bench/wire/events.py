"""Server-sent events: the form in which models stream their replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

BOM = b"\xef\xbb\xbf"  # the byte order mark that some servers put before a stream or a body

DONE = "[DONE]"  # the text that stands for the event that ends OpenAI's streams, which is not JSON


def read_events(chunks: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, Any]]:
    """Read the JSON of each event, and the moment of the chunk that completed it.

    Chunks may end anywhere. Comments, other fields than `data` and a byte order mark in front are passed over.

    Raises:
        ValueError: An event is not JSON, or ends in the middle.
    """
    data: list[bytes] = []
    completed = 0.0
    for number, (moment, line) in enumerate(_lines(chunks)):
        if not number:
            line = line.removeprefix(BOM)
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
            completed = moment
        elif not line and data:
            text = b"\n".join(data)
            data = []
            if text:
                yield completed, DONE if text == DONE.encode() else orjson.loads(text)


def _lines(chunks: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, bytes]]:
    """Lines without their ends, however the chunks cut them; an empty one at last ends the last event."""
    parts: list[bytes] = []
    moment = 0.0
    for moment, chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield moment, b"".join([*parts, end]).rstrip(b"\r")
            parts = []
        parts.append(rest)
    yield moment, b"".join(parts).rstrip(b"\r")
    yield moment, b""


def scan_events(reply: str, holding: str = "") -> Iterator[dict[str, Any]]:
    """Find the JSON objects in the text of a stream, of those lines alone that hold a word.

    A broken one is passed over, as a stream may be cut.
    """
    for line in reply.splitlines():
        if line.startswith("data:") and holding in line:
            try:
                event = orjson.loads(line[5:])
            except orjson.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event
