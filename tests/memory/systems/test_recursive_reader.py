"""A model that queries the history through tools, over real HTTP: tools, helpers, limits, mistakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench.memory.systems.with_model import RecursiveMemory
from memory.histories import make_turns
from servers import Reply, Server, completion

TURNS = make_turns("I live in Lyon.", "It rains.", "My cat is called Miso.", "I moved to Nice.")


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def _call(name: str, **arguments: Any) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return completion("", tool_calls=[{"id": "call-1", "type": "function", "function": function}])


def _make(server: Server, **settings: Any) -> RecursiveMemory:
    system = RecursiveMemory(server.url, "m", **settings)
    system.ingest(TURNS)
    return system


def test_the_model_searches_reads_and_answers() -> None:
    with Server(_call("search", text="cat"), _call("read", first=3, last=9), completion("Miso")) as server:
        assert _make(server).query("What is my cat called?") == "Miso"
        messages = server.last["messages"]
    assert "4 turns, numbered from 1 to 4" in " ".join(messages[0]["content"].split())
    assert messages[3]["content"] == "3. [2024-05-03T09:00:00] Ana: My cat is called Miso."
    assert messages[5]["content"].splitlines()[1] == "4. [2024-05-04T09:00:00] Ana: I moved to Nice."
    assert messages[5]["tool_call_id"] == "call-1"


def test_the_turns_that_it_looked_at_are_what_it_retrieved_last_one_first() -> None:
    with Server(_call("read", first=1, last=2), _call("search", text="lyon"), completion("Nice")) as server:
        found = _make(server).retrieve("Where do I live?")
    assert [item["ids"] for item in found] == [["s1:1"], ["s1:2"]]
    assert found[0]["score"] > found[1]["score"]


def test_a_helper_answers_about_its_range_with_tools_of_its_own() -> None:
    script = (_call("ask", first=2, last=3, question="Which pet?"), _call("search", text="lyon"), completion("a cat"))
    with Server(*script, completion("It is a cat.")) as server:
        assert _make(server).query("Which pet do I have?") == "It is a cat."
        chats = [each.json for each in server.chats]
    helper = chats[1]["messages"]
    assert "2 turns, numbered from 2 to 3" in " ".join(helper[0]["content"].split())
    assert [tool["function"]["name"] for tool in chats[1]["tools"]] == ["search", "read"]  # no helper of a helper
    assert chats[2]["messages"][-1]["content"] == "nothing found"  # turn 1 is out of its range
    assert chats[3]["messages"][-1]["content"] == "a cat"


def test_the_last_request_has_no_tools_so_that_it_must_answer() -> None:
    with Server(_call("search", text="cat")) as server:
        assert _make(server, max_steps=3).query("?") == ""
        assert ["tools" in each.json for each in server.chats] == [True, True, False]


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (_call("search"), "this call cannot be read: KeyError"),
        (_call("read", first="x", last=2), "this call cannot be read: ValueError"),
        (_call("read", first=9, last=12), "no such turns"),
        (_call("delete", first=1, last=2), "there is no tool 'delete'"),
        (completion("", tool_calls=[{"id": "1", "function": {"name": "read", "arguments": "{"}}]), "cannot be read"),
    ],
)
def test_a_wrong_call_is_told_to_the_model(reply: Reply, told: str) -> None:
    with Server(reply, completion("done")) as server:
        assert _make(server).query("?") == "done"
        assert told in server.last["messages"][-1]["content"]


def test_writing_asks_no_model_and_users_are_kept_apart() -> None:
    with Server(_call("search", text="cat"), completion("nothing")) as server:
        system = _make(server)
        assert server.chats == []
        assert system.retrieve("cat?", user="b") == []
    assert len(system.memories()) == 4
    system.reset()
    assert system.memories() == []
