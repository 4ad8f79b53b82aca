"""The local model as the one that answers: real questions to the real model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from context_bench.errors import MissingExtra, UsageError
from context_bench.http.loop import run_sync
from context_bench.local import LocalModel
from context_bench.local.weights import SMALL
from context_bench.tap.answering import Incoming, Outgoing
from small_model import small_model
from timing import depends_on_time

CONTEXT = (
    "The garden has three apple trees. The bus to the harbour leaves at nine. The access code of the vault is 7391. "
    "The library is closed on Sundays. My sister plays the violin."
)
QUESTION = f"{CONTEXT}\n\nWhat is the access code of the vault?"
OPENAI, ANTHROPIC = "/v1/chat/completions", "/v1/messages"


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What the model told the user."""
    return []


@pytest.fixture(scope="module")
def model(said: list[str]) -> Iterator[LocalModel]:
    small_model()
    model = LocalModel(context=1024, say=said.append)
    run_sync(model.open())
    yield model
    run_sync(model.close())


def request(path: str = OPENAI, content: str = QUESTION, **more: Any) -> Incoming:
    document = {
        "model": "any",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 24,
        "temperature": 0,
        **more,
    }
    headers = {"content-type": "application/json", "authorization": "Bearer the client's", "x-api-key": "the client's"}
    return Incoming("POST", path, "", headers, json.dumps(document).encode())


async def pieces(outgoing: Outgoing) -> list[bytes]:
    if isinstance(outgoing.body, bytes):
        return [outgoing.body]
    return [piece async for piece in outgoing.body]


def ask(model: LocalModel, incoming: Incoming) -> tuple[int, Any]:
    """The status and the JSON of a reply."""

    async def answer() -> tuple[int, Any]:
        outgoing = await model.answer(incoming)
        return outgoing.status, json.loads(b"".join(await pieces(outgoing)))

    return run_sync(answer())


def events(model: LocalModel, incoming: Incoming) -> tuple[list[Any], int]:
    """The data of every event of a streamed reply, and in how many pieces it came."""

    async def answer() -> list[bytes]:
        return await pieces(await model.answer(incoming))

    came = run_sync(answer())
    lines = b"".join(came).decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"], len(came)


@depends_on_time("the model has to read its prompt before its own server gives up waiting")
def test_the_needle_is_found(model: LocalModel) -> None:
    status, reply = ask(model, request())
    assert status == 200
    assert "7391" in reply["choices"][0]["message"]["content"]
    assert reply["choices"][0]["finish_reason"] == "stop"
    assert reply["usage"]["total_tokens"] == reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
    assert reply["model"] == SMALL.name


def test_without_the_needle_it_cannot_know(model: LocalModel) -> None:
    _, reply = ask(model, request(content="What is the access code of the vault?"))
    assert "7391" not in reply["choices"][0]["message"]["content"]


@depends_on_time("the model has to read its prompt before its own server gives up waiting")
def test_the_needle_in_a_stream(model: LocalModel) -> None:
    documents, count = events(model, request(stream=True))
    text = "".join(each["choices"][0]["delta"].get("content") or "" for each in documents)
    assert "7391" in text
    assert documents[-1]["choices"][0]["finish_reason"] == "stop"
    assert count > 3  # as it is made, and not at the end


@depends_on_time("the model has to read its prompt before its own server gives up waiting")
def test_the_needle_by_the_other_api(model: LocalModel) -> None:
    status, reply = ask(model, request(ANTHROPIC))
    assert status == 200
    assert reply["type"] == "message"
    assert "7391" in reply["content"][0]["text"]
    assert reply["stop_reason"] == "end_turn"
    assert reply["usage"]["input_tokens"] > 50  # nothing comes from a cache


@depends_on_time("the model has to read its prompt before its own server gives up waiting")
def test_the_needle_in_a_stream_of_the_other_api(model: LocalModel) -> None:
    documents, count = events(model, request(ANTHROPIC, stream=True))
    assert [documents[0]["type"], documents[-1]["type"]] == ["message_start", "message_stop"]
    text = "".join(each["delta"]["text"] for each in documents if each["type"] == "content_block_delta")
    assert "7391" in text
    assert count > 3


@depends_on_time("the model has to read its prompt before its own server gives up waiting")
def test_both_apis_read_the_same_prompt(model: LocalModel) -> None:
    _, one = ask(model, request())
    _, other = ask(model, request(ANTHROPIC))
    assert one["choices"][0]["message"]["content"] == other["content"][0]["text"]
    assert one["usage"]["prompt_tokens"] == other["usage"]["input_tokens"]


@depends_on_time("the model has to read its prompt before its own server gives up waiting")
def test_at_temperature_0_a_reply_depends_on_its_request_alone(model: LocalModel) -> None:
    story = request(content="Tell me about a dog.")

    async def together() -> list[bytes]:
        replies = await asyncio.gather(*(model.answer(each) for each in (story, request(), story)))
        return [b"".join(await pieces(each)) for each in replies]

    first, _, third = (json.loads(each)["choices"][0]["message"]["content"] for each in run_sync(together()))
    assert first
    assert first == third


def test_the_temperature_of_the_request_is_used(model: LocalModel) -> None:
    hot = [ask(model, request(content="Name an animal.", temperature=2.0, seed=seed)) for seed in range(4)]
    assert len({reply["choices"][0]["message"]["content"] for _, reply in hot}) > 1


@pytest.mark.parametrize("path", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_a_400(model: LocalModel, path: str, stream: bool) -> None:
    status, reply = ask(model, request(path, content="word " * 3000, stream=stream))
    assert status == 400
    assert "exceeds the available context size (1024 tokens)" in reply["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"messages": 5}', b'{"messages": [{"role": "user"}]}'])
def test_what_is_no_request_is_an_error_and_no_end(model: LocalModel, body: bytes) -> None:
    incoming = request()
    incoming.body = body
    status, reply = ask(model, incoming)
    assert 400 <= status <= 500
    assert reply["error"]["message"]
    assert ask(model, request(max_tokens=1))[0] == 200


def test_an_image_elsewhere_is_not_fetched(model: LocalModel) -> None:
    from servers import Server, reply

    with Server(reply(200)) as server:
        image = {"type": "image_url", "image_url": {"url": f"{server.url}/picture.png"}}
        incoming = request(messages=[{"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}])
        status, _ = ask(model, incoming)
        assert status >= 400
        assert server.requests == []


def test_what_it_is_known_by(model: LocalModel) -> None:
    assert SMALL.sha256 in model.fingerprint
    assert "context=1024" in model.fingerprint
    assert model.label.startswith("smoke test: SmolLM2-135M-Instruct")
    assert LocalModel(str(small_model())).label == model.label
    assert LocalModel(context=1024).fingerprint == model.fingerprint
    assert LocalModel(context=2048).fingerprint != model.fingerprint


@pytest.mark.long
def test_an_end_over_one_request_is_told_and_the_next_is_answered(model: LocalModel, said: list[str]) -> None:
    process = model._process
    assert process is not None

    async def answered_while_it_dies() -> Outgoing:
        waiting = asyncio.ensure_future(model.answer(request(content="Tell me a long story.", max_tokens=900)))
        await asyncio.sleep(0.5)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSEGV)
        return await waiting

    said.clear()
    outgoing = run_sync(answered_while_it_dies())
    assert outgoing.status == 502
    assert isinstance(outgoing.body, bytes)
    assert "the local model's process was ended by SIGSEGV" in json.loads(outgoing.body)["error"]["message"]
    assert "7391" in ask(model, request())[1]["choices"][0]["message"]["content"]
    assert said == ["the local model's process was ended by SIGSEGV: starting it again"]


def test_closed_it_leaves_nothing_and_opens_again() -> None:
    small_model()
    model = LocalModel(context=512)

    async def once() -> tuple[int, int | None]:
        await model.open()
        process = model._process
        assert process is not None
        try:
            return (await model.answer(request(max_tokens=1))).status, process.pid
        finally:
            await model.close()
            assert not process.alive

    first, second = run_sync(once()), run_sync(once())
    assert first[0] == second[0] == 200
    assert first[1] != second[1]


def test_without_the_extra_the_mistake_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match=r"ctxbench\[local\]"):
        LocalModel()


def test_a_model_that_cannot_be_loaded(tmp_path: Any) -> None:
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\0" * 100)
    model = LocalModel(str(tmp_path / "broken.gguf"))
    with pytest.raises(UsageError, match=r"cannot serve broken.gguf"):
        run_sync(model.open())
