"""What is to be done: an example, on its way through all systems, and one system's part of that."""

from __future__ import annotations

from dataclasses import dataclass

from context_bench.types import Example, System

__all__ = ["Item", "Job", "Keys"]


class Item:
    """An example, with what is worked out of it once for all systems.

    `kept` is its id in the store; `counted` says that a row of it has come.
    """

    __slots__ = ("counted", "digests", "example", "kept", "tag", "tokens")

    def __init__(self, example: Example) -> None:
        self.example = example
        self.tag = str(example.get("dataset") or "")
        self.counted = False
        self.tokens: int | None = None
        self.kept: int | None = None
        self.digests: tuple[bytes, bytes] | None = None


class Keys:
    """The keys of one job in the store: its answer, and its finished row. None where reuse is not safe.

    `whole` stands for the example; `response` is the id of the answer once that is stored.
    """

    __slots__ = ("answer", "response", "row", "whole")

    def __init__(self, whole: bytes, answer: bytes | None, row: bytes | None) -> None:
        self.whole, self.answer, self.row = whole, answer, row
        self.response: int | None = None


@dataclass(slots=True)
class Job:
    """One system on one example; `order` is its place in the result."""

    order: int
    system: System
    item: Item
    repeat: int = 0
    keys: Keys | None = None
