"""A witness beside the tap: a plain upstream that keeps what reaches it, and a count that shares no code with ours."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import splintr
from typing_extensions import Self

__all__ = ["Recorder", "Relay", "count", "post"]


class Recorder:
    """A plain upstream: it keeps every body, and answers `ok` in the form that was asked for."""

    def __init__(self) -> None:
        kept = self.bodies = list[dict[str, Any]]()
        reply_to = self.reply_to

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                kept.append({"path": self.path, **json.loads(body)})
                self.answer(body)

            def do_GET(self) -> None:
                self.answer(b"")

            def answer(self, body: bytes) -> None:
                status, reply = reply_to(self.command, self.path, dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def reply_to(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Make the answer to a request."""
        forms = {"/v1/messages": MESSAGE, "/v1/responses": RESPONSE}
        document = forms.get(path.partition("?")[0], COMPLETION) if method == "POST" else {"data": []}
        return 200, json.dumps(document).encode()

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class Relay(Recorder):
    """A recorder between a proxy and its upstream: what it keeps goes on to `upstream`, and the answer comes back."""

    upstream = ""

    def reply_to(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        kept = {name: value for name, value in headers.items() if name.lower() not in ("host", "content-length")}
        request = urllib.request.Request(self.upstream + path, body or None, kept, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}


def count(body: Mapping[str, Any]) -> int:
    """Tokens of the messages, the system text and the tools of a request, by the tokenizer alone."""
    encode = splintr.Tokenizer.from_pretrained("cl100k_base").encode_ordinary
    texts = [_dump(tool) for tool in body.get("tools") or ()]
    told = [{"content": body.get("system")}, {"content": body.get("instructions")}]
    for message in [*told, *(body.get("messages") or body["input"])]:
        texts += [*_list_texts(message.get("content")), *_list_texts(message.get("output"))]
        if message.get("type") == "function_call":  # counted as the call of a chat that it is
            function = {"name": message["name"], "arguments": message["arguments"]}
            texts.append(_dump({"id": message["call_id"], "type": "function", "function": function}))
        texts += [_dump(call) for call in message.get("tool_calls") or ()]
    return sum(len(encode(text)) for text in texts if text)


def _list_texts(content: Any) -> Iterator[str]:
    """A text, or the blocks of a message of either API."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if block["type"] == "tool_use":
            yield _dump(block["input"])
        elif block["type"] == "tool_result":
            yield from _list_texts(block.get("content"))
        else:
            yield block.get("text", "")


def _dump(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def post(url: str, body: bytes, more: Mapping[str, str]) -> dict[str, str]:
    """Send a body, and return the headers of the reply."""
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none", "x-api-key": "none", **more}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=120) as reply:
        reply.read()
        return dict(reply.headers)
