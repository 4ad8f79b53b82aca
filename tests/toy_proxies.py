"""Small real HTTP proxies for tests, each with one known manner, from flawless to plainly wrong.

with toy_proxy("truncates", upstream.url) as url:
    ...                       # what is sent to `url` reaches the upstream with its longest text cut in half

Also a program: python tests/toy_proxies.py KIND --port P --upstream URL
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector, web
from yarl import URL

__all__ = ["KINDS", "Toy", "read_chat", "toy_proxy"]

_HOP = {"connection", "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "proxy-connection", "host"}
_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


class Toy:
    """`passes`: everything goes on byte for byte, streams chunk by chunk. The others change one thing."""

    session: ClientSession

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream.rstrip("/")

    async def opened(self, _: web.Application) -> AsyncIterator[None]:
        connector = TCPConnector(limit=0)
        async with ClientSession(connector=connector, auto_decompress=False, timeout=ClientTimeout(None)) as session:
            self.session = session
            yield

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = self.headers({name: value for name, value in request.headers.items() if name.lower() not in _HOP})
        document = read_chat(request, body)
        if document is not None:
            changed = self.changed(document, request.path)
            if changed is not None:
                body = json.dumps(changed).encode()
        headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        return await self.exchange(request, headers, body)

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        async with self.ask(request, headers, body) as reply:
            return await self.relay(request, reply)

    def ask(self, request: web.Request, headers: dict[str, str], body: bytes) -> Any:
        url = URL(self.upstream + request.raw_path, encoded=True)
        return self.session.request(
            request.method,
            url,
            data=body or None,
            headers=headers,
            skip_auto_headers=_AUTOMATIC,
            allow_redirects=False,
        )

    async def relay(self, request: web.Request, reply: ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=reply.status, headers=self.reply_headers(_kept(reply)))
        await response.prepare(request)
        async for chunk in reply.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        """The request's headers that go on."""
        return headers

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any] | None:
        """The body that goes on instead of the client's; None leaves it as it is, byte for byte."""
        return None

    def reply_headers(self, headers: dict[str, str]) -> dict[str, str]:
        return headers


class Truncates(Toy):
    """Keeps the first half of the longest message text."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        places = list(_texts(document))
        if places:
            where, key = max(places, key=lambda place: len(place[0][place[1]]))
            where[key] = where[key][: len(where[key]) // 2]
        return document


class Twice(Toy):
    """Asks upstream for a summary of the conversation before it passes the real request on."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = read_chat(request, body)
        if document is not None:
            front = {"role": "user", "content": "Summarise this"}
            summary = {**document, "messages": [front, *document["messages"]], "stream": False}
            summary.pop("stream_options", None)
            async with self.ask(request, headers, json.dumps(summary).encode()) as reply:
                await reply.read()
        return await super().exchange(request, headers, body)


class Strips(Toy):
    """Drops all headers but the content type and the key, and the fields `user` and `metadata`."""

    def headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in headers.items() if name.lower() in ("content-type", "authorization")}

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        return {name: value for name, value in document.items() if name not in ("user", "metadata")}


class Buffers(Toy):
    """Reads the whole reply before it sends anything on, then sends it in one piece."""

    async def relay(self, request: web.Request, reply: ClientResponse) -> web.StreamResponse:
        return web.Response(status=reply.status, headers=_kept(reply), body=await reply.read())


class Waits(Toy):
    """Takes its time for each request."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.15)
        return await super().handle(request)


class Corrupts(Toy):
    """Breaks the arguments of the tools that a reply calls, streamed or not."""

    async def relay(self, request: web.Request, reply: ClientResponse) -> web.StreamResponse:
        if "event-stream" not in reply.headers.get("Content-Type", ""):
            body = await reply.read()
            with contextlib.suppress(ValueError):
                body = json.dumps(_corrupted(json.loads(body))).encode()
            return web.Response(status=reply.status, headers=_kept(reply, but="content-length"), body=body)
        response = web.StreamResponse(status=reply.status, headers=_kept(reply))
        await response.prepare(request)
        async for line in reply.content:
            with contextlib.suppress(ValueError):
                if line.startswith(b"data: "):
                    line = b"data: " + json.dumps(_corrupted(json.loads(line[6:]))).encode() + b"\n"
            await response.write(line)
        await response.write_eof()
        return response


class TellsLies(Toy):
    """Passes everything on and claims to have saved tokens."""

    def reply_headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {**headers, "x-tokens-saved": "5000"}


class Injects(Toy):
    """Adds a tool of its own to each request."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        tools = document.get("tools") or []
        schema = {"type": "object", "properties": {"key": {"type": "string"}}}
        tool: dict[str, Any] = {"name": "toy_expand", "description": "Gives back what was left out."}
        if path.endswith("/messages"):
            return {**document, "tools": [*tools, {**tool, "input_schema": schema}]}
        return {**document, "tools": [*tools, {"type": "function", "function": {**tool, "parameters": schema}}]}


class Retries(Toy):
    """Tries again, up to three times, when upstream answers 500."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        for _ in range(3):
            async with self.ask(request, headers, body) as reply:
                if reply.status != 500:
                    return await self.relay(request, reply)
        return await super().exchange(request, headers, body)


class Rewrites(Toy):
    """Puts a changing counter into the first message, so that no two requests begin alike."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.counter = 0

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        self.counter += 1
        for where, key in _texts({"messages": document["messages"]}):
            where[key] = f"[{self.counter}] {where[key]}"
            break
        return document


class Mixes(Toy):
    """Swaps the replies of every two requests that are in flight at once."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.in_flight = 0
        self.held: asyncio.Future[tuple[Any, ...]] | None = None
        self.held_reply: tuple[Any, ...] = ()

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        self.in_flight += 1
        try:
            async with self.ask(request, headers, body) as reply:
                if self.in_flight == 1:
                    return await self.relay(request, reply)
                mine = (reply.status, _kept(reply, but="content-length"), await reply.read())
            status, kept, content = await self.swapped(mine)
            return web.Response(status=status, headers=kept, body=content)
        finally:
            self.in_flight -= 1

    async def swapped(self, mine: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.held is not None:
            theirs, waiting, self.held = self.held_reply, self.held, None
            waiting.set_result(mine)
            return theirs
        self.held, self.held_reply = asyncio.get_running_loop().create_future(), mine
        mailbox = self.held
        done, _ = await asyncio.wait([mailbox], timeout=1.0)
        if done:
            return mailbox.result()
        self.held = None
        return mine


KINDS: dict[str, Callable[[str], Toy]] = {
    "passes": Toy,
    "truncates": Truncates,
    "twice": Twice,
    "strips": Strips,
    "buffers": Buffers,
    "waits": Waits,
    "corrupts": Corrupts,
    "tells_lies": TellsLies,
    "injects": Injects,
    "retries": Retries,
    "rewrites": Rewrites,
    "mixes": Mixes,
}


def read_chat(request: web.Request, body: bytes) -> dict[str, Any] | None:
    """The document of a request to a model; None for anything else."""
    if request.method != "POST" or not request.path.endswith(("/chat/completions", "/messages")):
        return None
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) and isinstance(document.get("messages"), list) else None


def _kept(reply: ClientResponse, but: str = "") -> dict[str, str]:
    """The headers of a reply that go back with it."""
    return {name: value for name, value in reply.headers.items() if name.lower() not in {*_HOP, but}}


def _texts(part: Any) -> Iterator[tuple[Any, Any]]:
    """Where the texts of a conversation stand: a container, and the key or index of a text in it."""
    if isinstance(part, list):
        for place, item in enumerate(part):
            if isinstance(item, str):
                yield part, place
            else:
                yield from _texts(item)
    elif isinstance(part, dict):
        for key in ("system", "messages", "content", "text"):
            if isinstance(part.get(key), str):
                yield part, key
            else:
                yield from _texts(part.get(key))


def _corrupted(reply: Any) -> Any:
    """A reply, or an event of one, with its tools' arguments broken."""
    if isinstance(reply, list):
        return [_corrupted(item) for item in reply]
    if not isinstance(reply, dict):
        return reply
    changed = {key: _corrupted(value) for key, value in reply.items()}
    for key in ("arguments", "partial_json"):
        if isinstance(changed.get(key), str):
            changed[key] = changed[key].replace('"', "'")
    if changed.get("type") == "tool_use" and changed.get("input"):
        changed["input"] = {f"{key}_": value for key, value in changed["input"].items()}
    return changed


def _application(kind: str | Callable[[str], Toy], upstream: str) -> web.Application:
    toy = (KINDS[kind] if isinstance(kind, str) else kind)(upstream)
    application = web.Application(client_max_size=2**28)
    application.cleanup_ctx.append(toy.opened)
    application.router.add_route("*", "/{path:.*}", toy.handle)
    return application


async def _serve(application: web.Application, port: int, ready: Callable[[int], None], stop: asyncio.Event) -> None:
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        ready(int(runner.addresses[0][1]))
        await stop.wait()
    finally:
        await runner.cleanup()


@contextlib.contextmanager
def toy_proxy(kind: str | Callable[[str], Toy], upstream_url: str, port: int = 0) -> Iterator[str]:
    """Run a proxy of that kind, or a test's own, in a thread of its own; yields its URL."""
    started = threading.Event()
    known: dict[str, Any] = {}

    async def main() -> None:
        known["loop"], known["stop"] = asyncio.get_running_loop(), asyncio.Event()

        def ready(bound: int) -> None:
            known["port"] = bound
            started.set()

        await _serve(_application(kind, upstream_url), port, ready, known["stop"])

    def run() -> None:
        try:
            asyncio.run(main())
        finally:
            started.set()

    thread = threading.Thread(target=run, name=f"toy proxy {kind}", daemon=True)
    thread.start()
    started.wait()
    if "port" not in known:
        raise RuntimeError(f"the toy proxy {kind} did not start")
    try:
        yield f"http://127.0.0.1:{known['port']}"
    finally:
        known["loop"].call_soon_threadsafe(known["stop"].set)
        thread.join()


def _program() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True)
    options = parser.parse_args()
    application = _application(options.kind, options.upstream)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(application, options.port, lambda _: None, asyncio.Event()))


if __name__ == "__main__":
    _program()
