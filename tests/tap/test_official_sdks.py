"""The official `openai` and `anthropic` packages against the tap: a script answers, directly or behind a forwarding
tap, or the local model does.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from context_bench.local import LocalModel
from context_bench.tap.answering import Answerer
from context_bench.tap.forward import Forward
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from later import Later
from small_model import small_model

openai = Later("openai", "the official SDKs are not installed (requirements-dev.txt)")
anthropic = Later("anthropic", "the official SDKs are not installed (requirements-dev.txt)")


@contextmanager
def tapped(answerer: Answerer) -> Iterator[str]:
    """A tap in a thread of its own, as its clients here block."""
    loop, tap = asyncio.new_event_loop(), Tap(answerer)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(tap.start(), loop).result()
        yield tap.url
        asyncio.run_coroutine_threadsafe(tap.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module", params=["scripted", "forwarding"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with tapped(Scripted.from_text("echo")) as upstream:
        if request.param == "scripted":
            yield upstream
        else:
            with tapped(Forward(upstream)) as address:
                yield address


ASKED = [{"role": "user", "content": "Say hello to Oslo"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "find", "parameters": SCHEMA}}
TOOL = {"type": "function", "name": "find", "strict": False, "parameters": SCHEMA}
BLOCK_TOOL = {"name": "find", "input_schema": SCHEMA}
JSON = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"city":"Oslo"}'}}
HISTORY = [
    {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "cold"},
]
ITEMS = [
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "cold"},
]
BLOCKS = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {"city": "Oslo"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "cold"}]},
]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

SAID, CALLED = "Say hello to Oslo", {"city": "Say hello to Oslo"}


class Clients:
    """Both SDKs, plain and asynchronous, for one address."""

    def __init__(self, url: str, limit: int | None = None) -> None:
        self.openai = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0, timeout=300)
        self.anthropic = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0, timeout=300)
        self.url, self.limit = url, limit or 200

    def __enter__(self) -> Clients:
        return self

    def __exit__(self, *_: object) -> None:
        self.openai.close()
        self.anthropic.close()

    def chat(self, **more: Any) -> Any:
        fields = {"model": "m", "messages": ASKED, "max_tokens": self.limit, **more}
        return self.openai.chat.completions.create(**fields)

    def chat_stream(self, **more: Any) -> Any:
        with self.openai.chat.completions.stream(model="m", messages=ASKED, **more) as stream:
            pieces = [event.type for event in stream]
            assert pieces
            return stream.get_final_completion().choices[0].message

    def responses(self, **more: Any) -> Any:
        fields = {"model": "m", "input": ASKED, "max_output_tokens": self.limit, **more}
        return self.openai.responses.create(**fields)

    def responses_stream(self, **more: Any) -> Any:
        fields = {"model": "m", "input": ASKED, "max_output_tokens": self.limit, **more}
        with self.openai.responses.stream(**fields) as stream:
            assert [event.type for event in stream][-1] == "response.completed"
            return stream.get_final_response()

    def messages(self, **more: Any) -> Any:
        return self.anthropic.messages.create(**{"model": "m", "max_tokens": self.limit, "messages": ASKED, **more})

    def messages_stream(self, **more: Any) -> Any:
        fields = {"model": "m", "max_tokens": self.limit, "messages": ASKED, **more}
        with self.anthropic.messages.stream(**fields) as stream:
            assert [event.type for event in stream][-1] == "message_stop"
            return stream.get_final_message()

    async def later(self, which: str) -> str:
        if which == "messages":
            async with anthropic.AsyncAnthropic(base_url=self.url, api_key="x") as client:
                message = await client.messages.create(model="m", max_tokens=self.limit, messages=ASKED)
                return str(message.content[0].text)
        async with openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="x") as client:
            if which == "chat":
                reply = await client.chat.completions.create(model="m", messages=ASKED, max_tokens=self.limit)
                return str(reply.choices[0].message.content)
            return str((await client.responses.create(model="m", input=ASKED)).output_text)


def refused(kind: Any, ask: Callable[[], Any]) -> int:
    with pytest.raises(kind) as error:
        ask()
    return int(error.value.status_code)


def text_of(chunks: Any) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def call_of(output: Any) -> Any:
    return json.loads(next(item for item in output if item.type == "function_call").arguments)


def input_of(content: Any) -> Any:
    return next(block for block in content if block.type == "tool_use").input


USAGE = {"include_usage": True}
CALLS: dict[str, tuple[Callable[[Clients], Any], Any]] = {
    "chat": (lambda c: c.chat().choices[0].message.content, SAID),
    "chat, streamed": (lambda c: text_of(c.chat(stream=True)), SAID),
    "chat, usage of a stream": (lambda c: [*c.chat(stream=True, stream_options=USAGE)][-1].usage.total_tokens, 8),
    "chat, stream helper": (lambda c: c.chat_stream().content, SAID),
    "chat, async": (lambda c: asyncio.run(c.later("chat")), SAID),
    "chat, tools": (
        lambda c: json.loads(
            c.chat(tools=[CHAT_TOOL], tool_choice="required").choices[0].message.tool_calls[0].function.arguments
        ),
        CALLED,
    ),
    "chat, streamed tools": (
        lambda c: json.loads(c.chat_stream(tools=[CHAT_TOOL], tool_choice="required").tool_calls[0].function.arguments),
        CALLED,
    ),
    "chat, tool result": (lambda c: c.chat(messages=[*ASKED, *HISTORY]).choices[0].message.content, SAID),
    "chat, schema": (lambda c: json.loads(c.chat(response_format=JSON).choices[0].message.content), CALLED),
    "chat, error": (lambda c: refused(openai.BadRequestError, lambda: c.chat(messages="x")), 400),
    "chat, image": (
        lambda c: (
            c.chat(messages=[{"role": "user", "content": [*ASKED[:0], {"type": "text", "text": "x"}, IMAGE]}])
            .choices[0]
            .message.content
        ),
        "x",
    ),
    "chat, two choices": (lambda c: [each.message.content for each in c.chat(n=2).choices], [SAID, SAID]),
    "completions": (lambda c: c.openai.completions.create(model="m", prompt="Hello").choices[0].text, "Hello"),
    "completions, streamed": (
        lambda c: "".join(
            each.choices[0].text
            for each in c.openai.completions.create(model="m", prompt="Hello you", stream=True)
            if each.choices
        ),
        "Hello you",
    ),
    "models": (lambda c: c.openai.models.list().data[0].id, "scripted"),
    "one model": (lambda c: c.openai.models.retrieve("gpt-4o").id, "gpt-4o"),
    "embeddings": (lambda c: len(c.openai.embeddings.create(model="e", input="hi").data[0].embedding), 256),
    "responses": (lambda c: c.responses().output_text, SAID),
    "responses, usage": (lambda c: c.responses().usage.total_tokens, 8),
    "responses, text": (lambda c: c.responses(input="Hi", instructions="Be kind").output_text, "Hi"),
    "responses, streamed": (
        lambda c: "".join(e.delta for e in c.responses(stream=True) if e.type == "response.output_text.delta"),
        SAID,
    ),
    "responses, stream helper": (lambda c: c.responses_stream().output_text, SAID),
    "responses, async": (lambda c: asyncio.run(c.later("responses")), SAID),
    "responses, tools": (lambda c: call_of(c.responses(tools=[TOOL], tool_choice="required").output), CALLED),
    "responses, streamed tools": (
        lambda c: call_of(c.responses_stream(tools=[TOOL], tool_choice="required").output),
        CALLED,
    ),
    "responses, tool result": (lambda c: c.responses(input=[*ASKED, *ITEMS]).output_text, SAID),
    "responses, error": (lambda c: refused(openai.BadRequestError, lambda: c.responses(input=7)), 400),
    "responses, chain": (
        lambda c: c.responses(input="And?", previous_response_id=c.responses(input="First.").id).usage.input_tokens,
        2 + 2 + 2,  # "First." asked and echoed, "And?"
    ),
    "responses, input tokens": (
        lambda c: c.openai.responses.input_tokens.count(model="m", input="Hello").input_tokens,
        1,
    ),
    "messages": (lambda c: c.messages().content[0].text, SAID),
    "messages, streamed": (
        lambda c: "".join(e.delta.text for e in c.messages(stream=True) if e.type == "content_block_delta"),
        SAID,
    ),
    "messages, stream helper": (lambda c: c.messages_stream().content[0].text, SAID),
    "messages, async": (lambda c: asyncio.run(c.later("messages")), SAID),
    "messages, tools": (
        lambda c: input_of(c.messages(tools=[BLOCK_TOOL], tool_choice={"type": "any"}).content),
        CALLED,
    ),
    "messages, streamed tools": (
        lambda c: input_of(c.messages_stream(tools=[BLOCK_TOOL], tool_choice={"type": "any"}).content),
        CALLED,
    ),
    "messages, tool result": (
        lambda c: c.messages(tools=[BLOCK_TOOL], messages=[*ASKED, *BLOCKS]).content[0].text,
        SAID,
    ),
    "messages, token count": (
        lambda c: c.anthropic.messages.count_tokens(model="m", messages=ASKED).input_tokens,
        4,
    ),
    "messages, error": (lambda c: refused(anthropic.BadRequestError, lambda: c.messages(messages="x")), 400),
    "one model of Anthropic": (lambda c: c.anthropic.models.retrieve("claude").id, "claude"),
}


def test_all_calls_of_both_sdks(url: str) -> None:
    got = {}
    with Clients(url) as clients:
        for name, (ask, _) in CALLS.items():
            try:
                got[name] = ask(clients)
            except Exception as error:  # noqa: BLE001 - the others are tried all the same
                got[name] = repr(error)
    assert got == {name: expected for name, (_, expected) in CALLS.items()}
    assert len(got) == 39


@pytest.mark.long
def test_the_local_model_answers_both_sdks() -> None:
    small_model()
    model = LocalModel(context=1024, say=lambda _: None)
    with tapped(model) as address, Clients(address, limit=6) as clients, Clients(address, limit=100) as roomy:
        assert clients.chat().choices[0].message.content
        assert text_of(clients.chat(stream=True))
        assert clients.responses().output_text
        final = [event for event in clients.responses(stream=True) if event.type == "response.completed"]
        assert final
        assert clients.messages().content[0].text
        assert clients.messages_stream().content[0].text
        assert clients.openai.models.retrieve("local").id == "SmolLM2-135M-Instruct"
        picture = [{"role": "user", "content": [IMAGE]}]
        assert refused(openai.BadRequestError, lambda: clients.chat(messages=picture)) == 400
        assert refused(anthropic.BadRequestError, lambda: clients.messages(messages="x")) == 400
        assert clients.responses_stream().output_text
        forced = [roomy.chat(tools=[CHAT_TOOL], tool_choice="required").choices[0].message.tool_calls[0].function]
        given = [json.loads(each.arguments) for each in forced]
        given.append(call_of(roomy.responses_stream(tools=[TOOL], tool_choice="required").output))
        given.append(input_of(roomy.messages(tools=[BLOCK_TOOL], tool_choice={"type": "any"}).content))
        assert [list(each) for each in given] == [["city"]] * 3
