"""Calls on their way to a worker: which go together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from context_bench.ray.shipping import Parcel, ParcelQueue


async def _take(queue: ParcelQueue, refused: Sequence[int] = ()) -> list[list[int]]:
    taken = await asyncio.wait_for(queue.take(lambda parcel: parcel.keys.isdisjoint(refused), lambda: False), 30)
    return [[key for key, _ in parcel.calls] for parcel in taken]


def _single(key: int) -> Parcel:
    return Parcel([(key, ())], None, True)


def test_single_calls_are_taken_until_they_make_enough_work() -> None:
    async def run() -> None:
        queue = ParcelQueue()
        for _ in range(30):
            queue.put(_single(7))
        assert await _take(queue) == [[7]]  # nothing is known of it yet
        queue.note_seconds(7, 0.02)
        assert await _take(queue) == [[7]] * 5
        queue.note_seconds(7, 0.02)
        queue.put(Parcel([(1, ()), (2, ())], 0.1, False))
        assert [len(await _take(queue)) for _ in range(5)] == [5, 5, 5, 5, 4]
        assert await _take(queue) == [[1, 2]]  # a parcel of several calls goes by itself

    asyncio.run(run())


def test_what_was_not_done_comes_first_and_what_does_not_fit_waits() -> None:
    async def run() -> None:
        queue = ParcelQueue()
        queue.put(_single(1))
        queue.put_back([_single(2), _single(3)])
        assert await _take(queue, refused=[2]) == [[3]]
        assert await _take(queue) == [[2]]
        assert await _take(queue) == [[1]]

    asyncio.run(run())


def test_every_parcel_of_a_kind_is_taken_out() -> None:
    async def run() -> None:
        queue = ParcelQueue()
        for key in (1, 2, 1, 3):
            queue.put(_single(key))
        assert [sorted(parcel.keys) for parcel in queue.take_all(lambda parcel: 1 in parcel.keys)] == [[1], [1]]
        assert [await _take(queue) for _ in range(2)] == [[[2]], [[3]]]

    asyncio.run(run())


def test_whoever_waits_is_woken_and_told_when_it_is_over() -> None:
    async def run() -> None:
        queue, over = ParcelQueue(), False
        waiting = asyncio.ensure_future(queue.take(lambda _: True, lambda: over))
        await asyncio.sleep(0)
        over = True
        queue.wake()
        assert await asyncio.wait_for(waiting, 30) == []

    asyncio.run(run())


def test_a_failure_ends_all_that_waits() -> None:
    async def run() -> None:
        queue, parcel = ParcelQueue(), _single(1)
        queue.put(parcel)
        queue.fail_all(ValueError("over"))
        with pytest.raises(ValueError, match="over"):
            await parcel.answers

    asyncio.run(run())
