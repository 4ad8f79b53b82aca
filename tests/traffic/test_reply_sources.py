"""Which of several answers of a model came back to the client."""

from __future__ import annotations

from typing import Any

from banks import each_case
from context_bench.traffic.exchanges import find_sources
from context_bench.wire.form import Completion

CALLS = [("get", '{"city":"Oslo","days":2}'), ("stop", "{}")]


def said(text: str, name: str = "", calls: Any = ()) -> Completion:
    return Completion(name, [text], list(calls))


@each_case(
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
