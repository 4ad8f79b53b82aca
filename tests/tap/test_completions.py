"""What a model answered, read from replies of both APIs, and which of several answers came back to the client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench.tap.answering import Dialect
from context_bench.tap.completions import Completion, find_sources, read_completion
from context_bench.tap.event_streams import events
from context_bench.tap.replies import Answer, ToolCall, reply_to

ANSWER = Answer("Oslo is sunny.", [ToolCall("c1", "get", '{"city": "Oslo", "days": 2}'), ToolCall("c2", "stop")])
CALLS = [("get", '{"city":"Oslo","days":2}'), ("stop", "{}")]


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
@pytest.mark.parametrize("streamed", [False, True])
def test_id_texts_and_calls_of_both_apis(dialect: Dialect, streamed: bool) -> None:
    reply = reply_to(ANSWER, {"model": "m"}, dialect)
    document = reply.document()
    text = b"".join(events(reply)).decode() if streamed else json.dumps(document)
    read = read_completion(text)
    assert read == Completion(document["id"], ["Oslo is sunny."], CALLS)
    assert read is not None
    assert read.tokens(words) == 3 + 1 + 1


def test_several_choices_were_all_written() -> None:
    reply = reply_to(Answer("one two", choices=["three"]), {}, "openai")
    for text in (json.dumps(reply.document()), b"".join(events(reply)).decode()):
        read = read_completion(text)
        assert read is not None
        assert (read.texts, read.text, read.tokens(words)) == (["one two", "three"], "one two", 3)


def test_a_stream_that_was_cut_says_what_it_said() -> None:
    text = b"".join(events(reply_to(Answer("one two three four"), {}, "openai"))).decode()
    read = read_completion(text[: text.index("three") + 3])
    assert read is not None
    assert read.text.startswith("one two")


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "{}", '{"error": {}}', '{"choices": [1, null]}', "data: 5\n\n", 'data: {"choices": [7]}\n\n'],
)
def test_what_is_no_completion(text: str) -> None:
    assert read_completion(text) is None


def test_a_record_is_read_back() -> None:
    completion = Completion("x", ["one", "two"], CALLS)
    record = json.loads(json.dumps(completion.as_dict()))
    assert Completion.from_dict(record) == Completion("x", ["one"], CALLS)
    assert len(Completion("x", ["a" * 10**6]).as_dict()["text"]) == 100_000


def said(text: str, name: str = "", calls: Any = ()) -> Completion:
    return Completion(name, [text], list(calls))


@pytest.mark.parametrize(
    ("returned", "replies", "found"),
    [
        # the id and the text
        (said("Rome", "1"), [said("Rome", "1"), said("Yes", "2")], ([0], False)),
        (said("Rome", "2"), [said("Rome", "1"), said("Rome", "2")], ([1], False)),
        # the text, where the proxy gives ids of its own
        (said("Rome", "9"), [said("Rome", "1"), said("Yes", "2")], ([0], False)),
        (said("  Rome\n", "9"), [said("Rome", "1"), said("Yes", "2")], ([0], False)),
        (said("Rome", "9"), [said("Rome", "1"), said("Rome", "2")], ([0, 1], False)),  # either
        # the calls of tools
        (said("", "9", CALLS), [said("Yes", "1"), said("", "2", CALLS)], ([1], False)),
        (said("", "9", CALLS[:1]), [said("", "1", CALLS[1:]), said("", "2", CALLS[:1])], ([1], False)),
        # the id, where the text was changed
        (said("ROME", "1"), [said("Rome", "1"), said("Yes", "2")], ([0], False)),
        (said("", "1", [("get", "broken")]), [said("", "1", CALLS[:1]), said("x", "2")], ([0], False)),
        # parts that were joined, under one of their ids or another
        (said("Rome\n\nParis", "1"), [said("Rome", "1"), said("Paris", "2"), said("Yes", "3")], ([0, 1], True)),
        (said("1. Rome 2. Paris", "9"), [said("Paris", "1"), said("Rome", "2")], ([0, 1], True)),
        (said("", "9", CALLS), [said("", "1", CALLS[:1]), said("", "2", CALLS[1:])], ([0, 1], True)),
        # something was added, or taken away
        (said("Rome [by proxy]", "9"), [said("Rome", "1"), said("Yes", "2")], ([0], False)),
        (said("Rome", "9"), [said("I think: Rome", "1"), said("Yes", "2")], ([0], False)),
        # a short answer within a word, or within another answer, is not a part
        (said("I do not know.", "9"), [said("I do not know.", "1"), said("no", "2")], ([0], False)),
        (said("not at all", "9"), [said("no", "1"), said("all", "2")], ([1], False)),
        (said("yes or no, he said", "9"), [said("yes or no", "1"), said("no", "2")], ([0], False)),
        # nothing tells
        (said("Something else", "9"), [said("Rome", "1"), said("Yes", "2")], ([], False)),
        (said("Rome", "1"), [None, None], ([], False)),
    ],
)
def test_which_answers_came_back(returned: Completion, replies: list[Any], found: tuple[list[int], bool]) -> None:
    assert find_sources(returned, replies) == found
