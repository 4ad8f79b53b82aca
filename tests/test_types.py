"""The Protocols: satisfied by any class with the right members, checked at run time."""

from __future__ import annotations

from typing import Any

import pytest

from banks import each_case
from context_bench import Evaluator, MemorySystem, Metric, Reporter, System


class Everything:
    """Has every member of every Protocol, and imports nothing."""

    name = "everything"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {}

    def compute(self, rows: list[Any]) -> dict[str, float]:
        return {}

    def render(self, result: Any) -> str:
        return ""

    def reset(self) -> None: ...

    def ingest(self, turns: Any) -> None: ...

    def query(self, question: str) -> str:
        return ""


MEMBERS = {
    System: ("name", "process"),
    Evaluator: ("name", "score"),
    Metric: ("name", "compute"),
    Reporter: ("name", "render"),
    MemorySystem: ("name", "reset", "ingest", "query"),
}


@pytest.mark.parametrize("protocol", MEMBERS, ids=lambda each: each.__name__)
def test_the_right_members_are_enough(protocol: type) -> None:
    assert isinstance(Everything(), protocol)


@each_case(("protocol", "member"), [(each, name) for each, names in MEMBERS.items() for name in names])
def test_every_member_is_needed(protocol: type, member: str) -> None:
    without = {name: value for name, value in vars(Everything).items() if name != member}
    assert not isinstance(type("Without", (), without)(), protocol)


def test_a_name_may_be_a_property() -> None:
    class Named:
        @property
        def name(self) -> str:
            return "n"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return example

    assert isinstance(Named(), System)


def test_a_plain_object_is_nothing() -> None:
    assert not any(isinstance(object(), protocol) for protocol in MEMBERS)
