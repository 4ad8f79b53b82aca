"""An API form: the one place that knows how an API writes requests, replies, streams and usage.

`ApiForm` is the Protocol; each form is one module beside this one, and `forms.py` lists them. Systems, the tap, the
records of traffic and the conformance checks ask the form. Everywhere else messages and tools are in the form of
OpenAI's chat completions, which examples are written in, and answers are the plain values of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import orjson

from context_bench.utils.tokens import MAX_TOKEN_COUNT, Tokenizer
from context_bench.wire.prompts import Message, Prompt

MAX_COMPLETION_CHARS = 100_000
"""Characters of a text that are kept of a reply to the client, and by which answers are compared."""

_MAX_REFUSED_CHARS = 40


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model calls; `arguments` is the exact JSON text."""

    id: str
    name: str
    arguments: str = "{}"


# --- replies that our own client reads


@dataclass(slots=True)
class ModelReply:
    """A model's answer as the client that asked for it reads it."""

    text: str  # what it says, all parts joined
    tool_calls: list[Any] = field(default_factory=list)  # what it calls, in OpenAI's form
    finish: str | None = None  # why it ended, in the words of its API; None when it does not say
    # token counts by our names: those of OpenAI's usage, and `cached_tokens`, `cache_creation_tokens`
    usage: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)  # of a stream, the times of its tokens


class NotAReply(ValueError):
    """JSON that is not a reply of the API that was asked.

    `usage` is the usage in it; `wrong_form` says that it has neither a reply nor an error of that API.
    """

    def __init__(self, what: str, document: Any, usage: dict[str, Any], form: str) -> None:
        super().__init__(f"JSON that is not a {what}: {_show_start(document)}")
        self.what, self.usage = what, usage
        self.wrong_form = not isinstance(document, dict) or not document.keys() & {form, "error"}


def _show_start(document: Any) -> str:
    """Show the start of a server's answer as text, however deep it is nested."""
    try:
        return orjson.dumps(document)[:200].decode("utf-8", "replace")
    except TypeError:  # more levels than can be written
        return f"a {type(document).__name__} of too many levels"


# --- replies that were recorded


class Recorded(NamedTuple):
    """A request with all of its conversation in it, and the reply to it."""

    request: Mapping[str, Any]
    reply: Mapping[str, Any]


@dataclass(slots=True)
class Completion:
    """A recorded answer: a text for each choice, and the calls of tools as (name, arguments in one spelling)."""

    id: str = ""
    texts: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The start of the first choice, which is the one that clients read, whatever its layout."""
        return " ".join(self.texts[0][:MAX_COMPLETION_CHARS].split()) if self.texts else ""

    def tokens(self, count: Tokenizer) -> int:
        """Count the tokens that the model wrote: all texts, and the arguments of the tools that it calls."""
        written = (*self.texts, *(arguments for _, arguments in self.calls))
        return sum(count(text) for text in written if text)

    def as_dict(self) -> dict[str, Any]:
        """Write it as the record of an exchange keeps it; a very long text by its beginning."""
        text = (self.texts or [""])[0][:MAX_COMPLETION_CHARS]
        return {"id": self.id, "text": text, "calls": [list(call) for call in self.calls]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Completion:
        return cls(record["id"], [record["text"]], [(name, arguments) for name, arguments in record["calls"]])


# --- streams


@dataclass(slots=True)
class _StreamedCall:
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class StreamedReply:
    """The pieces of a streamed reply so far, by the choice and the place where they belong; a form adds the events.

    `spoke` says whether the last event brought text or a call of the first choice; reasoning is no part of an answer.
    `ended` says whether the event came that ends the stream, `error` what the server says went wrong. `whole` is the
    reply as the server joins it, where a stream ends with that.
    """

    id: str = ""
    texts: dict[int, list[str]] = field(default_factory=dict)
    calls: dict[tuple[int, int], _StreamedCall] = field(default_factory=dict)
    usage: Any = None
    finish: Any = None
    spoke: bool = False
    ended: bool = False
    error: str = ""
    whole: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of the first choice."""
        return "".join(self.texts.get(0, ()))

    def list_calls(self) -> list[ToolCall]:
        """List the calls of the first choice as they came: a server may number them by texts, or not at all."""
        return [ToolCall(call.id, call.name, call.arguments) for (choice, _), call in self.calls.items() if choice == 0]

    def add_id(self, value: Any) -> None:
        self.id = self.id or _read_piece(value)

    def add_text(self, text: Any, choice: int = 0) -> None:
        """Add a piece of text; TypeError when it is none."""
        self.texts.setdefault(choice, []).append(_read_piece(text))
        self.spoke = self.spoke or bool(text and choice == 0)

    def add_call(self, place: Any, identity: Any, name: Any, arguments: Any, choice: int = 0) -> None:
        """Add a piece of a tool call: its id and name come once, its arguments bit by bit."""
        call = self.calls.setdefault((choice, place), _StreamedCall())
        call.id = _read_piece(identity) or call.id
        call.name += _read_piece(name)
        call.arguments += _read_piece(arguments)
        self.spoke = self.spoke or choice == 0


def _read_piece(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("a piece of a stream must be a text")
    return value


# --- answers that the tap gives


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, in no API's form yet."""

    text: str = ""  # what the model says
    tool_calls: Sequence[ToolCall] = ()  # what it calls
    chunks: Sequence[str] | None = None  # how a stream cuts the text; by default into a few dozen pieces
    usage: tuple[int, int] | None = None  # tokens of the prompt and of the completion; counted when it is None
    finish: str | None = None  # why it stopped, in OpenAI's words; follows from the rest when it is None
    choices: Sequence[str] = ()  # more texts, for a request that asks for several
    delay: float = 0.0  # seconds before anything is sent, the status included; whoever answers waits for them
    pause: float = 0.0  # seconds between two events of a stream
    status: int = 200  # anything from 400 on is an error, with `text` as its message
    headers: Mapping[str, str] = field(default_factory=dict)  # of the reply
    extra: Mapping[str, Any] = field(default_factory=dict)  # more fields for the top of the reply


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer on its way to one request; `request` is that request, `finish` is in OpenAI's words."""

    answer: Answer
    request: Mapping[str, Any]
    id: str
    usage: tuple[int, int]
    finish: str

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.request.get("model", ""))


def cut_text(reply: Reply, place: int, text: str) -> Iterator[str]:
    """Cut the text of a choice into the pieces of a stream, so that readers have to join them."""
    if place == 0 and reply.answer.chunks is not None:
        yield from reply.answer.chunks
    else:
        yield from _cut(text, pieces=32, shortest=8)


def cut_arguments(call: ToolCall) -> Iterator[str]:
    """Cut the arguments of a tool call into the pieces of a stream."""
    yield from _cut(call.arguments, pieces=4, shortest=1)


def _cut(text: str, pieces: int, shortest: int) -> Iterator[str]:
    size = max(shortest, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        yield text[start : start + size]


@dataclass(frozen=True, slots=True)
class Demand:
    """The structure that a request demands of its reply: a JSON schema, or the call of a tool with such arguments.

    `schema` is None where any JSON object will do.
    """

    name: str
    schema: Any
    is_tool: bool = False


# --- usage


def split_counts(told: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the counts that can be true, and the others as text.

    A count that cannot be true is never passed on: negative, absurd or not a whole number.
    """
    counts: dict[str, int] = {}
    refused: dict[str, str] = {}
    for name in names:
        value = told.get(name)
        if type(value) is int and 0 <= value <= MAX_TOKEN_COUNT:
            counts[name] = value
        elif value is not None:
            shown = isinstance(value, int | float | str)
            refused[name] = repr(value)[:_MAX_REFUSED_CHARS] if shown else type(value).__name__
    return counts, refused


def ignore_zeros(counts: Mapping[str, int], refused: Mapping[str, str]) -> tuple[dict[str, int], dict[str, str]]:
    """Ignore every 0 of a server that reports a prompt of no tokens: it does not count."""
    zeros = {name: "0" for name, count in counts.items() if count == 0}
    left = {name: count for name, count in counts.items() if count}
    return left, {**refused, **zeros}


def check_usage(usage: dict[str, Any], written: Any) -> dict[str, Any]:
    """Ignore a count of 0 for an answer that says something."""
    if usage.get("completion_tokens") != 0 or not written:
        return usage
    ignored = {**usage.get("ignored_usage", {}), "completion_tokens": "0"}
    return {**{key: value for key, value in usage.items() if key != "completion_tokens"}, "ignored_usage": ignored}


# --- the Protocol


@dataclass(frozen=True)
class Samples:
    """What the conformance checks send in a form, and expect to arrive."""

    model: str  # a model's name
    headers: Mapping[str, str]  # headers that the API defines, by lower-case name
    # fields of a request that change what a model writes, the limit on its length among them
    settings: Mapping[str, Any]
    caller: Mapping[str, Any]  # fields that name the caller
    # the usage of a reply; the first two are the tokens read and written in a stream, 12345 and 678
    usage: Mapping[str, int]
    finish: str  # the word for a reply that reached its limit
    end: str  # the end of a stream, to be shown
    keeps_arguments: bool = True  # whether the arguments of tool calls are a text, whose spelling can be kept


class ApiForm(Protocol):
    """One API. A form has no state: it reads and writes JSON documents.

    What reads recorded traffic does not know which API it sees and asks every form: `read_prompt`, `find_demand`,
    `read_completion`, `find_usage`, `read_usage` and `add_event` return nothing for what another API wrote.
    """

    name: str  # as given to `--api`
    title: str  # as shown to people
    route: str  # where a model is asked, below `/v1`
    count_route: str | None  # where the tokens of a request are counted, below `/v1`; None where that is not offered
    key_variable: str  # the environment variable with the key
    key_header: tuple[str, str]  # the header that shows the key, and its value with `{key}` in it
    headers: Mapping[str, str]  # headers that every request needs
    default_model: str  # asked for when no model is named
    default_max_tokens: int | None  # the limit on a reply when none is given; None where the API needs none
    # the names of that limit. A server that refuses one and names another is sent the other.
    limit_fields: tuple[str, ...]
    prompt_fields: tuple[str, ...]  # the fields of a request that a model reads, the conversation first
    samples: Samples  # for the conformance checks

    def build_request(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        limit_field: str | None = None,
        stream: bool = False,
    ) -> dict[str, Any]:
        """Build the body of a request; `limit_field` is the name of the limit that the server takes."""

    def build_image(self, text: str, kind: str, data: str) -> Message:
        """Build a message with a text and an image in base64."""

    def mark_request(self, body: Mapping[str, Any], mark: str) -> dict[str, Any]:
        """Put a mark into a field of a request that no model reads, unless the user has put something there."""

    def read_prompt(self, document: Mapping[str, Any]) -> Prompt | None:
        """Read the prompt of a request, as messages of a chat."""

    def expand(
        self, document: Mapping[str, Any], find_exchange: Callable[[str], Recorded | None]
    ) -> Mapping[str, Any] | None:
        """Put into a request the conversation that it goes on from and that the server stores; None if unknown.

        `find_exchange` finds an earlier request and its reply by the id of that reply.
        """

    def find_demand(self, document: Mapping[str, Any]) -> Demand | None:
        """Find the structure that a request demands of its reply."""

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        """Read the schema of the arguments of a tool on offer."""

    def read_tool_ids(self, messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Read the ids of the assistant's calls and of the tools' results in the messages of a prompt."""

    def read_reply(self, document: Any) -> ModelReply:
        """Read a reply strictly, for the client that asked; NotAReply when it is none."""

    def read_completion(self, document: Mapping[str, Any]) -> Completion | None:
        """Read a recorded reply, which may be damaged."""

    def list_edits(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List what the API itself did to the conversation, as a reply or an event of a stream tells it.

        Each has a `type`, such as `compaction`, and the counts that the API gives.
        """

    def add_event(self, stream: StreamedReply, event: Mapping[str, Any]) -> bool:
        """Add an event to a streamed reply, and tell whether it is one of this API.

        AttributeError, KeyError or TypeError when it is malformed.
        """

    def join_stream(self, stream: StreamedReply) -> dict[str, Any]:
        """Return the reply as if it had come in one piece."""

    def find_usage(self, document: Mapping[str, Any]) -> Any:
        """Find the usage in a reply or in an event of a stream, where it stands in a field named `usage`."""

    def read_usage(self, usage: Any) -> dict[str, Any]:
        """Read token counts by the names of `ModelReply.usage`.

        What cannot be a number of tokens is left out, and named in `ignored_usage`.
        """

    def write_reply(self, reply: Reply) -> dict[str, Any]:
        """Write the body of a reply that is not streamed."""

    def write_events(self, reply: Reply) -> Iterator[bytes]:
        """Write every event of a streamed reply, each with the empty line that ends it."""

    def write_error(self, kind: str, message: str) -> dict[str, Any]:
        """Write the body of an error."""
