"""API forms: the only code that knows how an API writes requests, replies, streams and usage.

`ApiForm` is the Protocol; each form is one module of this package, and `forms.py` lists them. Systems, the tap, traffic
records and conformance checks use the form. Everywhere else, messages and tools have the form of OpenAI's chat
completions, as in examples, and answers are values of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import orjson

from context_bench.utils.tokens import MAX_TOKEN_COUNT, Tokenizer
from context_bench.wire.prompts import Message, Prompt

MAX_COMPLETION_CHARS = 100_000
"""Limit on the text of a reply that is stored and compared with other answers."""

_MAX_REFUSED_CHARS = 40


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Tool call of the model; `arguments` is the exact JSON text."""

    id: str
    name: str
    arguments: str = "{}"


# --- replies that our own client reads


@dataclass(slots=True)
class ModelReply:
    """A model's answer, as read by our client."""

    text: str  # all text parts joined
    tool_calls: list[Any] = field(default_factory=list)  # in OpenAI's form
    finish: str | None = None  # the API's own stop reason; None if not given
    # token counts by name: those of OpenAI's usage, and `cached_tokens`, `cache_creation_tokens`
    usage: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)  # token times of a stream


class NotAReply(ValueError):
    """JSON that is not a reply of the requested API.

    `usage` is the usage in that JSON, if any; `wrong_form` means that the JSON has neither a reply nor an error of the
    API.
    """

    def __init__(self, what: str, document: Any, usage: dict[str, Any], form: str) -> None:
        super().__init__(f"JSON that is not a {what}: {_show_start(document)}")
        self.what, self.usage = what, usage
        self.wrong_form = not isinstance(document, dict) or not document.keys() & {form, "error"}


def _show_start(document: Any) -> str:
    """Return the start of a server's answer as text, at any depth of nesting."""
    try:
        return orjson.dumps(document)[:200].decode("utf-8", "replace")
    except TypeError:  # nested too deeply for orjson
        return f"a {type(document).__name__} with too many levels"


# --- replies that were recorded


class Recorded(NamedTuple):
    """A request with its whole conversation, and its reply."""

    request: Mapping[str, Any]
    reply: Mapping[str, Any]


@dataclass(slots=True)
class Completion:
    """A recorded answer: a text for each choice, and tool calls as (name, normalized arguments)."""

    id: str = ""
    texts: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Start of the first choice, which clients read, with white space normalized."""
        return " ".join(self.texts[0][:MAX_COMPLETION_CHARS].split()) if self.texts else ""

    def tokens(self, count: Tokenizer) -> int:
        """Count the tokens that the model wrote: all texts, and the arguments of tool calls."""
        written = (*self.texts, *(arguments for _, arguments in self.calls))
        return sum(count(text) for text in written if text)

    def as_dict(self) -> dict[str, Any]:
        """Return the form for the record of an exchange; very long texts are cut."""
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
    """The pieces of a streamed reply so far, by choice and place; an `ApiForm` adds its events.

    `spoke`: text or a call of the first choice has arrived since a reader last reset this field; reasoning does not
    count. `ended`: the final event has arrived. `error`: the server's error message. `whole`: the complete reply, if
    the server repeats it at the end of the stream.
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
        """Text of the first choice."""
        return "".join(self.texts.get(0, ()))

    def list_calls(self) -> list[ToolCall]:
        """List the calls of the first choice in order of arrival, because the numbers that servers give vary or are
        missing.
        """
        return [ToolCall(call.id, call.name, call.arguments) for (choice, _), call in self.calls.items() if choice == 0]

    def add_id(self, value: Any) -> None:
        self.id = self.id or _read_piece(value)

    def add_text(self, text: Any, choice: int = 0) -> None:
        """Add a piece of text; raise TypeError for other types."""
        self.texts.setdefault(choice, []).append(_read_piece(text))
        self.spoke = self.spoke or bool(text and choice == 0)

    def add_call(self, place: Any, identity: Any, name: Any, arguments: Any, choice: int = 0) -> None:
        """Add a piece of a tool call: its id and name arrive once, its arguments in pieces."""
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
    """An answer, independent of any API."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    chunks: Sequence[str] | None = None  # pieces of the streamed text; by default a few dozen
    usage: tuple[int, int] | None = None  # tokens of prompt and completion; None counts them
    finish: str | None = None  # stop reason in OpenAI's words; None derives it from the calls
    choices: Sequence[str] = ()  # further choices, for requests with n > 1
    delay: float = 0.0  # seconds before the status is sent; the answering server waits
    pause: float = 0.0  # seconds between two events of a stream
    status: int = 200  # from 400 on, an error with `text` as its message
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)  # further top-level fields of the reply


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to one request, before a form writes it; `finish` is in OpenAI's words."""

    answer: Answer
    request: Mapping[str, Any]
    id: str
    usage: tuple[int, int]
    finish: str

    @property
    def model(self) -> str:
        """Requested model."""
        return str(self.request.get("model", ""))


def cut_text(reply: Reply, place: int, text: str) -> Iterator[str]:
    """Cut the text of a choice into stream pieces, so that readers have to join them."""
    if place == 0 and reply.answer.chunks is not None:
        yield from reply.answer.chunks
    else:
        yield from _cut(text, pieces=32, shortest=8)


def cut_arguments(call: ToolCall) -> Iterator[str]:
    """Cut the arguments of a tool call into stream pieces."""
    yield from _cut(call.arguments, pieces=4, shortest=1)


def _cut(text: str, pieces: int, shortest: int) -> Iterator[str]:
    size = max(shortest, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        yield text[start : start + size]


@dataclass(frozen=True, slots=True)
class Demand:
    """The structure that a request demands of its reply: JSON, or the arguments of a tool call, that fit a schema.

    `schema` is None if any JSON object is valid.
    """

    name: str
    schema: Any
    is_tool: bool = False


# --- usage


def split_counts(told: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Split counts into plausible ones, and the others as text.

    Negative, absurdly large and fractional counts are never used.
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
    """Ignore all zeros of a server that reports an empty prompt: it does not count tokens."""
    zeros = {name: "0" for name, count in counts.items() if count == 0}
    left = {name: count for name, count in counts.items() if count}
    return left, {**refused, **zeros}


def check_usage(usage: dict[str, Any], written: Any) -> dict[str, Any]:
    """Ignore a completion count of 0 if the answer is not empty."""
    if usage.get("completion_tokens") != 0 or not written:
        return usage
    ignored = {**usage.get("ignored_usage", {}), "completion_tokens": "0"}
    return {**{key: value for key, value in usage.items() if key != "completion_tokens"}, "ignored_usage": ignored}


# --- the Protocol


@dataclass(frozen=True)
class Samples:
    """Values that the conformance checks send in a form, and expect to arrive."""

    model: str
    headers: Mapping[str, str]  # headers of this API, by lower-case name
    # request fields that change the model's output, including its limit
    settings: Mapping[str, Any]
    caller: Mapping[str, Any]  # fields that identify the caller
    # usage of a reply; the first two are the input and output tokens of a stream, 12345 and 678
    usage: Mapping[str, int]
    finish: str  # stop reason of a reply that reached its limit
    end: str  # end of a stream, as shown in results
    keeps_arguments: bool = True  # whether tool arguments are JSON text, whose exact bytes can be kept


class ApiForm(Protocol):
    """One API. A form has no state: it reads and writes JSON documents.

    Readers of recorded traffic do not know the API and try every form. So `read_prompt`, `find_demand`,
    `read_completion`, `find_usage`, `read_usage` and `add_event` return an empty value for documents of other APIs.
    """

    name: str  # value of `--api`
    title: str  # name in texts
    route: str  # path for model requests, below `/v1`
    count_route: str | None  # path that counts tokens, below `/v1`; None if the API has none
    key_variable: str  # environment variable with the key
    key_header: tuple[str, str]  # header with the key, and its value with `{key}`
    headers: Mapping[str, str]  # required in every request
    default_model: str  # model if none is given
    default_max_tokens: int | None  # reply limit if none is given; None if the API needs none
    # names of the reply limit. If a server rejects one and names another, the other is sent.
    limit_fields: tuple[str, ...]
    prompt_fields: tuple[str, ...]  # request fields that a model reads, the conversation first
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
        """Build the body of a request; `limit_field` is the server's name for the reply limit."""

    def build_image(self, text: str, kind: str, data: str) -> Message:
        """Build a message with a text and an image in base64."""

    def mark_request(self, body: Mapping[str, Any], mark: str) -> dict[str, Any]:
        """Put a mark into a request field that no model reads, unless the user has set that field."""

    def read_prompt(self, document: Mapping[str, Any]) -> Prompt | None:
        """Read the prompt of a request, as chat messages."""

    def expand(
        self, document: Mapping[str, Any], find_exchange: Callable[[str], Recorded | None]
    ) -> Mapping[str, Any] | None:
        """Add the server-stored conversation that a request continues; None if it is unknown.

        `find_exchange` finds an earlier request and its reply by the id of the reply.
        """

    def find_demand(self, document: Mapping[str, Any]) -> Demand | None:
        """Return the structure that a request demands of its reply, if any."""

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        """Read the argument schema of a tool definition."""

    def read_tool_ids(self, messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Read the ids of all tool calls and of all tool results in a prompt's messages."""

    def read_reply(self, document: Any) -> ModelReply:
        """Read a reply strictly, for our client; raise NotAReply for any other JSON."""

    def read_completion(self, document: Mapping[str, Any]) -> Completion | None:
        """Read a recorded reply, even a damaged one."""

    def list_edits(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the API's own edits of the conversation, as reported in a reply or a stream event.

        Each has a `type`, such as `compaction`, and the API's counts.
        """

    def add_event(self, stream: StreamedReply, event: Mapping[str, Any]) -> bool:
        """Add an event to a streamed reply, and return whether it belongs to this API.

        Raise AttributeError, KeyError or TypeError if it is malformed.
        """

    def join_stream(self, stream: StreamedReply) -> dict[str, Any]:
        """Return the reply as if it had not been streamed."""

    def find_usage(self, document: Mapping[str, Any]) -> Any:
        """Return the `usage` field of a reply or a stream event."""

    def read_usage(self, usage: Any) -> dict[str, Any]:
        """Read token counts by the names of `ModelReply.usage`.

        Implausible values are left out, and listed in `ignored_usage`.
        """

    def write_reply(self, reply: Reply) -> dict[str, Any]:
        """Write the body of a reply that is not streamed."""

    def write_events(self, reply: Reply) -> Iterator[bytes]:
        """Write every event of a streamed reply, each with its final empty line."""

    def write_error(self, kind: str, message: str) -> dict[str, Any]:
        """Write the body of an error."""
