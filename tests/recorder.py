"""A witness beside the tap: a plain upstream that keeps what reaches it, and a count that shares no code with ours."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import splintr

__all__ = ["Recorder", "count", "post"]


class Recorder:
    """A plain upstream: it keeps every body, and answers `ok` in the form that was asked for."""

    def __init__(self) -> None:
        kept = self.bodies = list[dict[str, Any]]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                kept.append({"path": self.path, **body})
                forms = {"/v1/messages": MESSAGE, "/v1/responses": RESPONSE}
                self.answer(forms.get(self.path.partition("?")[0], COMPLETION))

            def do_GET(self) -> None:
                self.answer({"data": []})

            def answer(self, document: dict[str, Any]) -> None:
                reply = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Recorder:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


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
