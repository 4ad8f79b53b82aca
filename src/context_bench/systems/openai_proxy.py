"""Any server that speaks OpenAI's chat completions: a context proxy, a gateway, or a model itself."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from context_bench.errors import BadOutput
from context_bench.http import Endpoint, RetryPolicy, Secret, find_key
from context_bench.http.loop import run_sync
from context_bench.systems.prompts import Message, build_messages
from context_bench.types import Example

__all__ = ["OpenAIProxy"]

_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")


class OpenAIProxy:
    """Sends each example as a chat completion and returns the reply.

    Args:
        base_url: The server, with or without `/v1`.
        model: Sent as it is.
        name: `host:port` by default.
        api_key: Without one, `OPENAI_API_KEY` is used over https or on this machine.
        system_prompt: Put before the context.
        build_messages: Makes the messages from an example, instead of the built-in framing.
        timeout: Seconds for one attempt.
        extra_body: More fields for the request, over the ones that are set here.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds before the first retry; doubled each time.
        headers: More headers.
        max_rpm: The most requests in a minute.
    """

    def __init__(
        self,
        base_url: str,
        model: str = "gpt-3.5-turbo",
        name: str | None = None,
        api_key: str | Secret | None = None,
        system_prompt: str | None = None,
        build_messages: Callable[[Example], list[Message]] | None = None,
        timeout: float = 30.0,
        extra_body: Mapping[str, Any] | None = None,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        headers: Mapping[str, str] | None = None,
        max_rpm: float | None = None,
    ) -> None:
        key = find_key(base_url, api_key)
        secret = {"Authorization": Secret(f"Bearer {key.reveal()}")} if key else {}
        policy = RetryPolicy(max_retries, retry_base_delay, deadline=10 * timeout)
        self.endpoint = Endpoint(
            base_url, headers={**(headers or {}), **secret}, timeout=timeout, policy=policy, max_rpm=max_rpm
        )
        self.name = name or urlsplit(base_url).netloc
        self.model = model
        self.max_workers: int | None = None
        self.system_prompt = system_prompt
        self.extra_body = dict(extra_body or {})
        self._build_messages = build_messages
        self._path = "/chat/completions" if self.endpoint.base_url.endswith("/v1") else "/v1/chat/completions"

    def __repr__(self) -> str:
        return f"OpenAIProxy({self.endpoint.base_url!r}, model={self.model!r}, name={self.name!r})"

    @property
    def fingerprint(self) -> str:
        """Everything that makes its answers differ; no secret is part of it."""
        parts = {
            "url": self.endpoint.base_url,
            "model": self.model,
            "system_prompt": self.system_prompt,
            "extra_body": self.extra_body,
            "messages": getattr(self._build_messages, "__qualname__", repr(self._build_messages)),
        }
        digest = hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str), digest_size=16)
        return f"openai-proxy/1 {digest.hexdigest()}"

    def request_body(self, example: Example) -> dict[str, Any]:
        """What is sent for an example."""
        if self._build_messages is not None:
            messages = self._build_messages(example)
        else:
            messages = build_messages(example, self.system_prompt)
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if example.get("tools"):
            body["tools"] = example["tools"]
        return {**body, **self.extra_body}

    async def prepare(self) -> None:
        """Find out whether the server is there, before any example is sent."""
        await self.endpoint.probe()

    async def aprocess(self, example: Example) -> Example:
        """Send one example and return its reply, with usage and timings in `metadata`."""
        exchange = await self.endpoint.post(self._path, self.request_body(example))
        message, usage = _reply(exchange.document, self.endpoint.place)
        result: Example = {"response": _text(message), "metadata": {**usage, **exchange.facts()}}
        if message.get("tool_calls"):
            result["tool_calls"] = message["tool_calls"]
        return result

    def process(self, example: Example) -> Example:
        """The same, for callers without an event loop."""
        return run_sync(self.aprocess(example))

    async def aprocess_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the user turns that wait for a reply one after the other, each with all before it."""
        sent: list[Message] = []
        replies: list[Message] = []
        for turn, after in zip(turns, [*turns[1:], None]):
            sent.append(dict(turn))
            if turn.get("role") == "user" and (after is None or after.get("role") != "assistant"):
                result = await self.aprocess({"turns": sent})
                reply = {"role": "assistant", "content": result["response"]}
                sent.append(reply)
                replies.append({**reply, "metadata": result["metadata"]})
        return replies

    def process_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """The same, for callers without an event loop."""
        return run_sync(self.aprocess_conversation(turns))


def _reply(document: Any, place: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The message and the usage in a chat completion; BadOutput when it is none."""
    try:
        message = document["choices"][0]["message"]
        usage = document.get("usage") or {}
        return dict(message), {key: usage[key] for key in _USAGE if isinstance(usage.get(key), int)}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        seen = orjson.dumps(document)[:200].decode("utf-8", "replace")
        raise BadOutput(f"{place} answered with JSON that is no chat completion: {seen}") from None


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return "" if content is None else str(content)
