"""Arms of a replay: a proxy with a tap behind it, or a system that runs in this process.

The tap answers with the recorded reply, so that the conversation continues as recorded. When a proxy calls a model for
its own purposes, it never gets the recorded reply, because that would reveal the evidence: a local model answers
instead. Without a local model, such a session is not replayable.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from context_bench.conformance.bench import CheckFailed, Client
from context_bench.errors import describe
from context_bench.processes.started_proxy import StartedProxy
from context_bench.replay.chat_edit import edit_as_chat
from context_bench.replay.copied_text import read_sent
from context_bench.tap.answering import Answerer, Incoming, Outgoing, build_error, build_json, build_reply
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from context_bench.traffic.calls import read_claimed_tokens
from context_bench.traffic.parts import list_messages, list_parts, list_reply_messages
from context_bench.traits import find_edit, find_fingerprint, reads_any_api
from context_bench.wire.form import Answer, ToolCall
from context_bench.wire.forms import get_form
from context_bench.wire.prompts import Prompt, dump_body

MAX_OPENING_CHARS = 200
SIDE_CALL_REFUSED = "this replay has no model to answer a proxy's own calls"
NOT_RECORDED = "ok"  # the answer if no reply was recorded
MAX_REPLY_TOKENS = 32_000  # the limit that Claude Code sets
SHARED_WORDS = 6  # this many words in a row make a call one about the conversation


@dataclass(slots=True)
class Sent:
    """Outcome of one recorded request."""

    body: Mapping[str, Any] | None  # the body that reached the model instead; None if none did
    side_calls: int = 0  # calls that the proxy made by itself
    refused: int = 0  # of these, calls about the conversation that no model could answer
    repeated: list[Mapping[str, Any]] = field(default_factory=list)  # bodies of further calls with the conversation
    error: str = ""  # why no reply came back
    timed_out: bool = False
    changed_reply: bool = False  # whether the recorded reply came back changed
    claimed: float | None = None  # saved tokens, as the proxy reports them


class Arm(Protocol):
    """Sender of recorded requests, one at a time and in their order."""

    name: str

    @property
    def fingerprint(self) -> str | None: ...

    async def prepare(self) -> None: ...

    async def finish(self) -> None: ...

    async def send(self, api: str, body: dict[str, Any], thread: str, reply: Mapping[str, Any] | None, /) -> Sent: ...


# --- a proxy


class RecordedUpstream:
    """Upstream that answers the current request with its recorded reply, and also answers the proxy's own calls.

    `helper` is the model for calls about the conversation. Any other call, such as a gateway's health check of its
    upstream, gets a fixed answer.
    """

    def __init__(self, helper: Answerer | None = None) -> None:
        self._helper = helper
        self._others = Scripted.from_text("text:ok")
        self._api = ""
        self._body: Mapping[str, Any] = {}
        self._reply: Mapping[str, Any] = {}
        self.sent = Sent(None)

    def expect(self, api: str, body: Mapping[str, Any], reply: Mapping[str, Any] | None) -> None:
        """Answer all calls with this reply from now on."""
        self._api, self._body, self._reply, self.sent = api, body, reply or {}, Sent(None)

    @property
    def fingerprint(self) -> str | None:
        """Identify the helper: its answers influence how the proxy changes a request."""
        return "replay/1" if self._helper is None else self._helper.fingerprint

    async def open(self) -> None:
        if self._helper is not None:
            await self._helper.open()

    async def close(self) -> None:
        if self._helper is not None:
            await self._helper.close()

    async def answer(self, request: Incoming) -> Outgoing:
        if request.method != "POST" or request.form is None or request.path.endswith("/count_tokens"):
            return await self._others.answer(request)
        document = request.document()
        if not all(isinstance(each, Mapping | str) for each in list_messages(document)):
            return build_error(400, "a message is not an object", request.form)
        if not carries_conversation(self._body, document):
            self.sent.side_calls += 1
            if not shares_text(self._body, document):
                return await self._others.answer(request)
            if self._helper is not None:
                return await self._helper.answer(request)
            self.sent.refused += 1
            return build_error(503, SIDE_CALL_REFUSED, request.form)
        if self.sent.body is not None:
            self.sent.repeated.append(self.sent.body)
        self.sent.body = document
        return self._repeat_reply(request)

    def _repeat_reply(self, request: Incoming) -> Outgoing:
        """Answer with the recorded reply: its exact bytes if API and stream setting match, or else its content."""
        recorded = get_form(self._api)
        if self._reply and request.form is recorded and request.document().get("stream") is not True:
            return build_json(self._reply)
        parts = [part for message in list_reply_messages(self._reply) for part in list_parts(message, {})]
        said = "".join(part.text for part in parts if part.kind == "assistant")
        calls = [ToolCall(part.id, part.tool, part.text or "{}") for part in parts if part.kind == "call"]
        return build_reply(Answer(said or ("" if calls else NOT_RECORDED), calls), request)


def shares_text(recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether a call contains text of the recorded request, in any layout."""
    known, asked = (re.findall(r"\w+", read_sent(body).replace("\\n", " ")) for body in (recorded, sent))
    runs = {tuple(known[place : place + SHARED_WORDS]) for place in range(len(known) - SHARED_WORDS + 1)}
    return any(tuple(asked[place : place + SHARED_WORDS]) in runs for place in range(len(asked) - SHARED_WORDS + 1))


def carries_conversation(recorded: Mapping[str, Any], sent: Mapping[str, Any]) -> bool:
    """Whether a call continues the recorded conversation, rather than being a proxy's own question.

    A call continues it if the call still contains a turn of the model or the id of a tool call, and ends with the
    recorded last message. A call that ends with another message asks about the conversation, for example for a summary.
    Before the model's first turn, a call must contain the start of the system text or of a user's text.
    """
    own, given = _read_marks(recorded), _read_marks(sent)
    if not own.ids and not own.said:
        return bool(recorded) and own.shares_any(given)  # nothing is recorded before the first request
    last, end = ({"messages": list_messages(body)[-1:]} for body in (recorded, sent))
    return own.shares_turn(given) and (_read_marks(last).shares_any(_read_marks(end)) or shares_text(last, end))


@dataclass(slots=True)
class _Marks:
    """Texts that identify a conversation: ids of tool calls, texts of the model, starts of system and user texts."""

    ids: set[str] = field(default_factory=set)
    said: set[str] = field(default_factory=set)
    openings: set[str] = field(default_factory=set)

    def shares_turn(self, other: _Marks) -> bool:
        return bool(self.ids & other.ids or self.said & other.said)

    def shares_any(self, other: _Marks) -> bool:
        return self.shares_turn(other) or bool(self.openings & other.openings) or self == _Marks()


def _read_marks(body: Mapping[str, Any]) -> _Marks:
    marks = _Marks()
    for part in (part for message in list_messages(body) for part in list_parts(message, {})):
        if part.id:
            marks.ids.add(part.id)
        text = part.text.strip()
        if text and part.kind == "assistant":
            marks.said.add(text)
        elif text and part.kind in ("user", "system"):
            marks.openings.add(text[:MAX_OPENING_CHARS])
    texts = Prompt(body.get("system", body.get("instructions"))).texts()
    marks.openings.update(text.strip()[:MAX_OPENING_CHARS] for text in texts if text.strip())
    return marks


class ProxyArm:
    """A proxy whose upstream is our tap.

    Args:
        name: Name in the report.
        url: Address of the proxy, without `/v1`.
        start: Starts the proxy, given the address of the tap; None if it is running already.
        known_as: Identifies the proxy in the store; None stores no answers.
        headers: Headers of every request.
        helper: Model that answers the proxy's own calls; None refuses such calls.
        host: Host of the tap.
        port: Port of the tap; 0 chooses a free one.
        timeout: Seconds for one request.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        start: Callable[[str], StartedProxy] | None = None,
        known_as: str | None = None,
        headers: Mapping[str, str] | None = None,
        helper: Answerer | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        timeout: float = 60.0,
    ) -> None:
        self.name, self._url, self._start, self._known_as = name, url, start, known_as
        self._upstream = RecordedUpstream(helper)
        self.tap = Tap(self._upstream, host=host, port=port)
        self._client = Client(url, timeout)
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._stack = AsyncExitStack()
        self._turn = asyncio.Lock()

    @property
    def fingerprint(self) -> str | None:
        helped = self._upstream.fingerprint
        return None if None in (self._known_as, helped) else f"replay proxy/2 {self._known_as}, helped by {helped}"

    async def prepare(self) -> None:
        """Open the tap, and start the proxy unless it is running already."""
        await self.tap.start()
        self._headers = {name: value.replace("{tap}", self.tap.url) for name, value in self._headers.items()}
        self._stack.push_async_callback(self.tap.stop)
        if self._start is not None:
            proxy = self._start(self.tap.url)
            self._stack.push_async_callback(proxy.stop)
            await proxy.start()
            self._client.url = proxy.url
        await self._stack.enter_async_context(self._client)

    async def finish(self) -> None:
        await self._stack.aclose()

    async def send(self, api: str, body: dict[str, Any], thread: str, reply: Mapping[str, Any] | None) -> Sent:
        """Send one request through the proxy; raise ConnectionFailed if no server listens at its address."""
        form = get_form(api)
        path = f"/v1{form.route}"
        async with self._turn:
            self._upstream.expect(api, body, reply)
            whole = {key: value for key, value in body.items() if key != "stream"}
            if form.default_max_tokens is not None:  # the API requires a limit, and transcripts do not store it
                whole.setdefault(form.limit_fields[0], MAX_REPLY_TOKENS)
            headers = {"content-type": "application/json", **form.headers, **_identify(thread), **self._headers}
            try:
                arrived = await self._client.send("POST", path, dump_body(form.mark_request(whole, thread)), headers)
            except CheckFailed as failed:
                sent = self._upstream.sent
                sent.error, sent.timed_out = failed.reason, isinstance(failed.__context__, asyncio.TimeoutError)
                return sent
            sent = self._upstream.sent
            sent.claimed = read_claimed_tokens(arrived.headers)
            if arrived.status >= 300:
                sent.error = f"HTTP {arrived.status}: {arrived.text()[:200]}"
            elif sent.body is not None and reply:
                sent.changed_reply = not _is_same_reply(form.read_completion, arrived, reply)
            return sent


def _identify(thread: str) -> dict[str, str]:
    """Return the headers in which agents send their session id to gateways."""
    return {"x-claude-code-session-id": thread, "session_id": thread, "authorization": "Bearer replay"}


def _is_same_reply(read: Callable[[Mapping[str, Any]], Any], arrived: Any, reply: Mapping[str, Any]) -> bool:
    try:
        got, recorded = read(arrived.document()), read(reply)
    except (CheckFailed, AttributeError, TypeError, KeyError):
        return False
    if got is None or recorded is None:
        return got is recorded
    return bool(got.text == recorded.text and got.calls == recorded.calls)


# --- a system of this process


class SystemArm:
    """A system in this process: one that edits messages, or a compressor, which gets each tool result as context.

    Equal texts are compressed only once, as by an agent that compresses each result when it arrives.
    """

    def __init__(self, system: Any) -> None:
        self._system = system
        self.name = str(system.name)
        self._made: dict[str, str] = {}

    @property
    def fingerprint(self) -> str | None:
        own = find_fingerprint(self._system)
        return f"replay system/2 {own}" if own else None

    async def prepare(self) -> None:
        self._made.clear()

    async def finish(self) -> None:
        self._made.clear()

    async def send(self, api: str, body: dict[str, Any], _thread: str, _reply: Mapping[str, Any] | None) -> Sent:
        """Return the request as edited by the system; an exception becomes the request's error."""
        try:
            return Sent(await asyncio.to_thread(self._edit, api, body))
        except Exception as error:  # noqa: BLE001 - systems are foreign code; the request counts as failed
            return Sent(None, error=describe(error))

    def _edit(self, api: str, body: dict[str, Any]) -> dict[str, Any]:
        where = "input" if "input" in body else "messages"
        edit = find_edit(self._system)
        if edit is not None and api != "openai" and not reads_any_api(self._system):
            return edit_as_chat(api, body, edit)
        if edit is not None:
            messages, tools = edit(body[where], body.get("tools") or [])
            return {**body, where: messages, **({"tools": tools} if tools or "tools" in body else {})}
        return {**body, where: [self._compress(message) for message in body[where]]}

    def _compress(self, message: Any) -> Any:
        if not isinstance(message, Mapping):
            return message
        if message.get("role") == "tool" and isinstance(message.get("content"), str):
            return {**message, "content": self._make(message["content"])}
        if isinstance(message.get("output"), str):
            return {**message, "output": self._make(message["output"])}
        content = message.get("content")
        if not isinstance(content, list):
            return message
        return {**message, "content": [self._compress_block(each) for each in content]}

    def _compress_block(self, block: Any) -> Any:
        if not isinstance(block, Mapping) or block.get("type") != "tool_result":
            return block
        content = block.get("content")
        if isinstance(content, str):
            return {**block, "content": self._make(content)}
        texts = [
            {**each, "text": self._make(each["text"])} if isinstance(each, Mapping) and "text" in each else each
            for each in content or ()
        ]
        return {**block, "content": texts}

    def _make(self, text: str) -> str:
        if text not in self._made:
            made = self._system.process({"id": "result", "context": text, "question": ""})
            self._made[text] = str(made.get("context", made.get("response", text)))
        return self._made[text]
