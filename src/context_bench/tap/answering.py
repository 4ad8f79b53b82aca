"""The interface of the tap's server to its answerer: requests, replies and the `Answerer` protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from context_bench.traits import find_label, find_secrets, is_script
from context_bench.utils.tokens import Tokenizer, get_tokenizer
from context_bench.wire.form import Answer, ApiForm
from context_bench.wire.forms import find_form, form_of_route, holds_prompt, make_error, make_reply, read_prompt
from context_bench.wire.prompts import Prompt, dump_body, read_document

LONG_BODY = 256 * 1024
"""Requests of at least this size are parsed and counted in a thread, so that other requests are not delayed."""


@dataclass(slots=True)
class Incoming:
    """A request as it reached the tap. `headers` have lower-case names and contain secrets: never store them.

    `conversation` is the request with the stored conversation that it continues, if the tap knows that conversation.
    Bodies are large, so they are parsed once and their tokens are counted once.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    conversation: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    _document: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    _tokens: tuple[Tokenizer, int] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def form(self) -> ApiForm | None:
        """The API of the request; None if it does not ask a model."""
        return find_form(self.path)

    def document(self) -> dict[str, Any]:
        """Return the body as JSON, not to be modified; an empty object if it is not JSON."""
        if self._document is None:
            self._document = read_document(self.body)
        return self._document

    def prompt(self) -> Prompt | None:
        """Return the prompt for the model; None if the body has none."""
        return read_prompt(self.conversation or self.document()) if holds_prompt(self.path) else None

    def count_tokens(self) -> int:
        """Count the tokens of the prompt by the tokenizer of this process; 0 without a prompt."""
        count = get_tokenizer()
        if self._tokens is None or self._tokens[0] is not count:
            prompt = self.prompt()
            self._tokens = count, prompt.tokens(count) if prompt else 0
        return self._tokens[1]


@dataclass(slots=True)
class Outgoing:
    """A reply: a whole body, or a stream of chunks that are passed on as they arrive."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""


def build_reply(answer: Answer, request: Incoming) -> Outgoing:
    """Build the reply to a request, streamed if the request asks for that."""
    document, form = request.document(), form_of_route(request.path)
    if answer.status >= 400:
        return build_error(answer.status, answer.text, form, answer.headers)
    reply = make_reply(answer, document, body=request.body, count_prompt=request.count_tokens)
    if document.get("stream") is not True:
        return build_json(form.write_reply(reply), answer.status, answer.headers)
    return build_stream(form.write_events(reply), answer)


def build_stream(events: Iterable[bytes], answer: Answer) -> Outgoing:
    """Build a streamed reply of these events, with the delays of the answer."""
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", **answer.headers}
    return Outgoing(answer.status, headers, _pace(events, answer.pause))


def build_json(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Outgoing:
    """Build a reply with a JSON body."""
    return Outgoing(status, {"content-type": "application/json", **(headers or {})}, dump_body(document))


def build_error(status: int, message: str, form: ApiForm | None, headers: Mapping[str, str] | None = None) -> Outgoing:
    """Build an error in the form of its API."""
    return build_json(make_error(status, message, form), status, headers)


async def _pace(pieces: Iterable[bytes], pause: float) -> AsyncIterator[bytes]:
    """Yield the pieces with a wait between them."""
    for number, piece in enumerate(pieces):
        if number and pause:
            await asyncio.sleep(pause)
        yield piece


class Answerer(Protocol):
    """An upstream that answers for the tap: a remote model, a local model, or a script.

    `fingerprint` identifies the upstream's answers, without secrets; None if that is not possible.

    Optional members:
        secrets: Values that must never be shown or stored, such as a key in its URL.
        label: A note on every result with its answers.
        is_script: True if no model answers, so that its answers have no quality to measure.
    """

    @property
    def fingerprint(self) -> str | None: ...

    async def open(self) -> None: ...

    async def answer(self, request: Incoming) -> Outgoing: ...

    async def close(self) -> None: ...


def describe_answerer(answerer: Answerer) -> str:
    """Describe the answerer for reports and logs."""
    return answerer.fingerprint or "a script whose code cannot be followed"


class Shared:
    """One answerer behind several taps: the first tap opens it, and the last tap closes it.

    `max_rpm` limits the requests per minute; they are evenly spaced.
    """

    def __init__(self, answerer: Answerer, max_rpm: float | None = None) -> None:
        self._answerer, self._max_rpm = answerer, max_rpm
        self._users, self._next = 0, 0.0
        self._turn = asyncio.Lock()
        self.answer = answerer.answer if max_rpm is None else self._answer_in_turn

    async def wait_for_turn(self) -> None:
        """Wait until a request fits `max_rpm`."""
        if self._max_rpm is not None:
            now = asyncio.get_running_loop().time()
            slot = max(now, self._next)
            self._next = slot + 60 / self._max_rpm
            await asyncio.sleep(slot - now)

    async def _answer_in_turn(self, request: Incoming) -> Outgoing:
        await self.wait_for_turn()
        return await self._answerer.answer(request)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the answerer; None if unknown."""
        return self._answerer.fingerprint

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be shown or stored, such as a key in its URL."""
        return find_secrets(self._answerer)

    @property
    def label(self) -> str | None:
        """The note on every result with its answers."""
        return find_label(self._answerer)

    @property
    def is_script(self) -> bool:
        return is_script(self._answerer)

    async def open(self) -> None:
        """Count one more tap; the first opens the answerer."""
        async with self._turn:
            if self._users == 0:
                await self._answerer.open()
            self._users += 1

    async def close(self) -> None:
        """Count one tap less; the last closes the answerer."""
        async with self._turn:
            self._users -= 1
            if self._users == 0:
                await self._answerer.close()
