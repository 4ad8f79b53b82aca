"""The one scheduler: reads examples lazily, and keeps every lane busy within its bound.

A lane is a queue with so many slots. Each endpoint has a lane of its own; systems in this process share
one, so that with one slot they run one at a time and their latency means something. Lanes stay within
a few examples of each other: systems are interleaved, and memory does not grow with the dataset.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from context_bench.types import Example, System

__all__ = ["Feed", "Item", "Job", "Lane", "run_lanes"]


class Item:
    """An example on its way through all systems, with what is worked out of it once for all of them.

    `kept` is its id in the store.
    """

    __slots__ = ("digests", "example", "kept", "tag", "tokens")

    def __init__(self, example: Example) -> None:
        self.example = example
        self.tag = str(example.get("dataset") or "")
        self.tokens: int | None = None
        self.kept: int | None = None
        self.digests: tuple[bytes, bytes] | None = None


@dataclass(slots=True)
class Job:
    """One system on one example; `order` is its place in the result, `first` marks one job of each example."""

    order: int
    system: System
    item: Item
    repeat: int = 0
    first: bool = False


@dataclass(slots=True)
class Lane:
    """Systems that share slots."""

    slots: int
    systems: list[tuple[int, System]] = field(default_factory=list)
    position: int = 0
    pending: deque[Job] = field(default_factory=deque)


class Feed:
    """Hands each example to every lane once, and reads no further than the slowest lane allows.

    Args:
        source: The examples.
        width: Jobs for each example, over all lanes and repeats.
        ahead: How many examples a fast lane may be ahead of a slow one.
    """

    def __init__(self, source: Iterator[Example], lanes: list[Lane], width: int, repeats: int, ahead: int) -> None:
        self._source, self._lanes = source, lanes
        self._width, self._repeats, self._ahead = width, repeats, ahead
        self._alone = len(lanes) == 1
        self._held: deque[Item] = deque()
        self._first = 0
        self._ended = False
        self._moved = asyncio.Event()
        self.error: Exception | None = None

    def stop(self) -> None:
        """Hand out nothing more; what was handed out goes on."""
        self._ended = True
        self._held.clear()
        for lane in self._lanes:
            lane.pending.clear()
        self._moved.set()

    def next_at_once(self, lane: Lane) -> Job | None:
        """The next job of a lane; None when there is none any more, or it has to wait for others: `must_wait`."""
        while not lane.pending:
            if not self._alone and self.must_wait(lane):
                return None
            item = self._item(lane.position)
            if item is None:
                return None
            self._queue(lane, item)
        return lane.pending.popleft()

    def must_wait(self, lane: Lane) -> bool:
        """Whether a lane is so far ahead of others that it gets nothing now."""
        return not self._ended and lane.position - self._slowest() >= self._ahead

    async def next(self, lane: Lane) -> Job | None:
        """The next job of a lane; None when there is none any more."""
        while (job := self.next_at_once(lane)) is None and self.must_wait(lane):
            self._moved.clear()
            await self._moved.wait()
        return job

    def _slowest(self) -> int:
        return min([lane.position for lane in self._lanes])

    def _queue(self, lane: Lane, item: Item) -> None:
        base = lane.position * self._width
        for repeat in range(self._repeats):
            for place, system in lane.systems:
                first = place == 0 and repeat == 0
                lane.pending.append(Job(base + place * self._repeats + repeat, system, item, repeat, first))
        lane.position += 1
        if self._alone:
            return
        slowest = self._slowest()
        while self._held and self._first < slowest:
            self._held.popleft()
            self._first += 1
        self._moved.set()

    def _item(self, position: int) -> Item | None:
        index = position - self._first
        if not self._alone and index < len(self._held):
            return self._held[index]
        if self._ended:
            return None
        try:
            item = Item(next(self._source))
        except StopIteration:
            self._ended = True
        except Exception as error:  # noqa: BLE001 - input that fails ends the input, not what was done before
            self.error, self._ended = error, True
        else:
            if not self._alone:  # another lane will want it too
                self._held.append(item)
            return item
        self._moved.set()
        return None


async def run_lanes(feed: Feed, lanes: list[Lane], work: Callable[[Job], Awaitable[None]]) -> None:
    """Work through the feed with all slots of all lanes; the first error of `work` itself ends the run."""

    async def slot(lane: Lane) -> None:
        while (job := feed.next_at_once(lane) or await feed.next(lane)) is not None:
            await work(job)

    tasks = [asyncio.ensure_future(slot(lane)) for lane in lanes for _ in range(lane.slots)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
