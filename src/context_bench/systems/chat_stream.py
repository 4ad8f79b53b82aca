"""A streamed chat completion, put together as if it had come in one piece, with the times of its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from context_bench.http.events import DONE, read_events
from context_bench.http.transport import Reply

__all__ = ["read_stream"]


def read_stream(reply: Reply) -> Any:
    """The completion in a stream, or the body's own JSON from a server that chose not to stream.

    Raises:
        ValueError: The stream is broken, ends before the reply does, or tells of an error.
    """
    if reply.body.lstrip().startswith(b"{"):
        return orjson.loads(reply.body)
    stream = _Stream()
    for moment, event in read_events(reply.chunks):
        try:
            stream.add(moment, event)
        except (AttributeError, TypeError):
            raise ValueError("an event is no chunk of a completion") from None
    return stream.completion()


class _Stream:
    """What was heard so far of the first choice. Reasoning is no part of the answer."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._moments: list[float] = []
        self._usage: Any = None
        self._finish: Any = None
        self._done = False

    def add(self, moment: float, event: Any) -> None:
        if event == DONE:
            self._done = True
            return
        if event.get("error"):
            raise ValueError(f"the server tells of an error: {event['error']}")
        self._usage = event.get("usage") or self._usage
        for choice in event.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._finish = choice.get("finish_reason") or self._finish
                self._hear(moment, choice.get("delta") or {})

    def _hear(self, moment: float, delta: Mapping[str, Any]) -> None:
        text, calls = delta.get("content"), delta.get("tool_calls") or ()
        if text:
            self._texts.append(str(text))
        for piece in calls:
            self._add_call(piece)
        if text or calls:
            self._moments.append(moment)

    def _add_call(self, piece: Mapping[str, Any]) -> None:
        """A tool call comes in pieces: its name once, its arguments bit by bit."""
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(piece.get("index", 0), empty)
        call["id"] = piece.get("id") or call["id"]
        function = piece.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    def completion(self) -> dict[str, Any]:
        if not self._finish and not self._done:
            raise ValueError("it ends before the reply does")
        message: dict[str, Any] = {"content": "".join(self._texts)}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        choice = {"message": message, "finish_reason": self._finish}
        return {"choices": [choice], "usage": self._usage, "timings_of_stream": self._timings()}

    def _timings(self) -> dict[str, float]:
        if not self._moments:
            return {}
        first, last, gaps = self._moments[0], self._moments[-1], len(self._moments) - 1
        timings = {"time_to_first_token": first}
        return {**timings, "inter_token_seconds": (last - first) / gaps} if gaps else timings
