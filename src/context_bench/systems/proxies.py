"""Systems behind an HTTP API: any server that speaks OpenAI's chat completions or Anthropic's messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from context_bench.http import Secret
from context_bench.systems.chat import ChatProxy
from context_bench.systems.prompts import Message
from context_bench.types import Example
from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from context_bench.wire.forms import get_form
from context_bench.wire.openai_chat import OPENAI_CHAT

__all__ = ["AnthropicProxy", "OpenAIProxy", "build_proxy"]


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
        super().__init__(
            OPENAI_CHAT,
            base_url,
            model,
            name,
            api_key=api_key,
            system_prompt=system_prompt,
            build_messages=build_messages,
            timeout=timeout,
            extra_body=extra_body,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
            temperature=temperature,
            max_tokens=max_tokens,
            stream=stream,
            headers=headers,
            max_rpm=max_rpm,
            max_tpm=max_tpm,
            max_connections=max_connections,
            deadline=deadline,
        )


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
        stream: Receive the reply as a stream, and time its first and later tokens.
        headers: More headers, over the ones that are set here.
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
        stream: bool = False,
        headers: Mapping[str, str | Secret] | None = None,
        max_rpm: float | None = None,
        max_tpm: float | None = None,
        max_connections: int | None = None,
        deadline: float | None = None,
    ) -> None:
        super().__init__(
            ANTHROPIC_MESSAGES,
            base_url,
            model,
            name,
            api_key=api_key,
            system_prompt=system_prompt,
            timeout=timeout,
            extra_body=extra_body,
            max_retries=max_retries,
            retry_base_delay=retry_base_delay,
            temperature=temperature,
            max_tokens=max_tokens,
            stream=stream,
            headers=headers,
            max_rpm=max_rpm,
            max_tpm=max_tpm,
            max_connections=max_connections,
            deadline=deadline,
        )


def build_proxy(api: str, base_url: str, **settings: Any) -> ChatProxy:
    """Build the system for a server that speaks the API of that name; the settings are those of `ChatProxy`."""
    shipped: dict[str, type[OpenAIProxy] | type[AnthropicProxy]] = {"openai": OpenAIProxy, "anthropic": AnthropicProxy}
    return shipped[api](base_url, **settings) if api in shipped else ChatProxy(get_form(api), base_url, **settings)
