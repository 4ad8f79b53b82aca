"""The contract of memory systems: those that ship keep it, and whoever breaks a rule is told which."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.memory.systems import SYSTEMS, VENDORS
from context_bench.registry import import_object
from context_bench.testing import ContractError, check_memory_system
from toy_memories import Broken, Persistent, Remembering, Separate

WITH_A_MODEL = {"summary", "rlm", *VENDORS}


@pytest.mark.parametrize("name", sorted(SYSTEMS.keys() - WITH_A_MODEL))
def test_those_that_ship_keep_it(name: str) -> None:
    check_memory_system(import_object(SYSTEMS[name])())


class Awaited(Remembering):
    """The same with asynchronous variants."""

    async def aingest(self, turns: list[dict[str, Any]]) -> None:
        super().ingest(turns)

    async def aquery(self, question: str) -> str:
        found = await self.retrieve(question, 1)
        return str(found[0]["text"]) if found else ""

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        raise AssertionError("the asynchronous variant goes first")

    async def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:  # type: ignore[override]
        return super().retrieve(question, k)


def test_toys_keep_it(tmp_path: Any) -> None:
    for system in (Remembering(), Separate(), Persistent(str(tmp_path))):
        check_memory_system(system)


class Keeping(Remembering):
    """Does not empty itself."""

    def reset(self) -> None: ...


class Meddling(Remembering):
    """Changes the turns that it is given."""

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        super().ingest(turns)
        turns[0]["content"] = ""


class Inventing(Remembering):
    """Names turns that nobody gave it."""

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        return [{"text": "x", "ids": ["z9"]}]


class Wearing(Remembering):
    """Finds less each time."""

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        found = super().retrieve(question, k)
        self.turns = self.turns[1:]
        return found


class Counting(Remembering):
    """Returns how many it found."""

    def query(self, question: str) -> str:
        return ""

    def retrieve(self, question: str, k: int | None = None) -> Any:
        return 3


class Vague(Remembering):
    """Does not say whether anything was restored, and lists nothing."""

    def restore(self, key: str) -> Any:
        return "maybe"

    def memories(self) -> Any:
        return 3


@pytest.mark.parametrize(
    ("system", "rule"),
    [
        (Keeping(), "must forget the last conversation on reset()"),
        (Meddling(), "must not change the turns"),
        (Inventing(), "must return only ids of ingested turns"),
        (Wearing(), "must return the same for the same question"),
        (Vague(), "must return True, False or a number of turns from restore()"),
        (Vague(), "must return a list from memories()"),
        (Broken("query", "none"), "must return a text from query() (it returned NoneType)"),
        (Counting(), "must return a list from retrieve() (it returned int)"),
        (Broken("ingest", "raise"), "ingest() failed: ValueError: something broke"),
        (object(), "it has no reset(), ingest(), query()"),
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_a_broken_rule_is_named(system: Any, rule: str) -> None:
    with pytest.raises(ContractError) as raised:
        check_memory_system(system)
    assert any(rule in sentence for sentence in raised.value.broken)


def test_one_that_hangs_is_named() -> None:
    with pytest.raises(ContractError, match=r"query\(\) did not return within 0.5 s"):
        check_memory_system(Broken("query", "hang"), timeout=0.5)


def test_asynchronous_variants_are_awaited() -> None:
    check_memory_system(Awaited())
