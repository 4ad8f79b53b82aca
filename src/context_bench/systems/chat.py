"""Systems behind an HTTP API: OpenAI's chat completions, Anthropic's messages or another form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from context_bench.errors import BadOutput, RequestFailed
from context_bench.http import Endpoint, RetryPolicy, Secret, find_key
from context_bench.http.loop import run_sync
from context_bench.http.refusals import Asked, explain_refusal
from context_bench.http.secrets import changing_headers, check_headers, describe_path, merge_headers, split_api_url
from context_bench.systems.adapt import check_settings, settings_fingerprint
from context_bench.systems.prompts import Echo, Message, answer_turns, build_messages
from context_bench.text.masking import find_secrets, mask_command
from context_bench.traits import SystemTraits
from context_bench.types import Example
from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from context_bench.wire.form import ApiForm, NotAReply
from context_bench.wire.forms import get_form, read_stream
from context_bench.wire.openai_chat import OPENAI_CHAT

Headers = Mapping[str, str | Secret]

TAP_PLACEHOLDER = "{tap}"
"""Placeholder for a tap's address in headers and extra fields; the address may be unknown until the tap listens."""


def _fill_in(value: Any, url: str) -> Any:
    """Replace the placeholder of the tap's address in all texts of a JSON value."""
    if isinstance(value, str):
        return value.replace(TAP_PLACEHOLDER, url)
    if isinstance(value, list):
        return [_fill_in(each, url) for each in value]
    return {key: _fill_in(each, url) for key, each in value.items()} if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Connection:
    """A connection to a server: endpoint, path, the user's headers, and authentication."""

    endpoint: Endpoint
    path: str
    headers: Mapping[str, Secret]
    asked: Asked


def open_connection(
    form: ApiForm,
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
    """Check the settings and make the endpoint, without a request. The arguments are those of `ChatProxy`."""
    check_settings(may_be_zero=True, max_retries=max_retries, retry_base_delay=retry_base_delay)
    check_settings(may_be_zero=False, timeout=timeout, deadline=deadline)
    check_settings(may_be_zero=False, max_rpm=max_rpm, max_tpm=max_tpm, max_connections=max_connections)
    base_url, path = split_api_url(base_url, form.route)
    key = find_key(base_url, api_key, fallback=form.key_variable)
    name, value = form.key_header
    shown: Headers = {name: Secret(value.format(key=key.reveal()))} if key else {}
    given = check_headers(headers)
    endpoint = Endpoint(
        base_url,
        headers=merge_headers({**form.headers, **shown}, given),
        timeout=timeout,
        policy=RetryPolicy(max_retries, retry_base_delay, deadline=deadline or 10 * timeout),
        limit=max_connections,
        max_rpm=max_rpm,
        max_tpm=max_tpm,
        secrets=find_secrets(extra_body),
    )
    return Connection(endpoint, path, given, Asked(model, key, form.key_variable, list(given)))


class ChatProxy:
    """Sends each example to a chat API and returns the reply; the arguments are those of `OpenAIProxy`.

    `form` is the API that the server speaks. `build_proxy` fills in its default model.
    """

    sends_elsewhere = True

    def __init__(
        self,
        base_url: str,
        model: str = OPENAI_CHAT.default_model,
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
        form: ApiForm = OPENAI_CHAT,
    ) -> None:
        self.form, self.model = form, model
        self.max_tokens = form.default_max_tokens if max_tokens is None else max_tokens
        check_settings(may_be_zero=False, max_tokens=self.max_tokens)
        connection = open_connection(
            form,
            base_url,
            self.model,
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
        self.endpoint = connection.endpoint
        self.name = name or urlsplit(self.endpoint.base_url).netloc
        self.max_workers: int | None = None
        self.system_prompt, self.temperature, self.stream = system_prompt, temperature, stream
        self.extra_body = dict(extra_body or {})
        self._sent_fields = self.extra_body
        self._build_messages = build_messages
        self._limit_field = form.limit_fields[0]
        self._path, self._headers, self._asked = connection.path, connection.headers, connection.asked

    @property
    def reads_gold(self) -> bool:
        """Whether a function of the user builds the messages, since it gets the whole example."""
        return self._build_messages is not None

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

    def fill_in_tap(self, url: str) -> None:
        """Replace `{tap}` in headers and extra fields by the address of the tap behind the server."""
        self._sent_fields = _fill_in(self.extra_body, url)
        self.endpoint.fill_in(TAP_PLACEHOLDER, url)

    @property
    def fingerprint(self) -> str | None:
        """All settings that affect the answers, without secrets."""
        return settings_fingerprint(
            f"{self.form.name}-proxy/1",
            self._build_messages,
            url=self.endpoint.base_url,
            model=self.model,
            system_prompt=self.system_prompt,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            extra_body=self.extra_body,
            headers=changing_headers(self._headers),
            **describe_path(self.endpoint.base_url, self._path),
            stream=self.stream,
        )

    def request_body(self, example: Example) -> dict[str, Any]:
        """Build the request body for an example."""
        if self._build_messages is not None:
            messages = self._build_messages(example)
        else:
            messages = build_messages(example, self.system_prompt)
        body = self.form.build_request(
            self.model,
            messages,
            tools=example.get("tools") or (),
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            limit_field=self._limit_field,
            stream=self.stream,
        )
        for field, value in self._sent_fields.items():
            if value is None:
                body.pop(field, None)
            else:
                body[field] = value
        return body

    def _learn_limit_field(self, error: RequestFailed, refused: Mapping[str, Any]) -> bool:
        """Store the token limit's field if a refusal names another, as reasoning models do; return whether it does."""
        first, *others = self.form.limit_fields
        wanted = next((name for name in others if name in str(error)), None)
        if error.status != 400 or wanted is None or self.max_tokens is None or first not in refused:
            return False
        self._limit_field = wanted
        return True

    async def prepare(self) -> None:
        """Check that the server can be reached, before any example is sent."""
        await self.endpoint.probe()

    async def aprocess(self, example: Example) -> Example:
        """Send one example and return the reply, with usage and timings in `metadata`."""
        body, parse = self.request_body(example), partial(read_stream, self.form) if self.stream else None
        try:
            exchange = await self.endpoint.post(self._path, body, parse)
        except RequestFailed as error:
            if not self._learn_limit_field(error, body):
                raise
            body = self.request_body(example)
            exchange = await self.endpoint.post(self._path, body, parse)
            exchange.attempts += error.metadata.get("attempts", 0)
            exchange.timed_out += error.metadata.get("timed_out_attempts", 0)
        try:
            reply = self.form.read_reply(exchange.document)
        except NotAReply as error:
            failure = BadOutput(f"{self.endpoint.place} answered with {error}", error.usage)
            failure.wrong_form = error.wrong_form
            raise failure from None
        self.endpoint.settle(reply.usage.get("total_tokens"), body.get(self.form.prompt_fields[0]), reply.text)
        metadata = {**reply.usage, **reply.timings}
        if reply.finish:
            metadata["finish_reason"] = reply.finish
        metadata |= exchange.facts()
        result: Example = {"response": reply.text, "metadata": metadata}
        if reply.tool_calls:
            result["tool_calls"] = reply.tool_calls
        if exchange.tapped is not None:
            result["tapped"] = exchange.tapped
        return result

    def stop_reason(self, failure: BaseException | None, answer: Mapping[str, Any]) -> str | None:  # noqa: ARG002
        """Return the reason to send no further examples, if there is one."""
        return None if failure is None else explain_refusal(failure, self._asked)

    def process(self, example: Example) -> Example:
        """Send one example and return it with the reply, for callers without an event loop."""
        return Echo(example, run_sync(self.aprocess(example)))

    async def aprocess_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the open user turns one by one, each with all previous turns."""
        return await answer_turns(self.aprocess, turns)

    def process_conversation(self, turns: Sequence[Message]) -> list[Message]:
        """Answer the open turns, for callers without an event loop."""
        return run_sync(self.aprocess_conversation(turns))


class OpenAIProxy(ChatProxy):
    """Sends each example as a chat completion and returns the reply.

    Args:
        base_url: The server, with or without `/v1`; a URL that ends in `/chat/completions` is used unchanged.
        model: The name of the model, sent unchanged.
        name: `host:port` by default.
        api_key: Without one, `OPENAI_API_KEY` is used, but only over https or on this machine.
        system_prompt: Put before the context.
        build_messages: A function that makes the messages from an example, instead of the built-in framing.
        timeout: Seconds for one attempt.
        extra_body: Further request fields, which override those set here; a field set to None is removed.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds before the first retry; doubled each time.
        temperature: None leaves it to the server.
        max_tokens: The longest reply; sent as `max_completion_tokens` to a server that asks for that.
        stream: Receive the reply as a stream, and time its first and later tokens.
        headers: Further headers, which override those set here.
        max_rpm: The largest number of requests per minute.
        max_tpm: The largest number of tokens per minute.
        max_connections: The largest number of requests in flight.
        deadline: Seconds for one example, including retries and waits; ten times `timeout` by default.
    """


class AnthropicProxy(ChatProxy):
    """Sends each example to `/v1/messages` and returns the reply.

    Args:
        base_url: The server, with or without `/v1`; a URL that ends in `/messages` is used unchanged.
        model: The name of the model, sent unchanged.
        name: `host:port` by default.
        api_key: Without one, `ANTHROPIC_API_KEY` is used, but only over https or on this machine.
        system_prompt: Put before the context.
        timeout: Seconds for one attempt.
        extra_body: Further request fields, which override those set here; a field set to None is removed.
        max_retries: Attempts after the first.
        retry_base_delay: Seconds before the first retry; doubled each time.
        temperature: None leaves it to the server.
        max_tokens: The longest reply; this API requires a limit.
        stream: Receive the reply as a stream, and time its first and later tokens.
        headers: Further headers, which override those set here.
        max_rpm: The largest number of requests per minute.
        max_tpm: The largest number of tokens per minute.
        max_connections: The largest number of requests in flight.
        deadline: Seconds for one example, including retries and waits; ten times `timeout` by default.
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
            form=ANTHROPIC_MESSAGES,
        )


def build_proxy(api: str, base_url: str, **settings: Any) -> ChatProxy:
    """Build the system for a server that speaks the API of that name; the settings are those of `ChatProxy`."""
    shipped: dict[str, type[ChatProxy]] = {"openai": OpenAIProxy, "anthropic": AnthropicProxy}
    if api in shipped:
        return shipped[api](base_url, **settings)
    form = get_form(api)
    return ChatProxy(base_url, **{"model": form.default_model, "form": form, **settings})
