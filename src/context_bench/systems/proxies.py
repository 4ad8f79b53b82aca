"""Systems behind an HTTP API: any server that speaks OpenAI's chat completions or Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from context_bench.errors import RequestFailed
from context_bench.http import Exchange, Reply, Secret
from context_bench.systems.chat import ChatProxy, open_connection
from context_bench.systems.prompts import Message, build_messages
from context_bench.types import Example
from context_bench.wire.anthropic_requests import convert_messages, convert_tool, declare_used_tools, join_system
from context_bench.wire.model_reply import ModelReply, read_chat_completion, read_message
from context_bench.wire.stream_reader import read_chat_stream

__all__ = ["AnthropicProxy", "OpenAIProxy"]


class OpenAIProxy(ChatProxy):
    """Sends each example as a chat completion and returns the reply.

    Args:
        base_url: The server, with or without `/v1`; one that ends in `/chat/completions` is asked exactly there.
        model: Sent as it is.
        name: `host:port` by default.
        api_key: Without one, `OPENAI_API_KEY` is used over https or on this machine.
        system_prompt: Put before the context.
        build_messages: Makes the messages from an example, instead of the built-in framing.
        timeout: Seconds for one attempt.
        extra_body: More fields for the request, over the ones that are set here; None removes one.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds before the first retry; doubled each time.
        temperature: None leaves it to the server.
        max_tokens: The longest reply; sent as `max_completion_tokens` to a server that asks for that.
        stream: Receive the reply as a stream, and time its first and later tokens.
        headers: More headers, over the ones that are set here.
        max_rpm: The most requests in a minute.
        max_tpm: The most tokens in a minute.
        max_connections: The most requests in flight.
        deadline: Seconds for one example, retries and waits included; ten time-outs by default.
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
        *,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        stream: bool = False,
        headers: Mapping[str, str | Secret] | None = None,
        max_rpm: float | None = None,
        max_tpm: float | None = None,
        max_connections: int | None = None,
        deadline: float | None = None,
    ) -> None:
        connection = open_connection(
            "openai",
            base_url,
            model,
            api_key=api_key,
            headers=headers,
            extra_body=extra_body,
            timeout=timeout,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
            deadline=deadline,
            max_rpm=max_rpm,
            max_tpm=max_tpm,
            max_connections=max_connections,
        )
        super().__init__(
            connection,
            model,
            name,
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
            extra_body=extra_body,
        )
        self.stream = stream
        self._build_messages = build_messages
        self._limit_field = "max_tokens"

    @property
    def reads_gold(self) -> bool:
        """Whether a function of the user's makes the messages: it is given the whole example."""
        return self._build_messages is not None

    @property
    def fingerprint(self) -> str | None:
        """Everything that makes its answers differ; no secret is part of it."""
        return self._describe("openai-proxy/1", self._build_messages, stream=self.stream)

    def request_body(self, example: Example) -> dict[str, Any]:
        """Make the body that is sent for an example."""
        if self._build_messages is not None:
            messages = self._build_messages(example)
        else:
            messages = build_messages(example, self.system_prompt)
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.max_tokens is not None:
            body[self._limit_field] = self.max_tokens
        if example.get("tools"):
            body["tools"] = example["tools"]
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        for field, value in self.extra_body.items():
            if value is None:
                body.pop(field, None)
            else:
                body[field] = value
        return body

    async def _send(self, example: Example) -> tuple[Mapping[str, Any], Exchange]:
        body, parse = self.request_body(example), _read_stream if self.stream else None
        try:
            return body, await self.endpoint.post(self._path, body, parse)
        except RequestFailed as error:
            if not self._learn_limit_field(error, body):
                raise
            body = self.request_body(example)
            exchange = await self.endpoint.post(self._path, body, parse)
            exchange.attempts += error.metadata.get("attempts", 0)
            exchange.timed_out += error.metadata.get("timed_out_attempts", 0)
            return body, exchange

    def _learn_limit_field(self, error: RequestFailed, refused: Mapping[str, Any]) -> bool:
        """Tell whether it was refused for `max_tokens`: reasoning models name what they want instead, which is kept."""
        wants = error.status == 400 and "max_completion_tokens" in str(error)
        if not wants or self.max_tokens is None or "max_tokens" not in refused:
            return False
        self._limit_field = "max_completion_tokens"
        return True

    def _read(self, document: Any) -> ModelReply:
        return read_chat_completion(document)


def _read_stream(reply: Reply) -> Any:
    return read_chat_stream(reply.body, reply.chunks)


class AnthropicProxy(ChatProxy):
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
        connection = open_connection(
            "anthropic",
            base_url,
            model,
            api_key=api_key,
            headers=headers,
            extra_body=extra_body,
            timeout=timeout,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
            deadline=deadline,
            max_rpm=max_rpm,
            max_tpm=max_tpm,
            max_connections=max_connections,
        )
        super().__init__(
            connection,
            model,
            name,
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
            extra_body=extra_body,
        )

    @property
    def fingerprint(self) -> str | None:
        """Everything that makes its answers differ; no secret is part of it."""
        return self._describe("anthropic-proxy/1")

    def request_body(self, example: Example) -> dict[str, Any]:
        """Make the body that is sent for an example."""
        turns = build_messages(example, self.system_prompt)
        tools = [convert_tool(tool) for tool in example.get("tools") or ()]
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": join_system(turns),
            "messages": convert_messages(turns),
            "temperature": self.temperature,
            "tools": tools or None,
        }
        if not tools and (used := declare_used_tools(body["messages"])):
            # Tool calls in the conversation want their tools declared, though none is on offer any more.
            body |= {"tools": used, "tool_choice": {"type": "none"}}
        return {key: value for key, value in {**body, **self.extra_body}.items() if value is not None}

    async def _send(self, example: Example) -> tuple[Mapping[str, Any], Exchange]:
        body = self.request_body(example)
        return body, await self.endpoint.post(self._path, body)

    def _read(self, document: Any) -> ModelReply:
        return read_message(document)
