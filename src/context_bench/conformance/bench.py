"""The test bench: checks, the client before the proxy, and the upstream behind it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from context_bench.errors import ConnectionFailed, MissingExtra, describe
from context_bench.http.transport import MAX_BODY
from context_bench.tap.answering import Incoming, Outgoing, build_reply
from context_bench.tap.scripted import Scripted
from context_bench.wire.events import DONE, read_events
from context_bench.wire.form import Answer, ApiForm, NotAReply, StreamedReply, ToolCall
from context_bench.wire.forms import read_prompt
from context_bench.wire.prompts import Message, Prompt, read_document

if TYPE_CHECKING:
    import aiohttp


Script = Callable[[Incoming], Awaitable[Outgoing]]


class Upstream:
    """An answerer for the tap. The check's script answers requests to a model; a plain script answers the others."""

    fingerprint = "conformance/1"

    def __init__(self) -> None:
        self.calls: list[Incoming] = []
        self._script: Answer | Script | None = None
        self._others = Scripted.from_text("text:ok")

    def expect(self, script: Answer | Script) -> None:
        """Give this answer from now on, and forget all earlier calls."""
        self.calls = []
        self._script = script

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def answer(self, request: Incoming) -> Outgoing:
        if request.method != "POST" or request.form is None or self._script is None:
            return await self._others.answer(request)
        self.calls.append(request)
        script = self._script
        return build_reply(script, request) if isinstance(script, Answer) else await script(request)


Listener = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Arrived:
    """A reply as the client received it; headers are stored by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Any:
        """Read the body as JSON; halves of surrogate pairs are kept."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise CheckFailed("the reply is not JSON", None, self.text()) from None

    def text(self) -> str:
        """Return the body as text, to be shown."""
        return self.body.decode("utf-8", "replace")


class Client:
    """Connections to one proxy; an asynchronous context."""

    def __init__(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> None:
        self.url, self.timeout, self.headers = url, timeout, dict(headers or {})

    async def __aenter__(self) -> Client:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtra("conformance", "tap") from error
        self._connection_error = aiohttp.ClientConnectorError
        self._client_error = aiohttp.ClientError
        self._session: aiohttp.ClientSession = aiohttp.ClientSession(
            # A connection of its own for each: one that the proxy has just closed is not the next check's fault.
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            headers={"User-Agent": "context-bench", **self.headers},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        heard: Listener | None = None,
    ) -> Arrived:
        """Send one request and receive the whole reply; `heard` is called with each piece on arrival.

        Raises:
            ConnectionFailed: No server listens there.
            CheckFailed: No complete reply came, or it was too large.
        """
        try:
            async with self._session.request(
                method, self.url + path, data=body, headers=headers, allow_redirects=False
            ) as reply:
                pieces, size = list[bytes](), 0
                async for piece in reply.content.iter_any():
                    pieces.append(piece)
                    if (size := size + len(piece)) > MAX_BODY:
                        raise CheckFailed(f"the reply is larger than {MAX_BODY // 2**20} MB")
                    if heard is not None:
                        heard(piece)
                kept = {name.lower(): value for name, value in reply.headers.items()}
                return Arrived(reply.status, kept, b"".join(pieces))
        except self._connection_error as error:
            raise ConnectionFailed(f"no proxy answers at {self.url}: {error.strerror or 'no connection'}") from None
        except asyncio.TimeoutError:
            raise CheckFailed(f"no complete reply within {self.timeout:g} s") from None
        except self._client_error as error:
            raise CheckFailed(f"the proxy cut the reply off ({describe(error)})") from None


Run = Callable[["Bench"], Awaitable[None]]

KEY = "sk-conformance-0123456789abcdef"


class CheckFailed(Exception):
    """A check found the protocol broken; has one sentence, and the sent and the received value."""

    def __init__(self, reason: str, sent: Any = None, arrived: Any = None) -> None:
        super().__init__(reason)
        self.reason, self.sent, self.arrived = reason, sent, arrived


@dataclass(frozen=True)
class Check:
    """One question about a proxy; `api` is set if the question makes sense only in that API."""

    name: str
    asks: str
    run: Run
    api: str | None = None


@dataclass(frozen=True)
class ExamOutcome:
    """The result of one check; `sent` and `arrived` show what differed if the check failed."""

    name: str
    asks: str
    status: Literal["pass", "fail", "skip"]
    reason: str = ""
    sent: Any = None
    arrived: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values without empty fields."""
        document: dict[str, Any] = {"name": self.name, "asks": self.asks, "status": self.status}
        if self.reason:
            document["reason"] = self.reason
        if self.status == "fail":
            document |= {"sent": self.sent, "arrived": self.arrived}
        return document


def check(name: str, asks: str, api: str | None = None) -> Callable[[Run], Check]:
    """Turn a coroutine function that raises CheckFailed into a check."""
    return lambda run: Check(name, asks, run, api)


def require(holds: bool, reason: str, sent: Any, arrived: Any) -> None:
    """Raise CheckFailed unless the condition holds."""
    if not holds:
        raise CheckFailed(reason, sent, arrived)


def user_message(text: str) -> Message:
    return {"role": "user", "content": text}


@dataclass(slots=True)
class Said:
    """The content of a reply, plain or assembled from a stream; `usage` is in the form of the API."""

    text: str
    calls: list[ToolCall]
    usage: dict[str, int]
    finish: str | None
    ended: bool = True


@dataclass(frozen=True, slots=True)
class BenchExchange:
    """One request through the proxy: the sent body, the request at the upstream, and the reply."""

    form: ApiForm
    sent: dict[str, Any]
    calls: list[Incoming]
    arrived: Arrived

    @property
    def call(self) -> Incoming:
        """Our request as it reached the upstream: the last request with our question, else the last request of all."""
        if not self.calls:
            raise CheckFailed("nothing reached the upstream", self.sent, self.arrived.text())
        asked = _find_last_text(self.sent)
        alike = [call for call in self.calls if _find_last_text(read_document(call.body)) == asked]
        return (alike or self.calls)[-1]

    @property
    def upstream(self) -> dict[str, Any]:
        return read_document(self.call.body)

    @property
    def prompt(self) -> Prompt:
        prompt = read_prompt(self.upstream)
        if prompt is None:
            raise CheckFailed("what reached the upstream contains no messages", self.sent, self.upstream)
        return prompt

    def read_reply(self) -> Said:
        """Read the content of the reply; raise CheckFailed if it is invalid."""
        if self.arrived.status != 200:
            raise CheckFailed(f"the reply has status {self.arrived.status}", "status 200", self.arrived.text())
        if not self.sent.get("stream"):
            return self._read_document(self.arrived.document(), ended=True)
        stream = StreamedReply()
        try:
            for _, event in read_events([(0.0, self.arrived.body)]):
                if event == DONE:
                    stream.ended = True
                else:
                    self.form.add_event(stream, event)
            joined = self.form.join_stream(stream)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckFailed("the reply is not a stream of events", None, self.arrived.text()) from None
        return self._read_document(joined, ended=stream.ended)

    def _read_document(self, document: Any, *, ended: bool) -> Said:
        try:
            reply = self.form.read_reply(document)
            functions = [(call["id"], call["function"]) for call in reply.tool_calls]
            calls = [ToolCall(identity, each["name"], each["arguments"]) for identity, each in functions]
        except NotAReply as error:
            raise CheckFailed(f"the reply is not a {error.what}", None, document) from None
        return Said(reply.text, calls, self.form.find_usage(document) or {}, reply.finish, ended)


@dataclass(slots=True)
class Bench:
    """The client, upstream and notes of a check; `notes` collects remarks that are not failures."""

    form: ApiForm
    client: Client
    upstream: Upstream
    model: str
    requests: int = 0
    extra_calls: Counter[str] = field(default_factory=Counter)
    injected: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)

    async def ask(
        self, answer: Answer | Script, *messages: Message, heard: Listener | None = None, **fields: Any
    ) -> BenchExchange:
        """Send messages through the proxy to the upstream, which replies with `answer`."""
        self.upstream.expect(answer)
        body = self.build_request(*messages or [user_message("Please answer.")], **fields)
        try:
            return await self.send(body, heard)
        finally:
            self.count_additions(body, 1)

    def build_request(
        self, *messages: Message, tools: Sequence[Mapping[str, Any]] = (), stream: bool = False, **fields: Any
    ) -> dict[str, Any]:
        """Build the body of a request from messages and tools in OpenAI's form; other fields are added unchanged."""
        limit = self.form.default_max_tokens
        body = self.form.build_request(self.model, list(messages), tools=tools, max_tokens=limit, stream=stream)
        return {**body, **fields}

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request, with the key."""
        name, value = self.form.key_header
        return {name.lower(): value.format(key=KEY), **self.form.headers, **self.form.samples.headers}

    async def send(self, body: dict[str, Any], heard: Listener | None = None) -> BenchExchange:
        """Send a body through the proxy, whatever the upstream answers."""
        headers, path = {"content-type": "application/json", **self.headers}, f"/v1{self.form.route}"
        # Escaped throughout: that is valid everywhere, and the only way to write half a surrogate pair.
        try:
            arrived = await self.client.send("POST", path, json.dumps(body).encode(), headers, heard)
        except CheckFailed as error:
            raise CheckFailed(error.reason, body, error.arrived) from error
        return BenchExchange(self.form, body, list(self.upstream.calls), arrived)

    def count_additions(self, sent: Mapping[str, Any], requests: int) -> None:
        """Count the calls and tools that the proxy itself added to this number of equal requests."""
        calls = self.upstream.calls
        self.requests += requests
        if len(calls) > requests:
            self.extra_calls["calls"] += len(calls) - requests
            self.extra_calls["requests"] += min(requests, len(calls) - requests)
        own = read_prompt(sent)
        known = set(own.tool_names()) if own else set()
        prompts = filter(None, (read_prompt(call.body) for call in calls))
        self.injected |= {name for prompt in prompts for name in prompt.tool_names()} - known

    def note(self, text: str) -> None:
        """Add a note, unless it was added before."""
        self.notes[text] = None

    def list_notes(self) -> list[str]:
        """List the notes as sentences."""
        notes = []
        if self.extra_calls:
            calls, requests = self.extra_calls["calls"], self.extra_calls["requests"]
            notes.append(f"{calls} extra upstream calls, for {requests} of {self.requests} requests")
        notes += [f"adds the tool {name!r} to requests" for name in sorted(self.injected)]
        return notes + list(self.notes)


def _find_last_text(document: dict[str, Any]) -> str | None:
    prompt = read_prompt(document)
    texts = prompt.texts() if prompt else []
    return texts[-1] if texts else None
