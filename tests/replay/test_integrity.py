"""Faults in a request: each broken rule has its name, and what keeps the rules has none."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from context_bench.replay.integrity import FAULTS, find_faults

MARK = {"cache_control": {"type": "ephemeral"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}
BODY: dict[str, Any] = {
    "system": [{"type": "text", "text": "Be brief.", **MARK}],
    "tools": [{"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Look."}, IMAGE]},
        {"role": "assistant", "content": "I look."},
        {"role": "user", "content": "And read."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "of a"}]},
    ],
}


def change(edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    body = copy.deepcopy(BODY)
    edit(body)
    return body


def rename(body: dict[str, Any]) -> None:
    body["messages"][3]["content"][1]["id"] = "other"
    body["messages"][4]["content"][0]["tool_use_id"] = "other"


def swap(body: dict[str, Any]) -> None:
    messages = body["messages"]
    messages[0], messages[2] = messages[2], messages[0]


@pytest.mark.parametrize(
    ("fault", "edit"),
    [
        ("pairing", lambda b: b["messages"].pop()),
        ("ids", rename),
        ("order", swap),
        ("roles", lambda b: b["messages"][1].update(role="user")),
        ("images", lambda b: b["messages"][0]["content"].pop()),
        ("system", lambda b: b.update(system=[{"type": "text", "text": "Be kind.", **MARK}])),
        ("tools", lambda b: b["tools"][0]["input_schema"].pop("properties")),
        ("tools", lambda b: b.update(tools=[])),
        ("thinking", lambda b: b["messages"][3]["content"][0].update(signature="new")),
        ("thinking", lambda b: b["messages"][3]["content"].pop(0)),
        ("cache marks", lambda b: b["system"][0].pop("cache_control")),
    ],
)
def test_a_broken_rule_is_named_alone(fault: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    assert find_faults("anthropic", BODY, change(edit)) == [fault]
    assert fault in FAULTS


@pytest.mark.parametrize(
    "edit",
    [
        lambda b: None,
        lambda b: b["messages"][4]["content"][0].update(content="short"),
        lambda b: b["messages"].pop(1),
        lambda b: b["tools"].append({"name": "retrieve", "input_schema": {"type": "object"}}),
    ],
)
def test_what_may_be_changed_is_no_fault(edit: Callable[[dict[str, Any]], Any]) -> None:
    assert find_faults("anthropic", BODY, change(edit)) == []


def test_thinking_of_a_turn_that_waits_for_no_tool_may_be_left_out() -> None:
    answered = change(lambda b: b["messages"].extend([{"role": "assistant", "content": "Done."}]))
    left_out = copy.deepcopy(answered)
    left_out["messages"][3]["content"].pop(0)
    assert find_faults("anthropic", answered, left_out) == []
