"""Diffs: what was kept, dropped, added and changed adds up to both texts, and the evidence is marked."""

from __future__ import annotations

import json
import random
import time
from itertools import pairwise
from typing import Any

import pytest

from banks import each_case
from context_bench.traffic.calls import Call
from context_bench.traffic.exchanges import Exchange
from context_bench.traffic.passed_on import diff_prompts
from context_bench.traffic.text_diff import Segment, diff_texts, mark_evidence
from context_bench.wire.prompts import Prompt


def _diff(before: str, after: str) -> list[tuple[str, str, str]]:
    segments = diff_texts(before, after)
    _adds_up(segments, before, after)
    return [segment[:3] for segment in segments]


def _adds_up(segments: list[Segment], before: str, after: str) -> None:
    assert "".join(segment.text for segment in segments) == before
    assert "".join(segment.new for segment in segments) == after
    for kind, text, new, _ in segments:
        assert kind == ("kept" if text == new else "changed" if text and new else "dropped" if text else "added")


@pytest.mark.parametrize(
    ("before", "after", "segments"),
    [
        ("", "", []),
        ("same", "same", [("kept", "same", "same")]),
        ("gone", "", [("dropped", "gone", "")]),
        ("", "new", [("added", "", "new")]),
        ("1\n2\n3\n", "1\n3\n", [("kept", "1\n", "1\n"), ("dropped", "2\n", ""), ("kept", "3\n", "3\n")]),
        ("the big cat", "the cat", [("kept", "the", "the"), ("dropped", " big", ""), ("kept", " cat", " cat")]),
        ("the big cat", "the old cat", [("kept", "the", "the"), ("changed", " big", " old"), ("kept", " cat", " cat")]),
        ("a  b", "a b", [("kept", "a ", "a "), ("dropped", " ", ""), ("kept", "b", "b")]),
        ("x, y", "a, b", [("changed", "x, y", "a, b")]),
    ],
)
def test_by_hand(before: str, after: str, segments: list[tuple[str, str, str]]) -> None:
    assert _diff(before, after) == segments


@each_case("seed", range(30))
def test_the_segments_always_add_up(seed: int) -> None:
    rng = random.Random(seed)
    alphabet = ["a", "bb", " ", "  ", "\n", "\r\n", "\t", ".", "é", "東", "🍕", "\u2028", "\x0b", "\x1b", "_", "\u0301"]
    before, after = ("".join(rng.choice(alphabet) for _ in range(rng.randrange(300))) for _ in range(2))
    _diff(before, after)
    _diff(before, before[::2])
    assert {kind for kind, _, _ in _diff(before, before)} <= {"kept"}


def test_neighbours_are_of_different_kinds() -> None:
    kinds = [kind for kind, _, _ in _diff("a b c d e f g", "a x c y e f h i")]
    assert all(first != second for first, second in pairwise(kinds))


def test_json_that_becomes_a_table_keeps_its_values() -> None:
    records = [{"id": f"acc_{number}", "note": f"The code is {number * 7919}."} for number in range(50)]
    table = "\n".join(" | ".join(record.values()) for record in records)
    for text in (json.dumps(records), json.dumps(records, indent=2)):
        kept = "".join(old for kind, old, _ in _diff(text, table) if kind == "kept")
        for record in records:
            assert record["note"] in kept


@pytest.mark.long
@pytest.mark.parametrize("layout", ["one line", "lines", "table"])
def test_a_hundred_thousand_tokens_take_two_seconds_at_most(layout: str) -> None:
    rng = random.Random(0)
    records = [
        {"id": f"acc_{rng.randrange(16**8):08x}", "status": rng.choice(["open", "shut"]), "n": rng.randrange(500)}
        for _ in range(5000)
    ]
    before = json.dumps(records, indent=2 if layout == "lines" else None)
    kept = [record for record in records if rng.random() < 0.5]
    after = "\n".join(" | ".join(map(str, each.values())) for each in kept) if layout == "table" else json.dumps(kept)
    started = time.process_time()
    _diff(before, after)
    assert time.process_time() - started < 2


# --- prompts


def _prompt(*messages: tuple[str, Any], **fields: Any) -> Prompt:
    return Prompt(messages=[{"role": role, "content": content} for role, content in messages], **fields)


def test_messages_are_paired_by_order() -> None:
    before = _prompt(("system", "long context"), ("user", "why?"))
    parts = diff_prompts(before, _prompt(("user", "context"), ("user", "why?")))
    assert [part.title for part in parts] == ["message 1 of 2: system, passed on as user", "message 2 of 2: user"]
    assert [segment.kind for segment in parts[1].segments] == ["kept"]
    assert "".join(segment.new for segment in parts[0].segments) == "context"


def test_merged_messages_are_compared_as_one() -> None:
    (part,) = diff_prompts(
        _prompt(("system", "the context"), ("user", "why?")), _prompt(("user", "the context\n\nwhy?"))
    )
    assert part.title == "all messages (2 sent, 1 passed on)"
    assert [segment.kind for segment in part.segments] == ["kept"]


def test_a_system_text_and_blocks_and_calls_of_tools() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]}
    before = Prompt("be brief", [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, call])
    after = Prompt([{"type": "text", "text": "be brief"}], [{"role": "user", "content": "hi"}, {**call, "content": ""}])
    assert all(segment.kind == "kept" for part in diff_prompts(before, after) for segment in part.segments)


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "assistant", "tool_calls": [CALL]}),
        (
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "assistant", "tool_calls": [{**CALL, "function": {"arguments": '{"b":2,"a":1}', "name": "f"}}]},
        ),
        ({"role": "user", "content": "hi"}, {"content": [{"text": "hi", "type": "text"}], "role": "user"}),
    ],
)
def test_what_is_the_same_to_a_model_shows_no_change(before: Any, after: Any) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    turned = {"function": {"parameters": {"type": "object"}, "name": "f"}, "type": "function"}
    first, second = Prompt(messages=[before], tools=[tool]), Prompt(messages=[after], tools=[turned])
    assert Exchange(json.dumps(_body(first))).passes_on(Call("/v1/x", json.dumps(_body(second))))
    assert {segment.kind for part in diff_prompts(first, second) for segment in part.segments} == {"kept"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            {"role": "user", "content": [{"type": "image", "url": "a"}]},
            {"role": "user", "content": [{"type": "image"}]},
        ),
        ({"role": "tool", "tool_call_id": "1", "content": "x"}, {"role": "tool", "tool_call_id": "2", "content": "x"}),
        ({"role": "user", "content": "x", "name": "Bob"}, {"role": "user", "content": "x"}),
    ],
)
def test_what_is_not_the_same_to_a_model_shows_a_change(before: Any, after: Any) -> None:
    first, second = Prompt(messages=[before]), Prompt(messages=[after])
    assert not Exchange(json.dumps(_body(first))).passes_on(Call("/v1/x", json.dumps(_body(second))))
    assert {segment.kind for part in diff_prompts(first, second) for segment in part.segments} != {"kept"}


def _body(prompt: Prompt) -> dict[str, Any]:
    return {"messages": prompt.messages, "tools": prompt.tools}


def test_tools_that_were_put_in() -> None:
    tool, other = {"name": "read"}, {"name": "retrieve"}
    parts = diff_prompts(_prompt(tools=[tool]), _prompt(tools=[tool, other]))
    assert parts[-1].title == "tools"
    assert [segment.kind for segment in parts[-1].segments] == ["kept", "added"]
    assert diff_prompts(Prompt(), Prompt()) == []


def test_messages_that_are_none() -> None:
    (part,) = diff_prompts(Prompt(messages=["odd"]), Prompt(messages=[7]))
    assert part.title == "message 1 of 1: ?"


# --- evidence


def _marked(before: str, after: str, *evidence: str) -> list[tuple[str, str, str]]:
    segments = mark_evidence(diff_texts(before, after), evidence)
    assert "".join(segment.text for segment in segments) == before
    assert "".join(segment.new for segment in segments) == after
    return [segment[:3] for segment in segments if segment.evidence]


def test_evidence_that_was_kept() -> None:
    assert _marked("a. Bob is here. c.", "Bob is here. c.", "Bob is here.") == [
        ("kept", "Bob is here.", "Bob is here.")
    ]


def test_evidence_that_was_dropped() -> None:
    assert _marked("a\nBob is here.\nc", "a\nc", "Bob is here.") == [("dropped", "Bob is here.", "")]


def test_evidence_that_was_moved_is_marked_in_both_places() -> None:
    found = _marked("Bob is here.\na b c\nd e f\ng h i\n", "a b c\nd e f\ng h i\nBob is here.\n", "Bob is here.")
    assert found == [("moved", "Bob is here.", ""), ("moved", "", "Bob is here.")]


def test_evidence_of_which_a_part_was_changed() -> None:
    found = _marked("the code is 42 now", "the code is 43 now", "code is 42")
    assert found == [("kept", "code is", "code is"), ("dropped", " 42", "")]


def test_evidence_in_a_long_stretch_that_was_replaced_stands_alone() -> None:
    lines = [f"line {number} of the text" for number in range(40)]
    found = _marked("\n".join([*lines, "BUDGET = 931520", *lines]), "[...]", "BUDGET = 931520")
    assert found == [("dropped", "BUDGET = 931520", "")]


def test_evidence_in_another_dress() -> None:
    assert _marked("x", '{"a": "Bob_IS",\n "b": "here"}', "Bob is here") == []
    (found,) = _marked("", "BOB\n is - here!", "Bob is here")
    assert found == ("added", "", "BOB\n is - here")


@pytest.mark.parametrize("span", ["🍕", "Straße 5", "東京", "(*+?", "a\\b"])
def test_evidence_of_any_kind_is_found_as_it_is(span: str) -> None:
    assert _marked(f"x {span}y", f"x {span}y", span) == [("kept", span, span)]


def test_no_evidence_marks_nothing() -> None:
    assert _marked("a b", "a", "", " ", "zzz") == []
    assert _marked("concatenate", "concatenate", "Cat.") == []


def test_evidence_that_is_everywhere_takes_no_longer() -> None:
    text = "yes no\n" * 20_000
    started = time.process_time()
    assert len(_marked(text, text[::2], "no")) >= 1
    assert time.process_time() - started < 5
