"""Reading what a model answered, in the form of either API, plain or streamed: its id, texts and tool calls.

Lenient, since a recorded reply may be cut; `model_reply.py` is what a client reads its own reply by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from context_bench.results import dump_json
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.events import scan_events
from context_bench.wire.requests import read_document, read_text, spell_json
from context_bench.wire.stream_reader import StreamAssembler

__all__ = ["Completion", "read_completion", "read_plain"]

_LONGEST = 100_000
"""Characters of a text that are kept of what came back to the client, and by which answers are compared."""

ToolCall = tuple[str, str]


@dataclass(slots=True)
class Completion:
    """A model's answer: a text for each choice, and the calls of tools as (name, arguments in one spelling)."""

    id: str = ""
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The start of the first choice, which is the one that clients read; layout does not tell answers apart."""
        return " ".join(self.texts[0][:_LONGEST].split()) if self.texts else ""

    def tokens(self, count: Tokenizer) -> int:
        """Count the tokens that the model wrote: all texts, and the arguments of the tools that it calls."""
        written = (*self.texts, *(arguments for _, arguments in self.calls))
        return sum(count(text) for text in written if text)

    def as_dict(self) -> dict[str, Any]:
        """Write it as the record of an exchange keeps it; a very long text by its beginning."""
        return {"id": self.id, "text": (self.texts or [""])[0][:_LONGEST], "calls": [list(call) for call in self.calls]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Completion:
        """Read what `as_dict` gave."""
        return cls(record["id"], [record["text"]], [(name, arguments) for name, arguments in record["calls"]])


def read_completion(reply: str) -> Completion | None:
    """Read the completion in the body of a reply; None where there is none."""
    if reply.lstrip().startswith("{"):
        return read_plain(read_document(reply))
    return _read_stream(scan_events(reply))


# --- plain


def read_plain(document: Mapping[str, Any]) -> Completion | None:
    """Read the completion in a document; None where there is none."""
    found = Completion(_read_str(document.get("id")))
    if isinstance(document.get("choices"), list):
        for choice in document["choices"]:
            message = choice.get("message") if isinstance(choice, Mapping) else None
            if isinstance(message, Mapping):
                found.texts.append(read_text(message.get("content")))
                found.calls += _read_tool_calls(message.get("tool_calls"))
        return found if found.texts else None
    if isinstance(document.get("content"), list):
        found.texts.append(read_text(document["content"]))
        for block in document["content"]:
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                found.calls.append((_read_str(block.get("name")), spell_json(dump_json(block.get("input")))))
        return found
    return None


def _read_tool_calls(calls: Any) -> Iterator[ToolCall]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _read_str(function.get("name")), spell_json(_read_str(function.get("arguments")))


def _read_str(value: Any) -> str:
    return value if isinstance(value, str) else ""


# --- streamed


def _read_stream(events: Iterable[Mapping[str, Any]]) -> Completion | None:
    """Put a stream together; what is malformed in it is passed over, as a stream may be cut."""
    stream = StreamAssembler()
    for event in events:
        with suppress(AttributeError, TypeError, KeyError):
            stream.add(event)
    if not stream.texts and not stream.calls:
        return None
    calls = [(call.name, spell_json(call.arguments or "{}")) for call in stream.calls.values()]
    return Completion(stream.id, ["".join(parts) for parts in stream.texts.values()], calls)
