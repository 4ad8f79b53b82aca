"""A rolling summary over real HTTP: what the model is sent, when, and what is returned."""

from __future__ import annotations

import pytest

from context_bench.errors import BadOutput, RequestFailed
from context_bench.memory.systems.with_model import SummaryMemory
from memory.histories import make_turns
from servers import Server, completion, reply


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_each_batch_is_one_call_that_sees_the_summary_so_far() -> None:
    with Server(completion("Ana lives in Lyon."), completion("Ana lives in Nice.\nBefore: Lyon.")) as server:
        system = SummaryMemory(server.url, "m")
        system.ingest(make_turns("I live in Lyon.", "It rains."))
        system.ingest(make_turns("I moved to Nice."))
        first, second = (each.json["messages"][0]["content"] for each in server.chats)
    assert "(nothing yet)" in first
    assert "[2024-05-01T09:00:00] Ana: I live in Lyon.\n[2024-05-02T09:00:00] Ana: It rains." in first
    assert "Summary so far:\nAna lives in Lyon." in second
    assert system.memories() == ["Ana lives in Nice.\nBefore: Lyon."]
    assert [item["text"] for item in system.retrieve("where?")] == ["Ana lives in Nice.", "Before: Lyon."]
    assert [item["text"] for item in system.retrieve("where?", k=1)] == ["Ana lives in Nice."]


def test_a_long_batch_is_cut_between_turns() -> None:
    with Server(completion("s")) as server:
        SummaryMemory(server.url, "m", batch_tokens=30).ingest(make_turns(*["one two three four five six"] * 5))
        assert len(server.chats) == 5
        SummaryMemory(server.url, "m", batch_tokens=5000).ingest(make_turns(*["one two three four five six"] * 5))
        assert len(server.chats) == 6


def test_the_model_answers_from_the_summary_of_that_user_alone() -> None:
    with Server(completion("secret of A"), completion("Lyon")) as server:
        system = SummaryMemory(server.url, "m")
        system.ingest(make_turns("x"), user="a")
        assert system.query("Where?", user="b") == "Lyon"
        assert "secret" not in server.last["messages"][0]["content"]
        assert "Question: Where?" in server.last["messages"][0]["content"]
        assert system.retrieve("Where?", user="b") == []
    system.reset()
    assert system.memories() == []


def test_nothing_to_ingest_costs_nothing() -> None:
    with Server(completion("s")) as server:
        SummaryMemory(server.url, "m").ingest([])
        assert server.chats == []


def test_a_model_that_fails_is_an_error() -> None:
    with Server(reply(400, {"error": {"message": "no such model"}})) as server, pytest.raises(RequestFailed):
        SummaryMemory(server.url, "m").ingest(make_turns("x"))
    with Server(reply(200, {"hello": 1})) as server, pytest.raises(BadOutput, match="not a chat completion"):
        SummaryMemory(server.url, "m").query("Where?")
