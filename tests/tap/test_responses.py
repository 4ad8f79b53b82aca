"""The Responses API behind a tap: runs, stored conversations, what is not counted, and what the API itself edits."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from context_bench import EvalResult, evaluate
from context_bench.evaluators import AnswerQuality, EvidenceSurvival
from context_bench.output.notes import list_tap_notes
from context_bench.systems.chat import build_proxy
from context_bench.tap.answering import Incoming
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from context_bench.tap.services import Conversations
from context_bench.tap.system import Tapped
from context_bench.traffic.passed_on import compare_passed_on
from context_bench.utils.tokens import count_tokens
from context_bench.wire.forms import read_completion
from servers import free_port
from toy_proxies import Toy, toy_proxy

FACT = "The harbour of Osmo opened in 1871."
FILLER = " ".join(f"Note {number}: hall {number} was counted before noon." for number in range(60))
ASKED = {"question": "When did the harbour of Osmo open?", "answer": "1871", "evidence": [FACT]}
DATA: list[dict[str, Any]] = [
    {"id": "early", "context": f"{FACT} {FILLER}", **ASKED},
    {"id": "late", "context": f"{FILLER} {FACT}", **ASKED},
]


class Halves(Toy):
    """Keeps the first half of the instructions, which hold the context."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = json.loads(body)
        document["instructions"] = document["instructions"][: len(document["instructions"]) // 2]
        return await super().exchange(request, headers, json.dumps(document).encode())


class Chains(Toy):
    """Sends what is new alone, and lets the server remember the rest; marks are lost on the way."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.last: tuple[str, int] | None = None

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = json.loads(body)
        known = len(document["input"])
        document["store"] = True
        if self.last:
            identity, sent = self.last
            document |= {"previous_response_id": identity, "input": document["input"][sent + 1 :]}
        async with self.ask(request, headers, json.dumps(document).encode()) as reply:
            found = read_completion(await reply.text())
            assert found is not None
            self.last = found.id, known
            return web.Response(status=reply.status, body=await reply.read(), headers={"Content-Type": "text/plain"})


class Strays(Toy):
    """Asks a service that the tap knows nothing of, too."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        async with self.session.post(f"{self.upstream}/v1/oracle", json={"riddle": "what walks?"}) as reply:
            assert reply.status == 200
        return await super().exchange(request, headers, body)


class KnowsAll(Scripted):
    """Answers everywhere, as a server that is forwarded to may."""

    async def answer(self, request: Incoming) -> Any:
        odd = request.form is None
        return await super().answer(Incoming("GET", "/v1/models", "", {}, b"") if odd else request)


def run(
    kind: type[Toy], data: list[dict[str, Any]] = DATA, answerer: Scripted | None = None, **more: Any
) -> EvalResult:
    port = free_port()
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        proxy = build_proxy("responses", url, name="toy", **more)
        system = Tapped(proxy, answerer or Scripted.from_text("extract"), port=port)
        return evaluate(system, data, [AnswerQuality(), EvidenceSurvival()], progress=False, max_workers=1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_through_a_proxy(stream: bool) -> None:
    passed, halved = run(Toy, stream=stream), run(Halves, stream=stream)
    assert [row.error for row in (*passed.rows, *halved.rows)] == [None] * 4
    for row, example in zip(passed.rows, DATA):
        facts = row.metadata
        assert "1871" in row.response
        assert facts["finish_reason"] == "completed"
        read = sum(map(count_tokens, (example["context"], example["question"])))
        assert row.upstream_tokens == facts["sent_tokens"] == facts["prompt_tokens"] == read
        assert facts["billed_prompt_tokens"] == read
        assert (facts["untouched"], facts["written_tokens"]) == (True, count_tokens(row.response))
        assert ("time_to_first_token" in facts, "first_token_overhead" in facts) == (stream, stream)
    assert passed.summary["toy"]["prompt_savings"] == pytest.approx(0.0)
    assert 0.4 < halved.summary["toy"]["prompt_savings"] < 0.6
    assert [row.scores["evidence_survived"] for row in halved.rows] == [1.0, 0.0]


TURNS = [{"role": "user", "content": f"Question {number} about the harbour?"} for number in range(3)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_proxy_that_lets_the_server_remember_saves_nothing(stream: bool) -> None:
    talk: list[dict[str, Any]] = [{"id": "talk", "context": "", "turns": TURNS}]
    (row,) = run(Chains, talk, Scripted.from_text("text:It was 1871, they say."), stream=stream).rows
    assert row.error is None
    facts = row.metadata
    question, said = count_tokens(TURNS[0]["content"]), count_tokens("It was 1871, they say.")
    # Three requests: one question; two and a reply; three and two replies.
    assert facts["sent_tokens"] == row.upstream_tokens == 6 * question + 3 * said
    assert facts["billed_prompt_tokens"] == 6 * question + 3 * said
    assert (facts["untouched"], facts["prefix_stability"]) == (True, 1.0)


def test_a_path_that_cannot_be_counted_is_told() -> None:
    answerer = KnowsAll(lambda _: Scripted.from_text("text:x")._script({}), "x")  # type: ignore[arg-type]
    result = run(Strays, DATA, answerer)
    told = "toy: 2 calls to /v1/oracle were not counted: the tap cannot read the prompts of such calls."
    assert told in list_tap_notes(result)


class Names(Toy):
    """Continues a conversation that only the server knows."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        return await super().exchange(request, headers, json.dumps(json.loads(body) | {"conversation": "c"}).encode())


class Remembers(Scripted):
    """Answers whatever conversation a request names."""

    async def answer(self, request: Incoming) -> Any:
        return await super().answer(replace(request, body=request.body.replace(b'"conversation"', b'"metadata_"')))


def test_a_prompt_that_only_the_server_knows_is_told_and_billed_by_its_usage() -> None:
    answerer = Remembers(lambda _: Scripted.from_text("text:x")._script({}), "x")  # type: ignore[arg-type]
    result = run(Names, DATA, answerer)
    why = "without the rows of 2 calls to /v1/responses, whose prompt cannot be counted"
    assert result.notes["toy"]["prompt_savings"] == why
    for row, example in zip(result.rows, DATA):
        assert row.upstream_tokens is None
        read = sum(map(count_tokens, (example["context"], example["question"])))
        assert row.metadata["billed_prompt_tokens"] == read


def test_encrypted_items_are_counted_as_items() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"},
    ]
    question = {"role": "user", "content": "When?"}
    result = run(Toy, DATA[:1], extra_body={"input": [*items, question]})
    assert result.rows[0].metadata["opaque_items"] == 2
    assert result.rows[0].upstream_tokens == count_tokens(DATA[0]["context"]) + count_tokens("When?")


class Compacts(Toy):
    """Replaces the context by an encrypted item."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = json.loads(body) | {"instructions": ""}
        document["input"].insert(0, {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"})
        return await super().exchange(request, headers, json.dumps(document).encode())


def test_what_an_encrypted_item_holds_is_not_said_to_be_lost_nor_saved() -> None:
    result = run(Compacts, DATA[:1])
    (row,) = result.rows
    assert "evidence_survived" not in row.scores
    assert row.unscored["evidence-survival"] == "a lost span may be in an encrypted or stored item that the model read"
    assert result.notes["toy"]["prompt_savings"] == "without 1 encrypted or stored item that a model read"


def test_a_web_socket_is_refused_with_a_reason() -> None:
    async def ask() -> tuple[int, str]:
        tap = Tap(Scripted.from_text("echo"))
        await tap.start()
        try:
            async with aiohttp.ClientSession() as session:
                upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
                async with session.get(f"{tap.url}/v1/realtime", headers=upgrade) as reply:
                    return reply.status, await reply.text()
        finally:
            await tap.stop()

    with pytest.warns(UserWarning, match="does not support WebSockets"):
        status, text = asyncio.run(ask())
    assert status == 426
    assert "ask /v1/realtime by plain HTTP" in text


def test_diff_shows_what_the_api_edited() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "Go on."}]})
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000}
    reply = json.dumps({"content": [], "context_management": {"applied_edits": [edit]}})
    call = {"path": "/v1/messages", "body": body, "status": 200, "reply": reply}
    ((_, parts),) = compare_passed_on({}, {"tapped": [{"sent": body, "calls": [call]}]})
    (segment,) = parts[-1].segments
    assert parts[-1].title == "edited by the API before the model read it"
    assert segment.new == "type: clear_tool_uses_20250919, cleared_tool_uses: 8, cleared_input_tokens: 50000"
    chained = {**call, "path": "/v1/responses", "body": '{"previous_response_id": "resp_0", "input": "x"}'}
    ((title, parts),) = compare_passed_on({}, {"tapped": [{"sent": body, "calls": [chained]}]})
    assert (parts, title.endswith("/v1/responses continues a reply that the tap did not see")) == ([], True)


def test_the_oldest_conversations_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_bench.tap.services.MAX_STORED_CHARS", 1000)
    known = Conversations()
    for number in range(30):
        known.store({"input": "x" * 100}, {"id": f"resp_{number}", "output": []})
    kept = [number for number in range(30) if known.find(f"resp_{number}")]
    assert kept == list(range(kept[0], 30))
    assert 5 < len(kept) < 10
    known.store({"input": "x" * 2000}, {"id": "resp_large", "output": []})
    assert known.find("resp_large") is None
    assert known.find("resp_29") is not None
