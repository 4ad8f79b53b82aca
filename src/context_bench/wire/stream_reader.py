"""Streamed replies of both APIs, put together as if they had come in one piece.

One class assembles the events; `read_chat_stream` is strict, for the client that asked: it also times the tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from context_bench.wire.events import DONE, read_events

__all__ = ["StreamAssembler", "read_chat_stream"]


@dataclass(slots=True)
class _StreamedCall:
    """A tool call comes in pieces: its id and name once, its arguments bit by bit."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def as_openai(self) -> dict[str, Any]:
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(slots=True)
class StreamAssembler:
    """The pieces of a streamed reply so far, by the choice and the place where they belong.

    `spoke` says whether the last event brought text or a call of the first choice; reasoning is no part of an answer.
    """

    id: str = ""
    texts: dict[int, list[str]] = field(default_factory=dict)
    calls: dict[tuple[int, int], _StreamedCall] = field(default_factory=dict)
    usage: Any = None
    finish: Any = None
    spoke: bool = False

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in an event of either API; AttributeError or TypeError when it is malformed."""
        self.spoke = False
        kind = event.get("type")
        if "choices" in event:
            self.id = self.id or _read_str(event.get("id"))
            self.usage = event.get("usage") or self.usage
            for choice in event["choices"] or ():
                self._add_choice(choice)
        elif kind == "message_start":
            self.id = _read_str(event["message"].get("id"))
            self._add_text(0, None)
        elif kind == "content_block_start":
            block = event["content_block"]
            if block.get("type") == "tool_use":
                self._add_call((0, event.get("index", 0)), block.get("id"), block.get("name"), None)
            else:
                self._add_text(0, block.get("text"))
        elif kind == "content_block_delta":
            delta = event["delta"]
            if delta.get("type") == "input_json_delta":
                self._add_call((0, event.get("index", 0)), None, None, delta.get("partial_json"))
            else:
                self._add_text(0, delta.get("text"))

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        number = choice.get("index", 0)
        if number == 0:
            self.finish = choice.get("finish_reason") or self.finish
        delta = choice.get("delta") or {}
        self._add_text(number, delta.get("content"))
        for piece in delta.get("tool_calls") or ():
            function = piece.get("function") or {}
            place = number, piece.get("index", 0)
            self._add_call(place, piece.get("id"), function.get("name"), function.get("arguments"))

    def _add_text(self, choice: int, text: Any) -> None:
        self.texts.setdefault(choice, []).append(_read_str(text))
        self.spoke = self.spoke or bool(text and choice == 0)

    def _add_call(self, place: tuple[int, int], identity: Any, name: Any, arguments: Any) -> None:
        call = self.calls.setdefault(place, _StreamedCall())
        call.id = _read_str(identity) or call.id
        call.name += _read_str(name)
        call.arguments += _read_str(arguments)
        self.spoke = self.spoke or place[0] == 0

    def first_message(self) -> dict[str, Any]:
        """The first choice as a message in OpenAI's form."""
        message: dict[str, Any] = {"content": "".join(self.texts.get(0, ()))}
        # In the order of their coming: a server may number them by texts, or not at all.
        calls = [call.as_openai() for place, call in self.calls.items() if place[0] == 0]
        return {**message, "tool_calls": calls} if calls else message


def _read_str(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("a piece of a stream must be a text")
    return value


def read_chat_stream(body: bytes, chunks: Iterable[tuple[float, bytes]]) -> Any:
    """Read OpenAI's stream as one completion; from a server that chose not to stream, the JSON of the body.

    `timings_of_stream` holds the seconds to the first token, and between two of them.

    Raises:
        ValueError: The stream is broken, ends before the reply does, or tells of an error.
    """
    if body.lstrip().startswith(b"{"):
        return orjson.loads(body)
    stream = StreamAssembler()
    moments: list[float] = []
    done = False
    for moment, event in read_events(chunks):
        if event == DONE:
            done = True
            continue
        _add_strictly(stream, event)
        if stream.spoke:
            moments.append(moment)
    if not stream.finish and not done:
        raise ValueError("it ends before the reply does")
    choice = {"message": stream.first_message(), "finish_reason": stream.finish}
    return {"choices": [choice], "usage": stream.usage, "timings_of_stream": _measure_pace(moments)}


def _add_strictly(stream: StreamAssembler, event: Any) -> None:
    try:
        if event.get("error"):
            raise ValueError(f"the server tells of an error: {event['error']}")
        stream.add(event)
    except (AttributeError, TypeError, KeyError):
        raise ValueError("an event is not a chunk of a completion") from None


def _measure_pace(moments: list[float]) -> dict[str, float]:
    if not moments:
        return {}
    timings = {"time_to_first_token": moments[0]}
    gaps = len(moments) - 1
    return {**timings, "inter_token_seconds": (moments[-1] - moments[0]) / gaps} if gaps else timings
