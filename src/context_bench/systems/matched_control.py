"""Matched controls: a model answers from contexts cut to the size that a system reached, without reading the question.

Each control waits for the system's row of the same example, and then removes the same number of tokens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from context_bench.errors import SystemFailure
from context_bench.http.loop import run_sync
from context_bench.systems.prompts import ask, merge
from context_bench.systems.reference import Passthrough, RandomDrop, Truncate, shuffle_indices
from context_bench.systems.with_reader import WithReader
from context_bench.traits import SystemTraits, find_finish, find_model, find_prepare, may_read_gold, system_traits
from context_bench.types import Example
from context_bench.utils.tokens import count_tokens

DROP_SEEDS = 5
"""The number of random orders of deletion; each example has one of these orders."""


class Cut:
    """A way to cut a context to a number of tokens; `fingerprint` is part of the cache key."""

    def __init__(self, kind: str) -> None:
        self.kind, self.fingerprint = kind, f"matched-cut/1 {kind}"

    def cut(self, example: Example, tokens: int) -> str:
        """Cut the context of an example to a number of tokens."""
        made: Any = Truncate(budget=tokens, keep=self.kind) if self.kind != "random-drop" else None
        if made is None:
            made = RandomDrop(budget=tokens, seed=shuffle_indices(DROP_SEEDS, repr(example["id"]))[0])
        return str(made.process(example)["context"])


CUTS = ("head", "tail", "middle", "random-drop")
"""The cuts for every system, by their names in `matched_controls`."""


class SavedTokens:
    """The number of tokens that a system removed from each example, known once the row exists."""

    def __init__(self, system: str) -> None:
        self.system = system
        self._known: dict[Hashable, int | None] = {}
        self._changed = asyncio.Event()
        self._over = False

    def note(self, example: Mapping[str, Any], saved: int | None) -> None:
        """Record the tokens removed from an example; None if the system failed."""
        self._known[_identify(example)] = saved
        self._wake()

    def close(self) -> None:
        """Stop all waiting: no more rows will come."""
        self._over = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, example: Mapping[str, Any]) -> int:
        """Wait for the row of the system on an example.

        Raises:
            SystemFailure: The system failed on the example, or was stopped before it.
        """
        key = _identify(example)
        while key not in self._known:
            if self._over:
                raise SystemFailure(f"{self.system} was stopped before this example, so there is no size to match")
            await self._changed.wait()
        saved = self._known[key]
        if saved is None:
            raise SystemFailure(f"{self.system} failed on this example, so there is no size to match")
        return saved


def _identify(example: Mapping[str, Any]) -> Hashable:
    return repr(example["id"]), example.get("dataset"), example.get("context")


class MatchedControl:
    """A control that sends a model a context of the size that a system reached on the same example."""

    sends_elsewhere = True

    def __init__(self, kind: str, followed: Any, saved: SavedTokens, reader: Any) -> None:
        self._cut, self._followed, self._saved, self.reader = Cut(kind), followed, saved, reader
        self.name = f"{followed.name} ({kind})"
        self.model = find_model(reader)
        self.max_workers: int | None = system_traits(reader).max_workers
        self.local = False

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(
            system_traits(self.reader),
            parts=[self._cut, self._followed, self.reader],
            max_workers=self.max_workers,
            takes_turns=self.local,
            competes=False,
            asks_model=True,
            follows=self._saved,
            list_requests=WithReader(Passthrough(), self.reader).list_requests,
        )

    @property
    def reads_gold(self) -> bool:
        """Whether the system that this control matches may read the gold, so that its size depends on the gold."""
        return may_read_gold(self._followed)

    async def prepare(self) -> None:
        """Prepare the reader."""
        prepare: Callable[[], Any] | None = find_prepare(self.reader)
        if prepare is not None:
            await prepare()

    async def finish(self) -> None:
        """Finish the reader."""
        finish = find_finish(self.reader)
        if finish is not None:
            await finish()

    async def aprocess(self, example: Example) -> Example:
        """Answer from the cut; `metadata` has the matched size."""
        asked = time.perf_counter()
        saved = await self._saved.wait(example)
        waited = time.perf_counter() - asked
        whole = count_tokens(str(example.get("context") or ""))
        kept = min(max(whole - saved, 0), whole)
        processed = {"context": self._cut.cut(example, kept)} if kept < whole else {}
        result: Example = await ask(self.reader, merge(example, processed), example)
        metadata = dict(result.get("metadata") or {})
        metadata |= {"waited": waited + metadata.get("waited", 0.0), "upstream": "context"}
        if not whole:
            metadata["not_applied"] = "the example has no context to cut"
        matched = {"system": self._followed.name, "cut": self._cut.kind, "tokens": [whole, kept]}
        unchanged = {"context": example.get("context") or ""}
        return {**unchanged, **processed, **result, "metadata": {**metadata, "matched_to": matched}}

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop."""
        return run_sync(self.aprocess(example))
