"""Prefix stability: what of one request of a conversation stands at the start of the next."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from context_bench.traffic.prefix import measure_prefix
from context_bench.wire.forms import read_prompt

SYSTEM = {"role": "system", "content": "Be brief."}
TURNS = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
    {"role": "assistant", "content": "four"},
    {"role": "user", "content": "five"},
]
GROWING = [[SYSTEM, *TURNS[:1]], [SYSTEM, *TURNS[:3]], [SYSTEM, *TURNS]]


def _stability(*requests: Any, count: Any = len) -> dict[str, Any]:
    """By default a character is a token."""
    bodies = [json.dumps(each if isinstance(each, dict) else {"messages": each}) for each in requests]
    found = measure_prefix(map(read_prompt, bodies), count)
    if found is None:
        return {}
    return {
        "prefix_stability": found.kept,
        "first_message_changed": found.first_message_changed,
        "rewritten_history": found.rewritten,
    }


def test_a_history_that_grows_is_stable() -> None:
    assert _stability(*GROWING) == {
        "prefix_stability": 1.0,
        "first_message_changed": False,
        "rewritten_history": 0.0,
    }


def test_what_a_request_repeats_is_counted() -> None:
    bodies = [json.dumps({"messages": messages}) for messages in (*GROWING, GROWING[2][:2])]
    found = measure_prefix(map(read_prompt, bodies), lambda text: len(text.split()))
    assert found is not None
    sizes = [sum(len(each["content"].split()) for each in messages) for messages in (*GROWING, GROWING[2][:2])]
    assert found.tokens == list(zip(sizes, (0, sizes[0], sizes[1], sizes[3])))


@pytest.mark.parametrize("requests", [[], GROWING[:1], [{"model": "m"}, {"messages": GROWING[0]}]])
def test_fewer_than_two_requests_say_nothing(requests: list[Any]) -> None:
    assert _stability(*requests) == {}


def test_bodies_that_hold_no_prompt_are_passed_over() -> None:
    bodies = [json.dumps({"messages": GROWING[0]}), "no JSON", json.dumps({"messages": GROWING[1]})]
    found = measure_prefix(map(read_prompt, bodies), len)
    assert found is not None
    assert found.kept == 1.0


def test_a_rewritten_message_by_hand() -> None:
    """A token is a word, and nothing but texts has any: no role, no brace, no name of a field."""
    changed = [SYSTEM, TURNS[0], {"role": "assistant", "content": "2"}, *TURNS[2:]]
    values = _stability(GROWING[1], changed, count=lambda text: len(text.split()))
    # "Be brief.", "one", "two", "three" are five words; three stand before the one that was rewritten
    assert values == {"prefix_stability": 0.6, "first_message_changed": False, "rewritten_history": 0.25}


CALL = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"city": "Oslo", "days": 2}'}}
OTHER = {"function": {"arguments": '{"days":2.0,"city":"Oslo"}', "name": "get"}, "type": "function", "id": "c1"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"role": "user", "content": "one"}, {"content": "one", "role": "user"}),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "assistant", "tool_calls": [OTHER]}),
        ({"role": "assistant", "content": "", "tool_calls": [CALL]}, {"role": "assistant", "tool_calls": [CALL]}),
    ],
)
def test_another_spelling_is_the_same_to_a_cache(first: dict[str, Any], second: dict[str, Any]) -> None:
    values = _stability([first, *TURNS[:1]], [second, *TURNS[:1]])
    assert values == {"prefix_stability": 1.0, "first_message_changed": False, "rewritten_history": 0.0}


@pytest.mark.parametrize(
    "changed",
    [
        {"role": "system", "content": "Be brief."},  # another role
        {"role": "user", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": " brief."}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "Be brief."}]},
        {"role": "assistant", "content": "Be brief.", "tool_calls": [CALL]},
    ],
)
def test_structure_is_compared_too(changed: dict[str, Any]) -> None:
    values = _stability([{"role": "user", "content": "Be brief."}, *TURNS[:1]], [changed, *TURNS[:1]])
    assert values["first_message_changed"] is True
    assert values["prefix_stability"] < 1.0


def test_a_call_of_another_tool_ends_the_prefix() -> None:
    other = {**CALL, "function": {**CALL["function"], "name": "put"}}
    requests = [[TURNS[0], {"role": "assistant", "tool_calls": [each]}] for each in (CALL, other)]
    # of "one" (3) and {"city":"Oslo","days":2} (24 characters) only the first stands
    assert _stability(*requests)["prefix_stability"] == pytest.approx(3 / 27)


def test_short_messages_that_were_all_changed_keep_nothing() -> None:
    requests = [[{"role": "user", "content": text}] for text in ("yes", "no")]
    assert _stability(*requests)["prefix_stability"] == 0.0


def test_a_change_within_a_message_keeps_what_stands_before_it() -> None:
    earlier, later = ({"role": "user", "content": text} for text in ("a" * 500 + "b" * 500, "a" * 500 + "c" * 500))
    assert _stability([earlier], [later])["prefix_stability"] == pytest.approx(0.5, abs=0.05)


def test_a_moving_date_at_the_start_breaks_everything() -> None:
    requests = [
        [{"role": "system", "content": f"{number} is the time. " + "x" * 1000}, *TURNS[: 2 * number + 1]]
        for number in range(3)
    ]
    values = _stability(*requests)
    assert values["prefix_stability"] < 0.06
    assert values["first_message_changed"] is True
    # pairs: 2 messages with one changed, 4 messages with one changed
    assert values["rewritten_history"] == pytest.approx(2 / 6)


def test_tools_stand_before_everything() -> None:
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}
    with_tools = [{"messages": messages, "tools": [tool]} for messages in GROWING]
    assert _stability(*with_tools)["prefix_stability"] == 1.0
    added = _stability({"messages": GROWING[0]}, with_tools[1])
    assert added == {"prefix_stability": 0.0, "first_message_changed": True, "rewritten_history": 0.0}
    renamed = {"messages": GROWING[1], "tools": [{**tool, "function": {"name": "put"}}]}
    assert _stability(with_tools[0], renamed)["prefix_stability"] < 0.5


def test_anthropic_system_is_part_of_it() -> None:
    first, second = {"system": "Be brief.", "messages": TURNS[:1]}, {"system": "Be brief.", "messages": TURNS[:3]}
    assert _stability(first, second)["prefix_stability"] == 1.0
    changed = _stability(first, {**second, "system": "Speak."})
    assert (changed["first_message_changed"], changed["rewritten_history"]) == (True, 0.0)
    assert changed["prefix_stability"] < 0.6


def test_marks_for_the_cache_are_no_content() -> None:
    def marked(text: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}

    values = _stability([marked("one")], [TURNS[0], TURNS[1], marked("three")], TURNS)
    assert values == {"prefix_stability": 1.0, "first_message_changed": False, "rewritten_history": 0.0}


def test_a_dropped_message_moves_all_that_follow() -> None:
    values = _stability(GROWING[1], [SYSTEM, *TURNS[1:]])
    # of system, one, two, three only the first stands where it stood
    assert values["rewritten_history"] == 0.75
    assert values["first_message_changed"] is False


def test_a_history_that_is_cut_off_at_its_end_is_a_prefix_of_itself() -> None:
    values = _stability(GROWING[2], GROWING[0], count=lambda text: len(text.split()))
    assert values["prefix_stability"] == pytest.approx(3 / 7)  # "Be brief." and "one" of seven words
    assert values["rewritten_history"] == pytest.approx(4 / 6)


def test_empty_requests() -> None:
    assert _stability([], []) == {"prefix_stability": 1.0, "first_message_changed": False, "rewritten_history": 0.0}
    assert _stability([], TURNS[:1])["first_message_changed"] is True


def test_a_long_conversation_counts_each_message_once() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    turns = [{"role": "user", "content": f"{number} " + "word " * 2000} for number in range(60)]
    started = time.process_time()
    assert _stability(*(turns[: number + 1] for number in range(60)), count=count)["prefix_stability"] == 1.0
    assert time.process_time() - started < 2
    assert len(seen) == 60
