"""Reading what a model answered, in the forms of OpenAI and Anthropic, plain or streamed: its id, texts and tool calls.

The same reading of what came back to the client tells which of several answers that was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from context_bench.results import dump_json
from context_bench.tap.prompt import read_document, spell_json
from context_bench.utils.tokens import Tokenizer

__all__ = ["Completion", "find_sources", "read_completion", "read_events", "read_plain"]

_LONGEST = 100_000
"""Characters of a text that are kept of what came back to the client."""

ToolCall = tuple[str, str]


@dataclass(slots=True)
class Completion:
    """What a model answered: a text for each choice, and the calls of tools as (name, arguments in one spelling)."""

    id: str = ""
    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the first choice, which is the one that clients read; layout does not tell answers apart."""
        return " ".join(self.texts[0].split()) if self.texts else ""

    def tokens(self, count: Tokenizer) -> int:
        """What the model wrote: all texts, and the arguments of the tools that it calls."""
        written = (*self.texts, *(arguments for _, arguments in self.calls))
        return sum(count(text) for text in written if text)

    def as_dict(self) -> dict[str, Any]:
        """As the record of an exchange keeps it; a very long text by its beginning."""
        return {"id": self.id, "text": (self.texts or [""])[0][:_LONGEST], "calls": [list(call) for call in self.calls]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Completion:
        """Read what `as_dict` gave."""
        return cls(record["id"], [record["text"]], [(name, arguments) for name, arguments in record["calls"]])


@lru_cache(maxsize=8)
def read_completion(reply: str) -> Completion | None:
    """The completion in the body of a reply; None where there is none."""
    if reply.lstrip().startswith("{"):
        return read_plain(read_document(reply))
    return _read_stream(read_events(reply))


def read_events(reply: str, holding: str = "") -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream whose text holds a word; a broken one is passed over, as a stream may be cut."""
    for line in reply.splitlines():
        if line.startswith("data:") and holding in line:
            try:
                event = orjson.loads(line[5:])
            except orjson.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event


# --- plain


def read_plain(document: Mapping[str, Any]) -> Completion | None:
    """The completion in a document; None where there is none."""
    found = Completion(_text(document.get("id")))
    if isinstance(document.get("choices"), list):
        for choice in document["choices"]:
            message = choice.get("message") if isinstance(choice, Mapping) else None
            if isinstance(message, Mapping):
                found.texts.append(_join(message.get("content")))
                found.calls += _tool_calls(message.get("tool_calls"))
        return found if found.texts else None
    if isinstance(document.get("content"), list):
        found.texts.append(_join(document["content"]))
        for block in document["content"]:
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                found.calls.append((_text(block.get("name")), spell_json(dump_json(block.get("input")))))
        return found
    return None


def _tool_calls(calls: Any) -> Iterator[ToolCall]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _text(function.get("name")), spell_json(_text(function.get("arguments")))


def _join(content: Any) -> str:
    """A content that is a text, or blocks some of which hold a text."""
    blocks = content if isinstance(content, list) else [{"text": content}]
    return "".join(_text(block.get("text")) for block in blocks if isinstance(block, Mapping))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# --- streamed


class _Pieces:
    """The pieces of a streamed reply, put together by the place where they belong."""

    def __init__(self) -> None:
        self.id = ""
        self.texts: dict[Any, list[str]] = {}
        self.calls: dict[Any, list[str]] = {}

    def add_text(self, place: Any, text: Any) -> None:
        self.texts.setdefault(place, []).append(_text(text))

    def add_call(self, place: Any, name: Any, arguments: Any) -> None:
        call = self.calls.setdefault(place, ["", ""])
        call[0] += _text(name)
        call[1] += _text(arguments)

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in an event of either API."""
        if isinstance(event.get("choices"), list):
            self.id = self.id or _text(event.get("id"))
            for choice in event["choices"]:
                if isinstance(choice, Mapping):
                    self._take_choice(choice)
        elif event.get("type") == "message_start":
            message = event.get("message")
            self.id = _text(message.get("id")) if isinstance(message, Mapping) else ""
            self.add_text(0, "")
        elif event.get("type") == "content_block_start":
            block = event.get("content_block")
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                self.add_call(event.get("index"), block.get("name"), "")
            elif isinstance(block, Mapping):
                self.add_text(0, block.get("text"))
        elif event.get("type") == "content_block_delta":
            delta = event.get("delta")
            if isinstance(delta, Mapping) and delta.get("type") == "input_json_delta":
                self.add_call(event.get("index"), "", delta.get("partial_json"))
            elif isinstance(delta, Mapping):
                self.add_text(0, delta.get("text"))

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        place, delta = choice.get("index", 0), choice.get("delta")
        if not isinstance(delta, Mapping):
            return
        self.add_text(place, delta.get("content"))
        calls = delta.get("tool_calls")
        for piece in calls if isinstance(calls, list) else ():
            function = piece.get("function") if isinstance(piece, Mapping) else None
            if isinstance(function, Mapping):
                self.add_call((place, piece.get("index", 0)), function.get("name"), function.get("arguments"))


def _read_stream(events: Iterator[Mapping[str, Any]]) -> Completion | None:
    pieces = _Pieces()
    for event in events:
        pieces.take(event)
    if not pieces.texts and not pieces.calls:
        return None
    calls = [(name, spell_json(arguments or "{}")) for name, arguments in pieces.calls.values()]
    return Completion(pieces.id, ["".join(parts) for parts in pieces.texts.values()], calls)


# --- which of several answers came back


def find_sources(returned: Completion, replies: Sequence[Completion | None]) -> tuple[list[int], bool]:
    """Tell which replies of a model make up what came back to the client.

    A reply that says the same, with the same id if any has it; else replies whose texts or calls stand side by side
    in what came back, which was joined from them; else the reply with its id; else the one that holds all of it.

    Returns:
        The places of the replies, and whether they are parts of one answer. Several that are not are alike: what
        came back may be any one of them. None where nothing tells.
    """
    known = [(place, reply) for place, reply in enumerate(replies) if reply is not None]
    named = [place for place, reply in known if returned.id and reply.id == returned.id]
    same = [place for place, reply in known if reply.text == returned.text and reply.calls == returned.calls]
    if same:
        return [place for place in same if place in named] or same, False
    parts = _find_parts(returned, known)
    if len(parts) > 1:
        return parts, True
    if named or parts:
        return named or parts, False
    return [place for place, reply in known if returned.text and _find(returned.text, reply.text) >= 0], False


def _find_parts(returned: Completion, known: Sequence[tuple[int, Completion]]) -> list[int]:
    """Those whose whole answer stands in what came back, none of them within another one."""
    rest, calls, found = returned.text, Counter(returned.calls), []
    for place, reply in sorted(known, key=lambda each: -len(each[1].text)):
        at, own = _find(reply.text, rest), Counter(reply.calls)
        if (reply.text and at < 0) or not own <= calls or not (reply.text or own):
            continue
        found.append(place)
        calls -= own
        if reply.text:
            rest = rest[:at] + "\0" + rest[at + len(reply.text) :]
    return sorted(found)


def _find(part: str, whole: str) -> int:
    """Where a text stands in another so that no word goes on beyond it; -1 where it does not."""
    at = whole.find(part)
    while at >= 0:
        before, after = whole[at - 1 : at + 1] if at else "", whole[at + len(part) - 1 : at + len(part) + 1]
        if not _is_one_word(before) and not _is_one_word(after):
            return at
        at = whole.find(part, at + 1)
    return -1


def _is_one_word(pair: str) -> bool:
    return len(pair) == 2 and all(sign.isalnum() or sign == "_" for sign in pair)
