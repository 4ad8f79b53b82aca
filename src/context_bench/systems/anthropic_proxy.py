"""Any server that speaks Anthropic's messages API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from context_bench.errors import BadOutput, UsageError
from context_bench.http import Endpoint, RetryPolicy, Secret, find_key
from context_bench.http.headers import changing_headers, check_headers, merge_headers
from context_bench.http.loop import run_sync
from context_bench.http.paths import describe_path, split_api_url
from context_bench.http.refusals import Asked, explain_refusal
from context_bench.masking import find_secrets, mask_command
from context_bench.systems.conversation import answer_turns
from context_bench.systems.echo import Echo
from context_bench.systems.prompts import Message, build_messages, text_of
from context_bench.systems.sampling import anthropic_usage, check_settings, describe_document, settings_fingerprint
from context_bench.traits import SystemTraits
from context_bench.types import Example

__all__ = ["AnthropicProxy"]

_VERSION = "2023-06-01"
_NO_PARAMETERS = {"type": "object", "properties": {}}


class AnthropicProxy:
    """Sends each example to `/v1/messages` and returns the reply.

    Args:
        base_url: The server, with or without `/v1`; one that ends in `/messages` is asked exactly there.
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
        headers: More headers, over the ones that are set here.
        max_rpm: The most requests in a minute.
        max_tpm: The most tokens in a minute.
        max_connections: The most requests in flight.
        deadline: Seconds for one example, retries and waits included; ten time-outs by default.
    """

    sends_elsewhere = True
    reads_gold = False

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
        headers: Mapping[str, str | Secret] | None = None,
        max_rpm: float | None = None,
        max_tpm: float | None = None,
        max_connections: int | None = None,
        deadline: float | None = None,
    ) -> None:
        check_settings(may_be_zero=True, max_retries=max_retries, retry_base_delay=retry_base_delay)
        check_settings(may_be_zero=False, timeout=timeout, deadline=deadline, max_tokens=max_tokens)
        check_settings(may_be_zero=False, max_rpm=max_rpm, max_tpm=max_tpm, max_connections=max_connections)
        base_url, path = split_api_url(base_url, "/messages")
        key = find_key(base_url, api_key, fallback="ANTHROPIC_API_KEY")
        own: dict[str, str | Secret] = {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}
        self._headers = check_headers(headers)
        self.endpoint = Endpoint(
            base_url,
            headers=merge_headers(own, self._headers),
            timeout=timeout,
            policy=RetryPolicy(max_retries, retry_base_delay, deadline=deadline or 10 * timeout),
            limit=max_connections,
            max_rpm=max_rpm,
            max_tpm=max_tpm,
            secrets=find_secrets(extra_body),
        )
        self.name = name or urlsplit(base_url).netloc
        self.model = model
        self.max_workers: int | None = None
        self.system_prompt = system_prompt
        self.temperature, self.max_tokens = temperature, max_tokens
        self.extra_body = dict(extra_body or {})
        self._path = path
        self._asked = Asked(model, key, "ANTHROPIC_API_KEY", list(self._headers))

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(
            own_client=True,
            max_workers=self.max_workers,
            asks_model=True,
            request_body=self.request_body,
            stop_reason=self.stop_reason,
        )

    def __repr__(self) -> str:
        return f"AnthropicProxy({mask_command(self.endpoint.base_url)!r}, model={self.model!r}, name={self.name!r})"

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
            headers=changing_headers(self._headers),
            **describe_path(self.endpoint.base_url, self._path),
        )

    def request_body(self, example: Example) -> dict[str, Any]:
        """What is sent for an example."""
        turns = build_messages(example, self.system_prompt)
        tools = [_tool(tool) for tool in example.get("tools") or ()]
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": "\n\n".join(text_of(each.get("content")) for each in turns if _is_system(each)) or None,
            "messages": _messages(each for each in turns if not _is_system(each)),
            "temperature": self.temperature,
            "tools": tools or None,
        }
        if not tools and (used := _tools_used(body["messages"])):
            # Tool calls in the conversation want their tools declared, though none is on offer any more.
            body |= {"tools": used, "tool_choice": {"type": "none"}}
        return {key: value for key, value in {**body, **self.extra_body}.items() if value is not None}

    async def prepare(self) -> None:
        """Find out whether the server is there, before any example is sent."""
        await self.endpoint.probe()

    async def aprocess(self, example: Example) -> Example:
        """Send one example and return its reply, with usage and timings in `metadata`."""
        body = self.request_body(example)
        exchange = await self.endpoint.post(self._path, body)
        result = _result(exchange.document, self.endpoint.place)
        self.endpoint.settle(result["metadata"].get("total_tokens"), body["messages"], result["response"])
        result["metadata"].update(exchange.facts())
        if exchange.tapped is not None:
            result["tapped"] = exchange.tapped
        return result

    def stop_reason(self, failure: BaseException | None, answer: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Why no other example needs to be sent after this one, if that is so."""
        return explain_refusal(failure, self._asked)

    def process(self, example: Example) -> Example:
        """Send one example and return it with the reply, for callers without an event loop."""
        return Echo(example, run_sync(self.aprocess(example)))

    async def aprocess_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the user turns that wait for a reply one after the other, each with all before it."""
        return await answer_turns(self.aprocess, turns)

    def process_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """The same, for callers without an event loop."""
        return run_sync(self.aprocess_conversation(turns))


def _is_system(message: Message) -> bool:
    return message.get("role") in ("system", "developer")


def _messages(turns: Iterable[Message]) -> list[Message]:
    """Tool calls and results as content blocks; the results of one step stand together in one message."""
    messages: list[Message] = []
    results: list[dict[str, Any]] = []
    for turn in turns:
        if turn.get("role") != "tool":
            results = []
            messages.append(_message(turn))
            continue
        if not results:
            messages.append({"role": "user", "content": results})
        block = {"type": "tool_result", "tool_use_id": turn.get("tool_call_id"), "content": turn.get("content") or ""}
        results.append(block)
    return messages


def _message(turn: Message) -> Message:
    content = turn.get("content") or ""
    if not turn.get("tool_calls"):
        return {"role": turn.get("role"), "content": content}
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)
    return {"role": "assistant", "content": [*blocks, *map(_tool_use, turn["tool_calls"])]}


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = None
    if not isinstance(arguments, dict):
        raise UsageError(f"the arguments of a call of {function['name']!r} are no JSON object")
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool in OpenAI's form, or as it is when it has Anthropic's already."""
    if "input_schema" in tool or tool.get("type", "function") != "function":
        return dict(tool)
    function = tool.get("function", tool)
    schema = function.get("parameters") or _NO_PARAMETERS
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _tools_used(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """A bare declaration of each tool that is called in a conversation."""
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    names = {block.get("name"): None for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"}
    return [{"name": name, "input_schema": _NO_PARAMETERS} for name in names]


def _result(document: Any, place: str) -> Example:
    usage = anthropic_usage(document.get("usage")) if isinstance(document, dict) else {}
    try:
        blocks = list(document["content"])
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    except (KeyError, TypeError):
        error = BadOutput(f"{place} answered with JSON that is no message: {describe_document(document)}", usage)
        error.wrong_form = not isinstance(document, dict) or not document.keys() & {"content", "error"}
        raise error from None
    metadata: dict[str, Any] = dict(usage)
    if document.get("stop_reason"):
        metadata["finish_reason"] = document["stop_reason"]
    return {"response": text, "metadata": metadata, **({"tool_calls": calls} if calls else {})}


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = orjson.dumps(block["input"]).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}
