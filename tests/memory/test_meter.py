"""What memory systems ask of models: counted at a real tap, by phase."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from context_bench import Price, Prices, Scripted, evaluate_memory
from context_bench.memory.inspection import PROBE_PREFIX, Meter
from context_bench.results import EvalResult
from context_bench.tap.address import free_port
from context_bench.utils.tokens import count_tokens
from servers import Server, completion, reply
from toy_memories import Remembering, Writing, make_conversations

pytestmark = pytest.mark.filterwarnings("ignore:nothing in conversations could be scored")
"""A script stands in for the model: what it costs is measured here, and no quality."""

PRICES = Prices({"m": Price(input=1.0, output=2.0), "e": Price(input=0.5, output=0.0)})


def run(system: Any, count: int = 1, **options: Any) -> EvalResult:
    given = {"answerer": Scripted.from_text("text:noted"), "model": "m", "embedding_model": "e", "prices": PRICES}
    return evaluate_memory(
        system,
        make_conversations(count),
        **{**given, "progress": False, "budgets": [500], "answers": ["reader"], "quiet": 0.05, **options},
    )


def test_calls_tokens_and_dollars_are_counted_by_phase() -> None:
    result = run(Writing, 2)
    ingest = [row.metadata["memory"]["ingest"]["spent"] for row in result.rows if str(row.example_id).endswith("q0")]
    for number, spent in enumerate(ingest):
        texts = [
            f"[{1 + room // 3} May 2023, 10:00] The code of room{room} is {number}{room}{room}." for room in range(6)
        ]
        tokens = sum(map(count_tokens, texts))
        assert (spent["calls"], spent["embed_calls"], spent["failed"]) == (6, 6, 0)
        assert (spent["prompt_tokens"], spent["completion_tokens"]) == (tokens, 6 * count_tokens("noted"))
        assert spent["embed_tokens"] == tokens
        written = 6 * count_tokens("noted")
        assert spent["usd"] == pytest.approx((tokens * 1.0 + written * 2.0 + tokens * 0.5) / 1e6)
    for row in result.rows:
        query = row.metadata["memory"]["query"]["spent"]
        assert (query["calls"], query["embed_calls"]) == (0, 1)
    values = result.summary["writing[budget=500]"]
    assert values["ingest_calls"] == pytest.approx(1000)  # one for each turn
    assert values["ingest_embed_calls"] == pytest.approx(1000)
    assert values["query_calls"] == 0
    assert values["query_embed_calls"] == 1


def test_an_independent_recorder_counts_the_same() -> None:
    def answer(request: Any) -> Any:
        if request.path.endswith("/embeddings"):
            return reply(200, {"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 7, "total_tokens": 7}})
        return completion("noted")

    from context_bench import Forward

    with Server(answer) as server:
        result = run(Writing, 2, answerer=Forward(server.url))
        seen = [request.path for request in server.requests if request.method == "POST"]
    spent = [
        spent
        for row in result.rows
        for spent in (
            *([row.metadata["memory"]["ingest"]["spent"]] if str(row.example_id).endswith("q0") else []),
            row.metadata["memory"]["query"]["spent"],
        )
    ]
    about = result.config["reports"]["writing[budget=500]"]["memory"]
    again = about["asked_again"]["asked"] + about["inspected"]["asked"]
    assert sum(each["calls"] for each in spent) == seen.count("/v1/chat/completions") == 12
    assert sum(each["embed_calls"] for each in spent) + again == seen.count("/v1/embeddings")
    assert spent[0]["embed_tokens"] == 6 * 7  # as the server says


class Flushing(Writing):
    """Makes one more call when it is told to make everything searchable."""

    name = "flushing"

    def flush(self) -> None:
        self._chat("consolidate")


def test_work_after_ingest_is_background() -> None:
    row = run(Flushing).rows[0]
    facts = row.metadata["memory"]["ingest"]
    assert facts["spent"]["calls"] == 6
    assert facts["background"]["calls"] == 1
    assert facts["searchable_seconds"] >= facts["seconds"]


class Lingering(Writing):
    """Goes on in a thread after `ingest` returned, with a call that takes a second."""

    name = "lingering"
    ended: Sequence[str] = ()

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.turns += turns

        def work() -> None:
            self._chat("slow")
            self.ended = [*self.ended, "background"]

        threading.Thread(target=work).start()
        self._chat("quick")

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        if not question.startswith(PROBE_PREFIX):
            self.ended = [*self.ended, "retrieve"]
        return Remembering.retrieve(self, question, k)


def _answer_slowly(document: dict[str, Any]) -> dict[str, Any]:
    slow = "slow" in json.dumps(document)
    return {"reply": "noted", "delay": 1.0 if slow else 0.0}


def test_questions_wait_for_background_work(tmp_path: Any) -> None:
    rules = tmp_path / "rules.jsonl"
    rules.write_text('{"match": "slow", "reply": "noted", "delay": 1.0}\n{"reply": "noted"}\n')
    systems: list[Lingering] = []

    def make(base_url: str) -> Lingering:
        systems.append(Lingering(base_url))
        return systems[0]

    run(make, answerer=Scripted.from_text(str(rules)), quiet=3.0)
    assert list(systems[0].ended[:3]) == ["background", "background", "retrieve"]


def test_a_call_outside_of_all_phases_is_late() -> None:
    async def work() -> Meter:
        meter = Meter(Scripted.from_text("echo"), free_port())
        await meter.start()
        try:
            async with aiohttp.ClientSession() as session:
                body = {"model": "m", "messages": [{"role": "user", "content": "hello there"}]}
                for phase in ("ingest", "late", "query"):
                    meter.phase = phase
                    async with session.post(f"{meter.url}/chat/completions", json=body) as answered:
                        assert answered.status == 200
                        await answered.read()
            while meter.seconds_since_last_call() == 0:
                await asyncio.sleep(0.01)
        finally:
            await meter.stop()
        return meter

    meter = asyncio.run(work())
    late = meter.read("late")
    assert late is not None
    assert (late.calls, late.prompt_tokens, late.completion_tokens) == (1, 2, 2)
    assert late.usd is None or late.usd == 0.0
    assert meter.take("query").calls == 1
    assert meter.take("query").calls == 0


def test_what_nobody_counted_is_not_measured() -> None:
    result = run(Remembering())
    assert "ingest_calls" in result.notes["remembering[budget=500]"]
    assert (
        result.summary["remembering[budget=500]"]["ingest_calls"]
        != result.summary["remembering[budget=500]"]["ingest_calls"]
    )
    assert result.summary["remembering[budget=500]"]["ingest_seconds"] > 0


def test_a_model_without_a_price_has_no_dollars() -> None:
    result = run(Writing, prices=Prices({"other": Price(1.0, 1.0)}))
    values = result.summary["writing[budget=500]"]
    assert values["ingest_usd"] != values["ingest_usd"]
    assert values["ingest_tokens"] > 0
    assert result.notes["writing[budget=500]"]["ingest_usd"].endswith("no price for m; add one to a file for --prices")


def test_a_system_that_needs_a_model_and_has_none_is_one_sentence() -> None:
    from context_bench import UsageError

    with pytest.raises(UsageError, match="calls a model: pass"):
        run(Writing, answerer=None)
