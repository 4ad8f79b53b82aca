"""Proxies that do not behave: what they did is billed, said in one sentence, and ends in a bounded time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_logs import replay, write_session
from context_bench.replay.arms import ProxyArm, Sent, carries_conversation
from context_bench.replay.packing import SentPacker, SentReader
from context_bench.replay.report import conclude, render
from context_bench.tap.address import free_port
from toy_proxies import Toy, toy_proxy


class Doubles(Toy):
    """Sends each request twice, and returns the second answer."""

    async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
        async with self.ask(request, headers, body) as reply:
            await reply.read()
        return await super().exchange(request, headers, body)


class Streams(Toy):
    """Asks for a stream, and puts its pieces together again."""

    async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
        asked = json.dumps({**json.loads(body), "stream": True}).encode()
        own = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        async with self.ask(request, own, asked) as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            lines = (await reply.text()).splitlines()
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
        pieces = [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta"]
        (call,) = blocks
        message = {"type": "message", "role": "assistant", "content": [{**call, "input": json.loads("".join(pieces))}]}
        return web.json_response({**message, "id": "m", "stop_reason": "tool_use", "usage": {}})


class Hangs(Toy):
    """Answers two requests, and no other."""

    seen = 0

    async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
        Hangs.seen += 1
        if Hangs.seen > 2:
            await asyncio.sleep(60)
        return await super().exchange(request, headers, body)


class ReadsHeaders(Toy):
    """Notes the headers of each request."""

    heard: dict[str, str]

    async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
        ReadsHeaders.heard = {name.lower(): value for name, value in headers.items()}
        return await super().exchange(request, headers, body)


def test_a_request_that_is_sent_twice_is_billed_twice(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 4)
    port = free_port()
    with toy_proxy(Doubles, f"http://127.0.0.1:{port}") as url:
        (outcome,) = replay(tmp_path, ProxyArm("doubles", url, port=port))
    assert outcome.saved_tokens == -1
    first = outcome.turns[0]
    # The second time all of it is read from the cache; the reply of 20 tokens is paid twice.
    once, prompt = first["recorded_dollars"], first["recorded_prompt"]
    assert first["dollars"] == pytest.approx(once + (0.30 * prompt + 15 * 20) / 1e6, rel=0.01)
    assert "doubles sent 4 repeated requests; each is billed" in render([outcome], None)
    assert outcome.broken_turns == 0


def test_a_proxy_that_streams_gets_the_recorded_reply_as_a_stream(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 3)
    port = free_port()
    with toy_proxy(Streams, f"http://127.0.0.1:{port}") as url:
        (outcome,) = replay(tmp_path, ProxyArm("streams", url, port=port))
    assert (outcome.errors, outcome.saved_tokens, outcome.count("changed_reply")) == (0, 0, 0)


def test_a_proxy_that_hangs_is_given_up_after_three_requests(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 40)
    port = free_port()
    Hangs.seen = 0
    with toy_proxy(Hangs, f"http://127.0.0.1:{port}") as url:
        (outcome,) = replay(tmp_path, ProxyArm("hangs", url, port=port, timeout=0.5))
    assert Hangs.seen == 5
    (reason,) = outcome.failed.values()
    assert conclude(outcome).startswith("hangs: not measured (gave up at request 5: ")
    assert "gave up at request 5: no complete reply within 0.5 s, 3 times in a row" in reason


def test_headers_of_the_user_come_before_ours_and_know_the_tap(tmp_path: Path) -> None:
    write_session(tmp_path, 1, 1)
    port = free_port()
    with toy_proxy(ReadsHeaders, f"http://127.0.0.1:{port}") as url:
        headers = {"Authorization": "Bearer mine", "x-upstream": "{tap}/v1"}
        replay(tmp_path, ProxyArm("reads", url, port=port, headers=headers))
    assert ReadsHeaders.heard["authorization"] == "Bearer mine"
    assert ReadsHeaders.heard["x-upstream"] == f"http://127.0.0.1:{port}/v1"
    assert ReadsHeaders.heard["x-claude-code-session-id"].startswith("session-1:")


def test_every_body_that_was_sent_is_packed() -> None:
    recorded = {"model": "m", "messages": [{"role": "user", "content": "one"}]}
    first = {**recorded, "messages": [{"role": "user", "content": "two"}]}
    sent = Sent(first, side_calls=1, repeated=[recorded], error="HTTP 500")
    packer = SentPacker()
    packed = json.loads(json.dumps(packer.pack(recorded, sent)))
    assert SentReader(packer.texts).read(recorded, packed) == sent
    assert SentReader({}).read(recorded, SentPacker().pack(recorded, Sent(None))) == Sent(None)


@pytest.mark.parametrize(
    ("edit", "carries"),
    [
        (lambda turns: turns, True),
        (lambda turns: [*turns[:-1], tool_result("a shorter result")], True),
        (lambda turns: [*turns, user("Summarize this conversation.")], False),
        (lambda turns: [*turns[:-1], user("Summarize this conversation.")], False),
        (lambda turns: turns[:-2], False),
    ],
)
def test_only_a_call_that_ends_as_recorded_gets_the_recorded_reply(
    edit: Callable[[list[Any]], list[Any]], carries: bool
) -> None:
    call = {"type": "tool_use", "id": "t2", "name": "read", "input": {}}
    said = [{"role": "assistant", "content": each} for each in ("Reading.", [call])]
    turns = [user("Fix the bug."), said[0], user("Go on."), said[1], tool_result("a long result")]
    assert carries_conversation({"messages": turns}, {"messages": edit(turns)}) is carries


def test_a_call_before_the_first_request_is_the_proxys_own() -> None:
    assert not carries_conversation({}, {"messages": [user("Are you there?")]})
    assert carries_conversation({"input": []}, {"input": []})  # a recording without any text


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def tool_result(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": text}]}
