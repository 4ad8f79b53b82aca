"""After how many questions a memory has paid for its writing, worked out by hand from the rows."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

from context_bench import Forward, OpenAIProxy, Price, Prices, Scripted, evaluate_memory
from context_bench.memory.findings import find_repayments, price_right_answer
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from servers import Server, completion, reply
from toy_memories import Forgetful, Remembering, Writing, make_conversations

PRICES = Prices({"m": Price(input=2.0, output=8.0, cached_input=0.5), "e": Price(input=0.1, output=0.0)})
CHAT = {"prompt_tokens": 300, "completion_tokens": 10}
EMBEDDED = 20
WRITES = 30
"""Turns of a conversation: `Writing` asks a model and embeds for each."""


def answer(request: Any) -> Any:
    if request.path.endswith("/embeddings"):
        return reply(200, {"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": EMBEDDED}})
    text = json.dumps(request.json)
    asked = re.findall(r"What is the code of (room\d+)\?", text)
    told = re.search(rf"The code of {asked[-1]} is (\d+)", text) if asked else None
    return completion(told[1] if told else "noted", CHAT)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(answer) as server:
        yield server


def run(system: Any, **options: Any) -> EvalResult:
    given = {"budgets": [30], "answers": ["reader"], "quiet": 0.05, "model": "m", "embedding_model": "e"}
    return evaluate_memory(
        ["naive", system], make_conversations(4, rooms=WRITES), **{**given, "progress": False, "margin": 0.9, **options}
    )


def average(result: EvalResult, system: str, read: Any) -> float:
    rows = [row for row in result.rows if row.system == system]
    return float(sum(map(read, rows)) / len(rows))


def test_in_tokens_where_the_reader_has_no_price(server: Server) -> None:
    result = run(Writing, answerer=Forward(server.url))
    name = "writing[budget=30]"
    assert result.comparison is not None
    assert {each.name: each.word for each in result.comparison.verdicts}[name] in ("equivalent", "not worse", "better")
    history = average(result, "naive", lambda row: row.upstream_tokens)
    wrote = average(result, "naive", lambda row: row.metadata["response_tokens"])
    cost = EMBEDDED + average(result, name, lambda row: row.upstream_tokens + row.metadata["response_tokens"])
    written = WRITES * (300 + 10 + EMBEDDED)
    found = find_repayments(result)[name]
    assert found.unit == "tokens"
    assert found.cold == pytest.approx(written / (1.25 * history + wrote - cost))
    saved = 0.1 * history + wrote - cost
    assert found.warm == pytest.approx(written / saved) if saved > 0 else math.isinf(found.warm)


def test_in_dollars_at_the_reader_s_prices(server: Server) -> None:
    reader = OpenAIProxy(server.url, model="m", name="reader")
    result = run(Writing, answerer=Forward(server.url), reader=reader, prices=PRICES)
    name = "writing[budget=30]"
    found = find_repayments(result)[name]
    # A write: 300 tokens at $2 and 10 at $8 a million, 20 embedded at $0.1. A question: one embedding and the reader.
    writing = WRITES * (300 * 2.0 + 10 * 8.0 + EMBEDDED * 0.1) / 1e6
    asking = (EMBEDDED * 0.1 + 300 * 2.0 + 10 * 8.0) / 1e6
    history = average(result, "naive", lambda row: row.upstream_tokens)
    wrote = average(result, "naive", lambda row: row.metadata["response_tokens"]) * 8.0 / 1e6
    assert found.unit == "dollars"
    # Read from the cache at $0.5 of $2; to write to it costs no more than plain input.
    for value, share in ((found.warm, 0.25), (found.cold, 1.0)):
        saved = history * share * 2.0 / 1e6 + wrote - asking
        assert value == pytest.approx(writing / saved) if saved > 0 else math.isinf(value)
    right = sum(row.scores["score"] >= 0.7 for row in result.rows if row.system == name)
    spent = 4 * writing + 4 * WRITES * asking
    assert price_right_answer(result, name) == pytest.approx(spent / right) if right else math.inf
    assert "$ / right answer" in TableReporter(wide=True).render(result)


def test_what_costs_nothing_to_write_may_still_never_pay() -> None:
    # Read from a warm cache the history costs a tenth; 200 tokens of what was found cost more than that.
    result = run("bm25", budgets=[200])
    found = find_repayments(result)["bm25[budget=200]"]
    full, memory = (average(result, name, lambda row: row.upstream_tokens) for name in ("naive", "bm25[budget=200]"))
    assert 0.1 * full < memory < 1.25 * full
    assert (found.warm, found.cold) == (math.inf, 0.0)


def test_nothing_is_claimed_for_one_that_is_worse_or_undecided() -> None:
    result = run(Forgetful, margin=0.02)
    assert find_repayments(result)["forgetful[budget=30]"].reason.startswith("not claimed (")
    assert "not claimed" in TableReporter(wide=True).render(result)


@pytest.mark.filterwarnings("ignore:nothing in conversations could be scored")
def test_nothing_is_claimed_where_a_script_stood_in_for_the_model() -> None:
    result = run(Writing, answerer=Scripted.from_text("text:noted"))
    assert "writing[budget=30]" not in find_repayments(result)


def test_what_was_not_counted_is_not_repaid() -> None:
    assert find_repayments(run(Remembering()))["remembering[budget=30]"].reason == "not measured"
