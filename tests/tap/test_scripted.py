from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from context_bench.errors import UsageError
from context_bench.store.fingerprints import fingerprint_of
from context_bench.systems import OpenAIProxy
from context_bench.tap.answering import Answerer, Incoming, Outgoing
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from context_bench.tap.system import Tapped
from context_bench.utils.tokens import set_tokenizer

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


def request(text: str = "Hello", path: str = CHAT, method: str = "POST", **fields: Any) -> Incoming:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **fields}
    return Incoming(method, path, "", {}, json.dumps(body).encode())


def answered(script: Scripted, asked: Incoming) -> tuple[int, Any]:
    reply = asyncio.run(script.answer(asked))
    assert isinstance(reply.body, bytes)
    return reply.status, json.loads(reply.body)


def said(script: Scripted, asked: Incoming) -> str:
    status, document = answered(script, asked)
    assert status == 200
    if asked.path == MESSAGES:
        return "".join(block["text"] for block in document["content"])
    return str(document["choices"][0]["message"]["content"])


@pytest.fixture
def rules(tmp_path: Path) -> Callable[..., Scripted]:
    def write(*lines: Any, name: str = "rules.jsonl") -> Scripted:
        path = tmp_path / name
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        return Scripted.from_text(str(path))

    return write


def test_a_script_is_an_answerer() -> None:
    answerer: Answerer = Scripted.from_text("echo")
    assert isinstance(answerer.fingerprint, str)
    asyncio.run(answerer.open())
    asyncio.run(answerer.close())


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_echo_says_what_the_user_said_last(path: str) -> None:
    echo = Scripted.from_text("echo")
    assert said(echo, request("Grüße 👋", path)) == "Grüße 👋"
    parts = [
        {"role": "user", "content": [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "four"}]},
    ]
    assert said(echo, request(path=path, messages=parts)) == "one two"


def test_extract_answers_from_the_prompt() -> None:
    messages = [
        {"role": "system", "content": "The mill is red. The barn is blue."},
        {"role": "user", "content": "What colour is the barn?"},
    ]
    assert said(Scripted.from_text("extract"), request(messages=messages)) == "blue"


def test_a_fixed_text_may_hold_anything() -> None:
    assert said(Scripted.from_text("text:a: b, c.jsonl"), request()) == "a: b, c.jsonl"


def test_models_are_listed_and_tokens_counted() -> None:
    script = Scripted.from_text("echo")
    status, document = answered(script, request(path="/v1/models", method="GET"))
    assert (status, document["data"][0]["id"]) == (200, "scripted")
    assert answered(script, request("Hello there", "/v1/messages/count_tokens")) == (200, {"input_tokens": 2})


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (request(path="/v1/rerank"), 404),
        (request(method="GET"), 404),
        (Incoming("POST", CHAT, "", {}, b"no json"), 400),
        (Incoming("POST", MESSAGES, "", {}, b'{"model": "m"}'), 400),
    ],
)
def test_what_is_no_request_to_a_model_is_an_error(asked: Incoming, status: int) -> None:
    assert answered(Scripted.from_text("echo"), asked)[0] == status


def test_the_first_rule_that_fits_answers(rules: Callable[..., Scripted]) -> None:
    script = rules(
        {"match": "capital of (France|Norway)", "reply": "a city"}, "", {"match": "(?i)HELLO", "reply": "hi"}
    )
    assert said(script, request("The capital of Norway?")) == "a city"
    assert said(script, request("oh, hello")) == "hi"
    status, document = answered(script, request("bye"))
    assert status == 404
    assert "none of the 2 rules" in document["error"]["message"]


def test_a_rule_serves_so_many_times(rules: Callable[..., Scripted]) -> None:
    script = rules(
        {"times": 2, "status": 429, "error": "slow down", "headers": {"Retry-After": 1}},
        {"reply": "welcome"},
    )
    for _ in range(2):
        reply = asyncio.run(script.answer(request()))
        assert (reply.status, reply.headers["Retry-After"]) == (429, "1")
    assert said(script, request()) == "welcome"


def test_rules_may_call_tools_and_set_everything(rules: Callable[..., Scripted]) -> None:
    rule = {
        "tool_calls": [
            {"name": "look_up", "arguments": {"city": "Malmö"}},
            {"id": "own", "type": "function", "function": {"name": "stop", "arguments": "{ }"}},
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        "finish": "length",
        "extra": {"x": 1},
    }
    _, document = answered(rules([rule], name="rules.json"), request())
    calls = document["choices"][0]["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [
        ("call_1", '{"city": "Malmö"}'),
        ("own", "{ }"),
    ]
    assert document["choices"][0]["finish_reason"] == "length"
    assert (document["usage"]["total_tokens"], document["x"]) == (10, 1)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"reply": "x"', "line 2: is not JSON"),
        ("[1]", "line 2: it must be an object (got list)"),
        ({"mach": "x", "reply": "y"}, "line 2: unknown key 'mach'"),
        ({"match": "(", "reply": "y"}, "line 2: match is not a regular expression"),
        ({"match": "x"}, "line 2: is empty"),
        ({"reply": 5}, "line 2: reply must be a text (got 5)"),
        ({"status": 99}, "line 2: status must be from 200 to 599 (got 99)"),
        ({"status": True}, "line 2: status must be a whole number (got true)"),
        ({"reply": "x", "times": 0}, "line 2: times must be an integer of at least 1 (got 0)"),
        ({"reply": "x", "delay": -1}, "line 2: delay must be from 0 to 3600 seconds"),
        ({"reply": "xy", "chunks": ["x"]}, "line 2: the joined chunks differ from the reply"),
        ({"chunks": [1]}, "line 2: chunks must be a list of texts"),
        ({"tool_calls": [{"arguments": {}}]}, "line 2: a tool call must have a name"),
        ({"tool_calls": [{"name": "f", "arguments": "{"}]}, "line 2: the arguments of f are not JSON"),
        ({"reply": "x", "usage": {"tokens": 1}}, "line 2: usage must have prompt_tokens"),
    ],
)
def test_a_wrong_rule_is_named_by_file_and_line(rules: Callable[..., Scripted], line: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        rules({"reply": "fine"}, line)
    assert problem in str(caught.value)
    assert "rules.jsonl, " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ecko", "is not a script"),
        ("missing.jsonl", "No such file"),
        ("missing.py:f", "no such file"),
        ("json:nothing", "has no 'nothing'"),
        ("string:digits", "is not a function"),
    ],
)
def test_what_is_no_script_is_said_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        Scripted.from_text(text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    for name, content in (("a.jsonl", b"\n"), ("b.json", b"[]"), ("c.jsonl", b"\xff\xfe")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UsageError, match=r"has no rules|is not UTF-8"):
            Scripted.from_text(str(tmp_path / name))


def test_a_function_answers_with_a_text_or_like_a_rule(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text(
        "def loud(document):\n    return document['messages'][-1]['content'].upper()\n"
        "async def strict(document):\n    return {'status': 418, 'error': 'a teapot'}\n"
        "def broken(document):\n    return 1 / 0\n"
        "def odd(document):\n    return 5\n"
    )
    assert said(Scripted.from_text(f"{file}:loud"), request()) == "HELLO"
    assert answered(Scripted.from_text(f"{file}:strict"), request())[0] == 418
    for name, problem in (("broken", "ZeroDivisionError"), ("odd", "it must be an object (got int)")):
        status, document = answered(Scripted.from_text(f"{file}:{name}"), request())
        assert status == 500
        assert problem in document["error"]["message"]


def test_the_fingerprint_follows_the_content(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    first.write_text('{"reply": "x"}')
    second.write_text('{"reply": "x"}')
    third.write_text('{"reply": "y"}')
    prints = [Scripted.from_text(str(path)).fingerprint for path in (first, second, third)]
    assert prints[0] == prints[1] != prints[2]
    assert Scripted.from_text("text:a").fingerprint != Scripted.from_text("text:b").fingerprint


def test_a_delay_comes_before_everything(rules: Callable[..., Scripted]) -> None:
    script = rules({"reply": "late", "delay": 0.15})
    started = time.perf_counter()
    assert said(script, request()) == "late"
    assert time.perf_counter() - started >= 0.15


@pytest.mark.parametrize(("path", "end"), [(CHAT, "[DONE]"), (MESSAGES, "message_stop")])
def test_over_real_http_a_stream_is_paced_and_ends(rules: Callable[..., Scripted], path: str, end: str) -> None:
    script = rules({"chunks": ["one ", "two ", "three"], "pause": 0.03})

    async def run() -> tuple[str, list[float]]:
        tap = Tap(script)
        await tap.start()
        moments = []
        try:
            async with aiohttp.ClientSession() as session:
                asked = request(path=path, stream=True)
                async with session.post(tap.url + path, data=asked.body) as reply:
                    assert reply.headers["content-type"].startswith("text/event-stream")
                    pieces = []
                    async for piece in reply.content.iter_any():
                        pieces.append(piece)
                        moments.append(time.perf_counter())
                    return b"".join(pieces).decode(), moments
        finally:
            await tap.stop()

    text, moments = asyncio.run(run())
    assert text.index("one ") < text.index("two ") < text.index("three") < text.index(end)
    assert moments[-1] - moments[0] > 0.05


def test_outgoing_headers_are_those_of_the_rule(rules: Callable[..., Scripted]) -> None:
    reply: Outgoing = asyncio.run(rules({"reply": "x", "headers": {"X-Own": "1"}}).answer(request()))
    assert reply.headers["X-Own"] == "1"


def write_script(folder: Path, factor: int) -> str:
    """A script whose answer depends on another file beside it."""
    (folder / "own_rules.py").write_text(f"FACTOR = {factor}\ndef decide(body):\n    return str(FACTOR)\n")
    script = folder / "script.py"
    script.write_text("from own_rules import decide\n\ndef answer(body):\n    return decide(body)\n")
    return f"{script}:answer"


def test_the_fingerprint_follows_a_function_into_other_modules(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1].rpartition('/')[0])\n"
        "from context_bench.tap.scripted import Scripted\n"
        "print(Scripted.from_text(sys.argv[1]).fingerprint)"
    )
    prints = []
    for factor in (1, 1, 2):
        command = [sys.executable, "-B", "-c", code, write_script(tmp_path, factor)]
        prints.append(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    assert prints[0] == prints[1]
    assert prints[0] != prints[2]
    assert b"None\n" not in prints


def test_a_script_that_cannot_be_followed_has_no_fingerprint_and_its_answers_are_not_used_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import threading\nlock = threading.Lock()\ndef answer(body):\n    with lock:\n        return 'x'\n"
    )
    answerer = Scripted.from_text(f"{script}:answer")
    assert answerer.fingerprint is None
    tapped = Tapped(OpenAIProxy("http://127.0.0.1:1"), answerer)
    assert tapped.fingerprint is None
    assert fingerprint_of(tapped) is None
    assert tapped.report(len)["answered_by"] == "a script whose code cannot be followed"


def test_counting_a_long_prompt_leaves_the_event_loop_free() -> None:
    def count(text: str) -> int:
        time.sleep(1.0 if len(text) > 100_000 else 0.0)
        return len(text)

    async def answer() -> tuple[int, int]:
        turns = 0
        long = asyncio.create_task(Scripted.from_text("text:ok").answer(request("word " * 100_000)))
        while not long.done():
            await asyncio.sleep(0.01)
            turns += 1
        body = (await long).body
        assert isinstance(body, bytes)
        return json.loads(body)["usage"]["prompt_tokens"], turns

    set_tokenizer(count)
    try:
        tokens, turns = asyncio.run(answer())
    finally:
        set_tokenizer(None)
    assert tokens == 500_000
    assert turns > 10  # a loop that is held up has one or two in that second


def test_extracting_from_a_long_prompt_leaves_the_event_loop_free() -> None:
    fact = "The secret harbour of Ada is called Portrose. "
    filler = " ".join(f"Note {number}: the clerk counted boxes in hall {number}." for number in range(40_000))
    long = request(messages=[{"role": "user", "content": f"{filler} {fact} What is the harbour of Ada called?"}])
    assert len(long.body) > 1_000_000
    script, held = Scripted.from_text("extract"), 0.0

    async def answer() -> str:
        nonlocal held
        task = asyncio.create_task(script.answer(long))
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0)
            held = max(held, time.thread_time() - before)
        body = (await task).body
        assert isinstance(body, bytes)
        return str(json.loads(body)["choices"][0]["message"]["content"])

    started = time.process_time()
    assert "Portrose" in asyncio.run(answer())
    assert held < (time.process_time() - started) / 3, "the thread of the loop did the work itself"
