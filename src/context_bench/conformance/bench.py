"""The bench that checks run on: a client before a proxy, an upstream behind it, and notes on what the proxy added."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from context_bench.conformance.check_definition import CheckFailed
from context_bench.conformance.check_upstream import Script, Upstream
from context_bench.conformance.client import Arrived, Client, Listener
from context_bench.conformance.forms import Form, Message, Said
from context_bench.tap.answering import Incoming
from context_bench.wire.events import read_events
from context_bench.wire.replies import Answer
from context_bench.wire.requests import Prompt, read_document, read_prompt

__all__ = ["Bench", "Exchange", "user_message"]


def user_message(text: str) -> Message:
    """Build a message of the user."""
    return {"role": "user", "content": text}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request of ours through the proxy: what was sent, what reached the upstream, and what came back."""

    form: Form
    sent: dict[str, Any]
    calls: list[Incoming]
    arrived: Arrived

    @property
    def call(self) -> Incoming:
        """The upstream's request that is ours: the last one that asks what we asked, else the last of all."""
        if not self.calls:
            raise CheckFailed("nothing reached the upstream", self.sent, self.arrived.text())
        asked = _find_last_text(self.sent)
        alike = [call for call in self.calls if _find_last_text(read_document(call.body)) == asked]
        return (alike or self.calls)[-1]

    @property
    def upstream(self) -> dict[str, Any]:
        """The body of that request."""
        return read_document(self.call.body)

    @property
    def prompt(self) -> Prompt:
        """The prompt in that request."""
        prompt = read_prompt(self.upstream)
        if prompt is None:
            raise CheckFailed("what reached the upstream holds no messages", self.sent, self.upstream)
        return prompt

    def read_reply(self) -> Said:
        """Read what the reply says; CheckFailed unless it is a good one."""
        if self.arrived.status != 200:
            raise CheckFailed(f"the reply has status {self.arrived.status}", "status 200", self.arrived.text())
        if not self.sent.get("stream"):
            return self.form.read_reply(self.arrived.document())
        try:
            events = [event for _, event in read_events([(0.0, self.arrived.body)])]
            return self.form.read_stream(events)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CheckFailed("the reply is not a stream of events", None, self.arrived.text()) from None


@dataclass(slots=True)
class Bench:
    """The client, upstream and notes of a check; `notes` collects what is worth knowing but is not a failure."""

    form: Form
    client: Client
    upstream: Upstream
    requests: int = 0
    extra_calls: Counter[str] = field(default_factory=Counter)
    injected: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)

    async def ask(
        self, answer: Answer | Script, *messages: Message, heard: Listener | None = None, **fields: Any
    ) -> Exchange:
        """Send messages through the proxy, with this answer from the upstream."""
        self.upstream.expect(answer)
        body = self.form.build_request(messages or [user_message("Please answer.")], **fields)
        try:
            return await self.send(body, heard)
        finally:
            self.count_additions(body, 1)

    async def send(self, body: dict[str, Any], heard: Listener | None = None) -> Exchange:
        """Send a body through the proxy, whatever the upstream answers."""
        name, key = self.form.key
        headers = {"content-type": "application/json", name: key, **self.form.headers}
        # Escaped throughout: that is valid everywhere, and the only way to write half a surrogate pair.
        try:
            arrived = await self.client.send("POST", self.form.path, json.dumps(body).encode(), headers, heard)
        except CheckFailed as error:
            raise CheckFailed(error.reason, body, error.arrived) from error
        return Exchange(self.form, body, list(self.upstream.calls), arrived)

    def count_additions(self, sent: Mapping[str, Any], requests: int) -> None:
        """Count what the proxy added on its own to that many requests like the one that was sent."""
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
        """Remember a thing worth knowing, once."""
        self.notes[text] = None

    def list_notes(self) -> list[str]:
        """List what was noticed, in plain words."""
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
