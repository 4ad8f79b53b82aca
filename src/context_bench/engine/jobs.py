"""What is to be done: an example, on its way through all systems, and one system's part of that."""

from __future__ import annotations

from dataclasses import dataclass

from context_bench.datasets.example_check import MAX_DEPTH, find_deep_fields
from context_bench.types import Example, System

__all__ = ["Item", "Job", "Keys"]


class Item:
    """An example, with what is worked out of it once for all systems.

    Attributes:
        kept: Its id in the store.
        counted: Whether it was counted for its dataset.
        fault: Why it cannot be sent or written down as it is. `example` then holds what is left without the fields in
            question.
    """

    __slots__ = ("counted", "digests", "example", "fault", "kept", "tag", "tokens")

    def __init__(self, example: Example) -> None:
        self.counted = False
        deep = find_deep_fields(example)
        self.fault = f"{deep[0]!r} is nested more than {MAX_DEPTH} levels deep" if deep else None
        self.example = {key: value for key, value in example.items() if key not in deep} if deep else example
        self.tag = str(example.get("dataset") or "")
        self.tokens: int | None = None
        self.kept: int | None = None
        self.digests: tuple[bytes, bytes] | None = None


class Keys:
    """The keys of one job in the store: its answer, and its finished row. None where reuse is not safe.

    `whole` stands for the example; `response` is the id of the answer once that is stored, and `record` the answer as
    it was found in the store.
    """

    __slots__ = ("answer", "record", "response", "row", "whole")

    def __init__(self, whole: bytes, answer: bytes | None, row: bytes | None) -> None:
        self.whole, self.answer, self.row = whole, answer, row
        self.response: int | None = None
        self.record: bytes | None = None


@dataclass(slots=True)
class Job:
    """One system on one example; `order` is its place in the result."""

    order: int
    system: System
    item: Item
    repeat: int = 0
    keys: Keys | None = None
