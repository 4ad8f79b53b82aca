"""Toy proxies whose calls are not one for one: side calls, parts, losses, late calls, caches, and other spellings.

with toy_proxy(CallsAside, upstream.url) as url:
    ...
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from toy_proxies import Toy, read_chat

__all__ = [
    "SIDE_QUESTION",
    "AnswersInOtherWords",
    "Caches",
    "CallsAside",
    "CallsLate",
    "DropsNull",
    "Loses",
    "Reorders",
    "Splits",
]

SIDE_QUESTION = "Is this a safe thing to say? Answer with one word."


class Asks(Toy):
    """Reads whole replies and may ask upstream on its own."""

    async def read(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> tuple[int, dict[str, str], bytes]:
        """What upstream answers: status, headers, body."""
        async with self.ask(request, headers, json.dumps(document).encode()) as reply:
            kind = {"Content-Type": reply.headers.get("Content-Type", "application/json")}
            return reply.status, kind, await reply.read()

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = read_chat(request, body)
        if document is None:
            return await super().exchange(request, headers, body)
        return await self.answer(request, headers, document)

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        """Answer a chat request."""
        status, kind, content = await self.read(request, headers, document)
        return web.Response(status=status, headers=kind, body=content)

    @staticmethod
    def aside(document: dict[str, Any]) -> dict[str, Any]:
        """A question of its own, with nothing of the client's in it."""
        fields = {key: value for key, value in document.items() if key not in ("stream", "stream_options", "system")}
        return {**fields, "messages": [{"role": "user", "content": SIDE_QUESTION}]}


class CallsAside(Asks):
    """Passes the request on untouched, then asks upstream whether the answer is safe; gives back the first reply."""

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        status, kind, content = await self.read(request, headers, document)
        await self.read(request, headers, self.aside(document))
        return web.Response(status=status, headers=kind, body=content)


class AnswersInOtherWords(Asks):
    """Asks with half of the context, then aside, and answers in words and with an id of its own."""

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        first, *rest = document["messages"]
        half = {**first, "content": first["content"][: len(first["content"]) // 2]}
        _, kind, content = await self.read(request, headers, {**document, "messages": [half, *rest]})
        await self.read(request, headers, self.aside(document))
        return web.Response(headers=kind, body=_with_text(json.loads(content), "I would rather not say."))


class Splits(Asks):
    """Asks about each half of the first message and joins the answers."""

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        first, *rest = document["messages"]
        lines = first["content"].splitlines()
        texts, kind, reply = [], {}, {}
        for part in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
            messages = [{**first, "content": "\n".join(part)}, *rest]
            _, kind, content = await self.read(request, headers, {**document, "messages": messages})
            reply = json.loads(content)
            texts.append(reply["choices"][0]["message"]["content"])
        return web.Response(headers=kind, body=_with_text(reply, "\n".join(texts)))


class Loses(Asks):
    """Has every other request answered by upstream, and then says that it was not."""

    asked = 0

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        self.asked += 1
        lost = self.asked % 2 == 1
        status, kind, content = await self.read(request, headers, document)
        if lost:
            return web.Response(status=502, text="the answer was lost")
        return web.Response(status=status, headers=kind, body=content)


class CallsLate(Asks):
    """Answers first, and calls upstream once more, with the client's mark, when the answer has long been read."""

    pause = 0.25

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        response = await super().answer(request, headers, document)
        self.later = asyncio.ensure_future(self.remember(request, headers, document))
        return response

    async def remember(self, request: web.Request, headers: dict[str, str], document: dict[str, Any]) -> None:
        await asyncio.sleep(self.pause)
        await self.read(request, headers, self.aside(document))


class Reorders(Toy):
    """Writes the keys of every object in the opposite order, as a gateway with its own types may."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        changed: dict[str, Any] = _reordered(document)
        return changed


class DropsNull(Toy):
    """Leaves out what is null: the content beside tool calls."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        messages = [
            {key: value for key, value in each.items() if value is not None} if isinstance(each, dict) else each
            for each in document["messages"]
        ]
        return {**document, "messages": messages}


class Caches(Asks):
    """Answers what it has been asked before without a call; marks are no part of the question."""

    header = "x-cache"

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.known: dict[str, tuple[int, dict[str, str], bytes]] = {}

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        key = json.dumps(document["messages"])
        hit = key in self.known
        if not hit:
            self.known[key] = await self.read(request, headers, document)
        status, kind, content = self.known[key]
        told = {self.header: "HIT" if hit else "MISS"} if self.header else {}
        return web.Response(status=status, headers={**kind, **told}, body=content)


def _with_text(reply: dict[str, Any], text: str) -> bytes:
    """A chat completion with another text and another id."""
    choice = reply["choices"][0]
    message = {**choice["message"], "content": text}
    return json.dumps({**reply, "id": "own-1", "choices": [{**choice, "message": message}]}).encode()


def _reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reordered(value[key]) for key in reversed(value)}
    return [_reordered(item) for item in value] if isinstance(value, list) else value
