from __future__ import annotations

from typing import Any

import pytest

from context_bench.conformance.request_checks import find_flaw

SENT: dict[str, Any] = {
    "type": "object",
    "description": "What to book.",
    "properties": {
        "title": {"type": "string", "description": "Of the book."},
        "room": {"type": "string", "enum": ["hall", "bar"]},
        "many": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["title", "room"],
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**SENT, **fields}


@pytest.mark.parametrize(
    "arrived",
    [
        SENT,
        {name: value for name, value in SENT.items() if name != "description"},
        changed(description="Book.", required=["room", "title"]),
        changed(properties={**SENT["properties"], "title": {"type": "string"}}),
        changed(properties={**SENT["properties"], "room": {"enum": ["bar", "hall"], "type": "string"}}),
    ],
)
def test_what_only_explains_may_change(arrived: Any) -> None:
    assert find_flaw(SENT, arrived) is None


@pytest.mark.parametrize(
    ("arrived", "flaw"),
    [
        (None, "the schema is gone from the arguments"),
        ("object", "the schema is gone from the arguments"),
        ({}, "'type' is gone from the arguments"),
        (changed(properties={}), "'title' is gone from 'properties' of the arguments"),
        (
            changed(properties={**SENT["properties"], "key": {}}),
            "'key' was added to 'properties' of the arguments",
        ),
        (
            changed(properties={**SENT["properties"], "title": {"type": "number"}}),
            "'string' became 'number' in 'type' of 'title' of 'properties' of the arguments",
        ),
        (
            changed(properties={**SENT["properties"], "many": {"type": "array", "items": {"type": "string"}}}),
            "'number' became 'string' in 'type' of 'items' of 'many' of 'properties' of the arguments",
        ),
        (
            changed(properties={**SENT["properties"], "room": {"type": "string", "enum": ["hall"]}}),
            "['bar', 'hall'] became ['hall'] in 'enum' of 'room' of 'properties' of the arguments",
        ),
        (changed(required=["title"]), "['room', 'title'] became ['title'] in 'required' of the arguments"),
    ],
)
def test_what_asks_for_something_else_is_named(arrived: Any, flaw: str) -> None:
    assert find_flaw(SENT, arrived) == flaw
