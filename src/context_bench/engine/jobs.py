"""The work to do: an example on its way through all systems, and one system's part of that."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from context_bench.datasets.example_check import MAX_DEPTH, find_deep_fields
from context_bench.engine.wiring import Wiring
from context_bench.store.keys import Keys
from context_bench.types import Example, System
from context_bench.utils.tokens import LONG_TEXT

__all__ = ["Item", "Job", "count_characters"]


class Item:
    """An example, with what is worked out of it once for all systems.

    Attributes:
        kept: Its id in the store.
        wiring: Which evaluators judge it, once that was looked up.
        counted: Whether it was counted for its dataset.
        tokens: Those of its prompt, once they are counted; `counting` is at it meanwhile, if it is long.
        is_long: Whether its texts are so long that counting them is worth a thread.
        fault: Why it cannot be sent or written down as it is. `example` then holds what is left without the fields in
            question.
    """

    __slots__ = ("counted", "counting", "digests", "example", "fault", "is_long", "kept", "tag", "tokens", "wiring")

    def __init__(self, example: Example, tag: str | None = None) -> None:
        self.counted = False
        deep = find_deep_fields(example)
        self.fault = f"{deep[0]!r} is nested more than {MAX_DEPTH} levels deep" if deep else None
        self.example = {key: value for key, value in example.items() if key not in deep} if deep else example
        self.tag = str(example.get("dataset") or "") if tag is None else tag
        self.tokens: int | None = None
        self.counting: Future[None] | None = None
        self.is_long = count_characters(self.example) >= LONG_TEXT
        self.kept: int | None = None
        self.digests: tuple[bytes, bytes] | None = None
        self.wiring: Wiring | None = None


@dataclass(slots=True)
class Job:
    """One system on one example; `order` is its place in the result."""

    order: int
    system: System
    item: Item
    repeat: int = 0
    keys: Keys | None = None


def count_characters(example: Example) -> int:
    """Count the characters of the context and of a conversation, which are all that may be long."""
    size, context, turns = 0, example.get("context"), example.get("turns")
    if isinstance(context, str):
        size = len(context)
    if turns and isinstance(turns, list):
        size += sum([len(turn["content"]) for turn in turns if isinstance(turn.get("content"), str)])
    return size
