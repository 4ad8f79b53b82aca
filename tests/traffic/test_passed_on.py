"""What was sent against what was passed on."""

from __future__ import annotations

from context_bench.traffic.passed_on import compare_passed_on


def test_a_context_is_compared_with_what_became_of_it() -> None:
    ((title, (part,)),) = compare_passed_on({"context": "a b c"}, {"context": "a c"})
    assert (title, part.title) == ("", "context")
    assert [(each.kind, each.text) for each in part.segments if each.kind != "kept"] == [("dropped", " b")]


def test_conversations_are_compared_turn_by_turn() -> None:
    turns = [{"role": "user", "content": "one two"}]
    ((_, (part,)),) = compare_passed_on({"turns": turns}, {"turns": [{"role": "user", "content": "one"}]})
    assert part.title == "message 1 of 1: user"


def test_where_there_is_nothing_to_compare_the_title_says_why() -> None:
    assert compare_passed_on({"context": "a"}, None)[0].title == "nothing to compare: no answer is stored"
    assert "returned an answer only" in compare_passed_on({"context": "a"}, {"response": "b"})[0].title
