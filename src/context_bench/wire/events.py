"""Server-sent events, in which models stream their replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

BOM = b"\xef\xbb\xbf"  # byte order mark that some servers send before a stream or a body

DONE = "[DONE]"  # data of the last event of OpenAI's streams; it is not JSON


def read_events(chunks: Iterable[tuple[float, bytes]]) -> Iterator[tuple[float, Any]]:
    """Yield the arrival time and the JSON of each event.

    Chunks may end anywhere. Comments, fields other than `data` and a leading byte order mark are ignored.

    Raises:
        ValueError: An event is not JSON, or is incomplete.
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
    """Yield lines without line ends, joined across chunks; a final empty line ends the last event."""
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
    """Yield the JSON objects in the text of a stream, only from lines that contain `holding`.

    Invalid JSON is skipped, because a recorded stream may be cut off.
    """
    for line in reply.splitlines():
        if line.startswith("data:") and holding in line:
            try:
                event = orjson.loads(line[5:])
            except orjson.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event
