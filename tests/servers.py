"""A real HTTP server on loopback for tests: it does what its script says, and remembers every request.

with Server(reply(500), completion("Paris")) as server:
    ...                       # the first request gets a 500, all later ones the completion
    server.chats[0].json      # what was sent
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from context_bench.tap.address import free_port

__all__ = [
    "Request",
    "Server",
    "chunk",
    "completion",
    "cut",
    "free_port",
    "hang",
    "message",
    "raw",
    "reply",
    "stream",
]


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    moment: float
    answered: float | None = None
    answering: float | None = None
    """When the last byte of its reply was written."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What the server does with one request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None
    pieces: tuple[bytes, ...] = ()
    pause: float = 0.0
    ended: bool = True


Behaviour = Reply | Callable[[Request], Reply]


def reply(status: int = 200, body: Any = None, headers: dict[str, str] | None = None, delay: float = 0.0) -> Reply:
    """A reply with a JSON body."""
    return Reply(status, json.dumps({} if body is None else body).encode(), headers or {}, delay)


def raw(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """A reply with any bytes."""
    return Reply(status, body, headers or {})


def completion(
    text: str | None = "ok",
    usage: dict[str, int] | None = None,
    delay: float = 0.0,
    **message: Any,
) -> Reply:
    """A chat completion; further keywords go into its message."""
    document: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
        ],
    }
    if usage is not None:
        document["usage"] = usage
    return reply(200, document, delay=delay)


def response(text: str) -> Reply:
    """A good reply of OpenAI's Responses API."""
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    return reply(200, {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage})


def message(text: str | None = "ok", usage: dict[str, Any] | None = None, **more: Any) -> Reply:
    """A message in Anthropic's form; further keywords replace its fields."""
    blocks = [] if text is None else [{"type": "text", "text": text}]
    document = {"id": "msg_1", "type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
    return reply(200, {**document, "usage": usage or {"input_tokens": 3, "output_tokens": 1}, **more})


def chunk(content: str | None = None, finish: str | None = None, **delta: Any) -> bytes:
    """One event of a streamed chat completion; further keywords go into its delta."""
    delta = {**({} if content is None else {"content": content}), **delta}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    document = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": None}
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def stream(*pieces: bytes, pause: float = 0.0, ended: bool = True, headers: dict[str, str] | None = None) -> Reply:
    """A body in pieces with a pause before each after the first. `ended=False` breaks off after the last one."""
    return Reply(200, headers=headers or {}, pieces=pieces, pause=pause, ended=ended)


def cut(after: int = 0) -> Reply:
    """Close the connection after so many bytes of a longer body; with 0 before anything is said."""
    return Reply(200, b"x" * 1000, cut_after=after)


def hang(seconds: float) -> Reply:
    """Say nothing for a while, then answer."""
    return completion("late", delay=seconds)


AnyServer = TypeVar("AnyServer", bound="Server")


class Server:
    """Serves the behaviours of its script one after the other; the last one for all requests after that."""

    def __init__(self, *script: Behaviour, port: int = 0) -> None:
        self.script = list(script) or [completion()]
        self.requests: list[Request] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._served = 0
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._connections: set[socket.socket] = set()
        self._http = _HTTP(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[Request]:
        """The POST requests."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def last(self) -> Any:
        """The body of the last POST request."""
        return self.chats[-1].json

    def __enter__(self: AnyServer) -> AnyServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Listen no more, and close every connection."""
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        with self._lock:
            open_connections = list(self._connections)
        for connection in open_connections:
            _shut(connection)
        self._thread.join()

    def serve(self, handler: _Handler, request: Request) -> None:
        if request.method != "POST":  # somebody looks whether we are there
            with self._lock:
                self.requests.append(request)
            handler.send(Reply(404, b"not found"))
            return
        with self._lock:
            self.requests.append(request)
            behaviour = self.script[min(self._served, len(self.script) - 1)]
            self._served += 1
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            answer = behaviour(request) if callable(behaviour) else behaviour
            if answer.delay:
                self._released.wait(answer.delay)
        finally:
            with self._lock:
                self._in_flight -= 1
        request.answering = time.monotonic()
        handler.send(answer)
        request.answered = time.monotonic()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)


class _HTTP(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    owner: Server

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _HTTP

    def setup(self) -> None:
        super().setup()
        self.server.owner.opened(self.connection)

    def finish(self) -> None:
        self.server.owner.closed(self.connection)
        super().finish()

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.owner.serve(self, Request(self.command, self.path, headers, body, time.monotonic()))

    do_GET = do_POST = do_PUT = do_HEAD = handle_any

    def send(self, answer: Reply) -> None:
        if answer.cut_after == 0:
            self.close_connection = True
            _shut(self.connection)
            return
        if answer.pieces:
            self.send_pieces(answer)
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut_after])
        if answer.cut_after is not None:
            self.close_connection = True
            _shut(self.connection)

    def send_pieces(self, answer: Reply) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", "text/event-stream")
        framed = answer.headers.get("Connection") != "close"  # else the end of the connection ends the body
        if framed:
            self.send_header("Transfer-Encoding", "chunked")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for number, piece in enumerate(answer.pieces):
            if number and answer.pause:
                time.sleep(answer.pause)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if framed else piece)
        if framed and answer.ended:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True
            _shut(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: tests look at `requests`."""


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
