"""Any server that speaks OpenAI's chat completions: a context proxy, a gateway, or a model itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from context_bench.errors import BadOutput, RequestFailed
from context_bench.http import Endpoint, RetryPolicy, Secret, find_key
from context_bench.http.headers import changing_headers, check_headers, merge_headers
from context_bench.http.loop import run_sync
from context_bench.http.paths import describe_path, split_api_url
from context_bench.http.refusals import Asked, explain_refusal
from context_bench.masking import find_secrets, mask_command
from context_bench.systems.chat_stream import read_stream
from context_bench.systems.conversation import answer_turns
from context_bench.systems.echo import Echo
from context_bench.systems.prompts import Message, build_messages, text_of
from context_bench.systems.sampling import check_settings, describe_document, settings_fingerprint, usage_numbers
from context_bench.traits import SystemTraits
from context_bench.types import Example

__all__ = ["OpenAIProxy"]


class OpenAIProxy:
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

    sends_elsewhere = True

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
        check_settings(may_be_zero=True, max_retries=max_retries, retry_base_delay=retry_base_delay)
        check_settings(may_be_zero=False, timeout=timeout, deadline=deadline, max_tokens=max_tokens)
        check_settings(may_be_zero=False, max_rpm=max_rpm, max_tpm=max_tpm, max_connections=max_connections)
        base_url, path = split_api_url(base_url, "/chat/completions")
        key = find_key(base_url, api_key)
        secret = {"Authorization": Secret(f"Bearer {key.reveal()}")} if key else {}
        self._headers = check_headers(headers)
        self.endpoint = Endpoint(
            base_url,
            headers=merge_headers(secret, self._headers),
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
        self.temperature, self.max_tokens, self.stream = temperature, max_tokens, stream
        self.extra_body = dict(extra_body or {})
        self._build_messages = build_messages
        self._limit_field = "max_tokens"
        self._path = path
        self._asked = Asked(model, key, "OPENAI_API_KEY", list(self._headers))

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(
            own_client=True,
            max_workers=self.max_workers,
            asks_model=True,
            request_body=self.request_body,
            stop_reason=self.stop_reason,
        )

    def __repr__(self) -> str:
        return f"OpenAIProxy({mask_command(self.endpoint.base_url)!r}, model={self.model!r}, name={self.name!r})"

    @property
    def reads_gold(self) -> bool:
        """Whether a function of the user's makes the messages: it is given the whole example."""
        return self._build_messages is not None

    @property
    def fingerprint(self) -> str | None:
        """Everything that makes its answers differ; no secret is part of it."""
        return settings_fingerprint(
            "openai-proxy/1",
            self._build_messages,
            url=self.endpoint.base_url,
            model=self.model,
            system_prompt=self.system_prompt,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            extra_body=self.extra_body,
            stream=self.stream,
            headers=changing_headers(self._headers),
            **describe_path(self.endpoint.base_url, self._path),
        )

    def request_body(self, example: Example) -> dict[str, Any]:
        """What is sent for an example."""
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

    async def prepare(self) -> None:
        """Find out whether the server is there, before any example is sent."""
        await self.endpoint.probe()

    async def aprocess(self, example: Example) -> Example:
        """Send one example and return its reply, with usage and timings in `metadata`."""
        body, parse = self.request_body(example), read_stream if self.stream else None
        try:
            exchange = await self.endpoint.post(self._path, body, parse)
        except RequestFailed as error:
            if not self._learned(error, body):
                raise
            exchange = await self.endpoint.post(self._path, self.request_body(example), parse)
            exchange.attempts += error.metadata.get("attempts", 0)
        message, metadata = _reply(exchange.document, self.endpoint.place)
        self.endpoint.settle(metadata.get("total_tokens"), body["messages"], message.get("content"))
        metadata |= exchange.facts()
        result: Example = {"response": text_of(message.get("content")), "metadata": metadata}
        if message.get("tool_calls"):
            result["tool_calls"] = message["tool_calls"]
        if exchange.tapped is not None:
            result["tapped"] = exchange.tapped
        return result

    def _learned(self, error: RequestFailed, refused: Mapping[str, Any]) -> bool:
        """Whether it was refused for `max_tokens`: reasoning models name what they want instead, which is kept."""
        wants = error.status == 400 and "max_completion_tokens" in str(error)
        if not wants or self.max_tokens is None or "max_tokens" not in refused:
            return False
        self._limit_field = "max_completion_tokens"
        return True

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


def _reply(document: Any, place: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The message and the numbers in a chat completion; BadOutput when it is none, with the usage that it tells."""
    usage = usage_numbers(document.get("usage")) if isinstance(document, dict) else {}
    try:
        choice = document["choices"][0]
        message = dict(choice["message"])
        metadata: dict[str, Any] = usage | document.get("timings_of_stream", {})
        if finish := choice.get("finish_reason"):
            metadata["finish_reason"] = finish
        return message, metadata
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        seen = describe_document(document)
        error = BadOutput(f"{place} answered with JSON that is no chat completion: {seen}", usage)
        error.wrong_form = not isinstance(document, dict) or not document.keys() & {"choices", "error"}
        raise error from None
