"""Any server that speaks Anthropic's messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from context_bench.errors import BadOutput
from context_bench.http import Endpoint, RetryPolicy, Secret, find_key
from context_bench.http.loop import run_sync
from context_bench.systems.prompts import Message, build_messages
from context_bench.systems.sampling import settings_fingerprint
from context_bench.types import Example

__all__ = ["AnthropicProxy"]

_VERSION = "2023-06-01"


class AnthropicProxy:
    """Sends each example to `/v1/messages` and returns the reply.

    Args:
        base_url: The server, with or without `/v1`.
        model: Sent as it is.
        name: `host:port` by default.
        api_key: Without one, `ANTHROPIC_API_KEY` is used over https or on this machine.
        system_prompt: Put before the context.
        timeout: Seconds for one attempt.
        extra_body: More fields for the request, over the ones that are set here; None removes one.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds before the first retry; doubled each time.
        temperature: None leaves it to the server.
        max_tokens: The longest reply; this API wants one.
        headers: More headers.
        max_rpm: The most requests in a minute.
        max_tpm: The most tokens in a minute.
        max_connections: The most requests in flight.
        deadline: Seconds for one example, retries and waits included; ten time-outs by default.
    """

    def __init__(
        self,
        base_url: str = "https://api.anthropic.com",
        model: str = "claude-haiku-4-5",
        name: str | None = None,
        api_key: str | Secret | None = None,
        system_prompt: str | None = None,
        timeout: float = 60.0,
        extra_body: Mapping[str, Any] | None = None,
        max_retries: int = 3,
        retry_base_delay: float = 1.0,
        *,
        temperature: float | None = 0.0,
        max_tokens: int = 1024,
        headers: Mapping[str, str] | None = None,
        max_rpm: float | None = None,
        max_tpm: float | None = None,
        max_connections: int | None = None,
        deadline: float | None = None,
    ) -> None:
        key = find_key(base_url, api_key, fallback="ANTHROPIC_API_KEY")
        secret = {"x-api-key": key} if key else {}
        self.endpoint = Endpoint(
            base_url,
            headers={"anthropic-version": _VERSION, **(headers or {}), **secret},
            timeout=timeout,
            policy=RetryPolicy(max_retries, retry_base_delay, deadline=deadline or 10 * timeout),
            limit=max_connections,
            max_rpm=max_rpm,
            max_tpm=max_tpm,
        )
        self.name = name or urlsplit(base_url).netloc
        self.model = model
        self.max_workers: int | None = None
        self.system_prompt = system_prompt
        self.temperature, self.max_tokens = temperature, max_tokens
        self.extra_body = dict(extra_body or {})
        self._path = "/messages" if self.endpoint.base_url.endswith("/v1") else "/v1/messages"

    def __repr__(self) -> str:
        return f"AnthropicProxy({self.endpoint.base_url!r}, model={self.model!r}, name={self.name!r})"

    @property
    def fingerprint(self) -> str | None:
        """Everything that makes its answers differ; no secret is part of it."""
        return settings_fingerprint(
            "anthropic-proxy/1",
            None,
            url=self.endpoint.base_url,
            model=self.model,
            system_prompt=self.system_prompt,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            extra_body=self.extra_body,
        )

    def request_body(self, example: Example) -> dict[str, Any]:
        """What is sent for an example."""
        system, messages = _split(build_messages(example, self.system_prompt))
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": system or None,
            "messages": messages,
            "temperature": self.temperature,
            "tools": [_tool(tool) for tool in example.get("tools") or ()] or None,
        }
        return {key: value for key, value in {**body, **self.extra_body}.items() if value is not None}

    async def prepare(self) -> None:
        """Find out whether the server is there, before any example is sent."""
        await self.endpoint.probe()

    async def aprocess(self, example: Example) -> Example:
        """Send one example and return its reply, with usage and timings in `metadata`."""
        exchange = await self.endpoint.post(self._path, self.request_body(example))
        result = _result(exchange.document, self.endpoint.place)
        self.endpoint.settle(result["metadata"].get("total_tokens"))
        result["metadata"].update(exchange.facts())
        return result

    def process(self, example: Example) -> Example:
        """The same, for callers without an event loop."""
        return run_sync(self.aprocess(example))


def _split(messages: list[Message]) -> tuple[str, list[Message]]:
    """System text apart from the conversation, tool calls and results as content blocks."""
    system = [str(each["content"]) for each in messages if each["role"] == "system"]
    return "\n\n".join(system), [_message(each) for each in messages if each["role"] != "system"]


def _message(message: Message) -> Message:
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
        return {"role": "user", "content": [block]}
    if message.get("tool_calls"):
        blocks = [{"type": "text", "text": message["content"]}] if message.get("content") else []
        for call in message["tool_calls"]:
            arguments = orjson.loads(call["function"]["arguments"] or "{}")
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments})
        return {"role": "assistant", "content": blocks}
    return {"role": message["role"], "content": message["content"]}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in OpenAI's form, or as it is when it has Anthropic's already."""
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return dict(tool)
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _result(document: Any, place: str) -> Example:
    try:
        blocks, usage = list(document["content"]), document.get("usage") or {}
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
        result: Example = {"response": text, "metadata": _usage(usage)}
    except (KeyError, TypeError, AttributeError):
        seen = orjson.dumps(document)[:200].decode("utf-8", "replace")
        raise BadOutput(f"{place} answered with JSON that is no message: {seen}") from None
    if calls:
        result["tool_calls"] = calls
    return result


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = orjson.dumps(block["input"]).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def _usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """This API counts cached tokens apart from `input_tokens`; a prompt is all three together."""
    read, written = int(usage.get("cache_read_input_tokens") or 0), int(usage.get("cache_creation_input_tokens") or 0)
    if "input_tokens" not in usage:
        return {}
    prompt, completion = int(usage["input_tokens"]) + read + written, int(usage.get("output_tokens") or 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cached_tokens": read,
        "cache_creation_tokens": written,
    }
