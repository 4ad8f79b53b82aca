"""Server-sent events: the form in which models stream their replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from context_bench.http.transport import Reply

__all__ = ["read_events"]


def read_events(reply: Reply) -> Iterator[tuple[float, Any]]:
    """The JSON of each event, and the seconds after which its last byte came.

    Raises:
        ValueError: The stream is no such stream.
    """
    buffer = b""
    for moment, chunk in reply.chunks:
        buffer += chunk.replace(b"\r\n", b"\n")
        *blocks, buffer = buffer.split(b"\n\n")
        for block in blocks:
            data = b"\n".join(line[5:].strip() for line in block.split(b"\n") if line.startswith(b"data:"))
            if data and data != b"[DONE]":
                yield moment, orjson.loads(data)
    if buffer.strip() and not buffer.strip().endswith(b"[DONE]"):
        raise ValueError("the stream ends in the middle of an event")
