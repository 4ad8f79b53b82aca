"""The feed hands out every job once, in turns, and reads no further than the slowest lane allows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.core.schedule import Feed, Lane, Workers, run_examples
from context_bench.systems.adapt import adapt


async def run_lanes(feed: Feed, lanes: list[Lane], work: Any) -> None:
    """Work through the feed to its end."""
    workers = Workers(feed, lanes, work)
    try:
        await workers.over
    finally:
        await workers.close()


def system(name: str) -> Any:
    def process(example: dict[str, Any]) -> str:
        return ""

    process.__name__ = name
    return adapt(process)


def examples(count: int) -> Any:
    return iter([Item({"id": number, "context": ""}) for number in range(count)])


def lanes(*slots: int) -> list[Lane]:
    return [Lane(each, [(place, system(f"s{place}"))]) for place, each in enumerate(slots)]


def collect(count: int, repeats: int, *slots: int) -> list[Job]:
    done: list[Job] = []

    async def main() -> None:
        all_lanes = lanes(*slots)
        feed = Feed(examples(count), all_lanes, len(slots) * repeats, repeats, ahead=4)

        async def work(job: Job) -> None:
            await asyncio.sleep(0)
            done.append(job)

        await run_lanes(feed, all_lanes, work)

    asyncio.run(asyncio.wait_for(main(), 10))
    return done


@pytest.mark.parametrize("slots", [(1,), (3,), (1, 1), (1, 5, 2)])
@pytest.mark.parametrize("repeats", [1, 3])
def test_every_job_is_done_once_and_has_a_place_of_its_own(slots: tuple[int, ...], repeats: int) -> None:
    done = collect(7, repeats, *slots)
    assert sorted(job.order for job in done) == list(range(7 * repeats * len(slots)))
    assert len({(job.item.example["id"], job.system.name, job.repeat) for job in done}) == len(done)


def test_no_more_than_the_slots_of_a_lane_work_at_once() -> None:
    now: dict[str, int] = {"s0": 0, "s1": 0}
    most = dict(now)

    async def work(job: Job) -> None:
        name = job.system.name
        now[name] += 1
        most[name] = max(most[name], now[name])
        await asyncio.sleep(0.002)
        now[name] -= 1

    async def main() -> None:
        all_lanes = lanes(1, 4)
        await run_lanes(Feed(examples(20), all_lanes, 2, 1, ahead=10), all_lanes, work)

    asyncio.run(asyncio.wait_for(main(), 10))
    assert most == {"s0": 1, "s1": 4}


def test_a_fast_lane_waits_for_a_slow_one() -> None:
    started: dict[str, int] = {"s0": 0, "s1": 0}
    furthest = 0

    async def work(job: Job) -> None:
        nonlocal furthest
        started[job.system.name] += 1
        furthest = max(furthest, started["s0"] - started["s1"])
        await asyncio.sleep(0 if job.system.name == "s0" else 0.002)

    async def main() -> None:
        all_lanes = lanes(1, 1)
        await run_lanes(Feed(examples(30), all_lanes, 2, 1, ahead=3), all_lanes, work)

    asyncio.run(asyncio.wait_for(main(), 10))
    assert started == {"s0": 30, "s1": 30}
    assert furthest <= 4


def test_an_error_of_the_work_itself_ends_the_run() -> None:
    async def work(job: Job) -> None:
        await asyncio.sleep(0)
        if job.order == 3:
            raise RuntimeError("the engine is broken")

    async def main() -> None:
        all_lanes = lanes(2, 2)
        await run_lanes(Feed(examples(100), all_lanes, 2, 1, ahead=3), all_lanes, work)

    with pytest.raises(RuntimeError, match="engine is broken"):
        asyncio.run(asyncio.wait_for(main(), 10))


def test_input_that_fails_ends_the_input_for_all_lanes_alike() -> None:
    def source() -> Any:
        yield from examples(3)
        raise ValueError("bad input")

    done: list[tuple[str, int]] = []

    async def main() -> Exception | None:
        all_lanes = lanes(1, 3)
        feed = Feed(source(), all_lanes, 2, 1, ahead=2)

        async def work(job: Job) -> None:
            await asyncio.sleep(0.001 if job.system.name == "s0" else 0)
            done.append((job.system.name, job.item.example["id"]))

        await run_lanes(feed, all_lanes, work)
        return feed.error

    error = asyncio.run(asyncio.wait_for(main(), 10))
    assert isinstance(error, ValueError)
    assert sorted(done) == [("s0", 0), ("s0", 1), ("s0", 2), ("s1", 0), ("s1", 1), ("s1", 2)]


def test_stopped_it_hands_out_nothing_more() -> None:
    done: list[int] = []

    async def main() -> None:
        all_lanes = lanes(1, 1)
        feed = Feed(examples(50), all_lanes, 2, 1, ahead=3)

        async def work(job: Job) -> None:
            await asyncio.sleep(0)
            done.append(job.order)
            if len(done) == 5:
                feed.stop()

        await run_lanes(feed, all_lanes, work)

    asyncio.run(asyncio.wait_for(main(), 10))
    assert 5 <= len(done) <= 6


def test_only_what_the_screen_leaves_is_handed_out_and_nothing_after_it_stops() -> None:
    done: list[int] = []
    seen: list[list[int]] = []

    def odd(jobs: list[Job]) -> list[Job]:
        seen.append([job.order for job in jobs])
        if 40 in seen[-1]:
            feed.stop()
        return [job for job in jobs if job.order % 2]

    async def work(job: Job) -> None:
        await asyncio.sleep(0)
        done.append(job.order)

    async def main() -> None:
        nonlocal feed  # type: ignore[misc]
        all_lanes = lanes(8)
        feed = Feed(examples(100), all_lanes, 1, 1, ahead=32, screen=odd)
        await run_lanes(feed, all_lanes, work)

    feed: Feed
    asyncio.run(asyncio.wait_for(main(), 10))
    assert seen == [list(range(start, start + 4)) for start in range(0, 44, 4)]
    assert done
    assert set(done) <= set(range(1, 40, 2))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8])
def test_all_are_known(count: int) -> None:
    async def main() -> int:
        all_lanes = lanes(8, 2)
        known: list[Job] = []
        feed = Feed(examples(count), all_lanes, 2, 1, ahead=32, screen=lambda jobs: known.extend(jobs) or [])
        await run_lanes(feed, all_lanes, lambda job: pytest.fail(f"{job} was known"))
        return len(known)

    assert asyncio.run(asyncio.wait_for(main(), 10)) == 2 * count


def test_examples_are_worked_on_without_a_system_some_at_a_time() -> None:
    done: list[Any] = []
    now, most = 0, 0

    async def work(job: Job) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        done.append(job.item.example["id"])

    def source() -> Any:
        yield from examples(9)
        raise ValueError("the tenth")

    async def main() -> None:
        await run_examples(source(), 3, work)

    with pytest.raises(ValueError, match="the tenth"):
        asyncio.run(asyncio.wait_for(main(), 60))
    assert sorted(done) == list(range(9))
    assert most == 3
