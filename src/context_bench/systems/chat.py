"""The base of all clients of a chat API: the connection to its server, and what systems do with a reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from context_bench.errors import BadOutput
from context_bench.http import Endpoint, Exchange, RetryPolicy, Secret, find_key
from context_bench.http.loop import run_sync
from context_bench.http.refusals import Asked, explain_refusal
from context_bench.http.secrets import changing_headers, check_headers, describe_path, merge_headers, split_api_url
from context_bench.systems.adapt import check_settings, settings_fingerprint
from context_bench.systems.prompts import Echo, Message, answer_turns
from context_bench.text.masking import find_secrets, mask_command
from context_bench.traits import SystemTraits
from context_bench.types import Example
from context_bench.wire.dialects import Dialect
from context_bench.wire.model_reply import ModelReply, NotAReply

__all__ = ["ChatProxy", "Connection", "open_connection"]


_ANTHROPIC_VERSION = "2023-06-01"

Headers = Mapping[str, str | Secret]


@dataclass(frozen=True)
class _Api:
    """Where an API is asked below `/v1`, and how it is shown a key."""

    path: str
    key_variable: str
    headers: Callable[[Secret | None], dict[str, str | Secret]]


def _openai_headers(key: Secret | None) -> dict[str, str | Secret]:
    return {"Authorization": Secret(f"Bearer {key.reveal()}")} if key else {}


def _anthropic_headers(key: Secret | None) -> dict[str, str | Secret]:
    return {"anthropic-version": _ANTHROPIC_VERSION, **({"x-api-key": key} if key else {})}


_APIS: dict[Dialect, _Api] = {
    "openai": _Api("/chat/completions", "OPENAI_API_KEY", _openai_headers),
    "anthropic": _Api("/messages", "ANTHROPIC_API_KEY", _anthropic_headers),
}


@dataclass(frozen=True)
class Connection:
    """The way to a server: its endpoint, the path below it, the headers that the user gave, and who may ask."""

    endpoint: Endpoint
    path: str
    headers: Mapping[str, Secret]
    asked: Asked


def open_connection(
    dialect: Dialect,
    base_url: str,
    model: str,
    *,
    api_key: str | Secret | None = None,
    headers: Headers | None = None,
    extra_body: Mapping[str, Any] | None = None,
    timeout: float,
    max_retries: int,
    retry_base_delay: float,
    deadline: float | None = None,
    max_rpm: float | None = None,
    max_tpm: float | None = None,
    max_connections: int | None = None,
) -> Connection:
    """Check the settings and make the endpoint; nothing is sent yet. The arguments are those of the proxies."""
    check_settings(may_be_zero=True, max_retries=max_retries, retry_base_delay=retry_base_delay)
    check_settings(may_be_zero=False, timeout=timeout, deadline=deadline)
    check_settings(may_be_zero=False, max_rpm=max_rpm, max_tpm=max_tpm, max_connections=max_connections)
    api = _APIS[dialect]
    base_url, path = split_api_url(base_url, api.path)
    key = find_key(base_url, api_key, fallback=api.key_variable)
    given = check_headers(headers)
    endpoint = Endpoint(
        base_url,
        headers=merge_headers(api.headers(key), given),
        timeout=timeout,
        policy=RetryPolicy(max_retries, retry_base_delay, deadline=deadline or 10 * timeout),
        limit=max_connections,
        max_rpm=max_rpm,
        max_tpm=max_tpm,
        secrets=find_secrets(extra_body),
    )
    return Connection(endpoint, path, given, Asked(model, key, api.key_variable, list(given)))


class ChatProxy(ABC):
    """A system that sends each example to a chat API and returns the reply; its subclasses know the API's form."""

    sends_elsewhere = True

    def __init__(
        self,
        connection: Connection,
        model: str,
        name: str | None,
        *,
        system_prompt: str | None,
        temperature: float | None,
        max_tokens: int | None,
        extra_body: Mapping[str, Any] | None,
    ) -> None:
        check_settings(may_be_zero=False, max_tokens=max_tokens)
        self.endpoint = connection.endpoint
        self.name = name or urlsplit(self.endpoint.base_url).netloc
        self.model = model
        self.max_workers: int | None = None
        self.system_prompt = system_prompt
        self.temperature, self.max_tokens = temperature, max_tokens
        self.extra_body = dict(extra_body or {})
        self._path, self._headers, self._asked = connection.path, connection.headers, connection.asked

    def __repr__(self) -> str:
        url = mask_command(self.endpoint.base_url)
        return f"{type(self).__name__}({url!r}, model={self.model!r}, name={self.name!r})"

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(
            own_client=True,
            max_workers=self.max_workers,
            asks_model=True,
            request_body=self.request_body,
            stop_reason=self.stop_reason,
        )

    @abstractmethod
    def request_body(self, example: Example) -> dict[str, Any]:
        """Make the body that is sent for an example."""

    @abstractmethod
    async def _send(self, example: Example) -> tuple[Mapping[str, Any], Exchange]:
        """Send an example; the body that was answered, and the exchange."""

    @abstractmethod
    def _read(self, document: Any) -> ModelReply:
        """Read a reply; NotAReply when it is none."""

    def _describe(self, kind: str, function: Callable[..., Any] | None = None, **more: Any) -> str | None:
        """Make the fingerprint: everything that makes answers differ, and no secret."""
        return settings_fingerprint(
            kind,
            function,
            url=self.endpoint.base_url,
            model=self.model,
            system_prompt=self.system_prompt,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            extra_body=self.extra_body,
            headers=changing_headers(self._headers),
            **describe_path(self.endpoint.base_url, self._path),
            **more,
        )

    async def prepare(self) -> None:
        """Find out whether the server is there, before any example is sent."""
        await self.endpoint.probe()

    async def aprocess(self, example: Example) -> Example:
        """Send one example and return its reply, with usage and timings in `metadata`."""
        body, exchange = await self._send(example)
        try:
            reply = self._read(exchange.document)
        except NotAReply as error:
            failure = BadOutput(f"{self.endpoint.place} answered with {error}", error.usage)
            failure.wrong_form = error.wrong_form
            raise failure from None
        metadata = reply.metadata
        self.endpoint.settle(metadata.get("total_tokens"), body["messages"], reply.text)
        metadata |= exchange.facts()
        result: Example = {"response": reply.text, "metadata": metadata}
        if reply.tool_calls:
            result["tool_calls"] = reply.tool_calls
        if exchange.tapped is not None:
            result["tapped"] = exchange.tapped
        return result

    def stop_reason(self, failure: BaseException | None, answer: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Tell why no other example needs to be sent after this one, if that is so."""
        return explain_refusal(failure, self._asked)

    def process(self, example: Example) -> Example:
        """Send one example and return it with the reply, for callers without an event loop."""
        return Echo(example, run_sync(self.aprocess(example)))

    async def aprocess_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the user turns that wait for a reply one after the other, each with all before it."""
        return await answer_turns(self.aprocess, turns)

    def process_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the open turns, for callers without an event loop."""
        return run_sync(self.aprocess_conversation(turns))
