"""The gate of an endpoint: how many at once, how fast, and when nobody any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from context_bench.errors import ConnectionFailed
from context_bench.http.gate import Gate


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 10))


@asynccontextmanager
async def inside(gate: Gate) -> AsyncIterator[None]:
    if not gate.enter_at_once():
        await gate.enter()
    try:
        yield
    finally:
        gate.leave()


class Visits:
    """People who go through a gate, and how many of them are inside at once."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.inside = self.most = self.served = 0
        self.moments: list[float] = []

    async def one(self, seconds: float = 0.002) -> None:
        async with inside(self.gate):
            self.moments.append(asyncio.get_running_loop().time())
            self.inside += 1
            self.most = max(self.most, self.inside)
            await asyncio.sleep(seconds)
            self.inside -= 1
            self.served += 1

    async def many(self, number: int) -> None:
        await asyncio.gather(*(self.one() for _ in range(number)))


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_no_more_than_the_limit_at_once(limit: int) -> None:
    async def main() -> Visits:
        visits = Visits(Gate("here", limit))
        await visits.many(40)
        return visits

    visits = run(main())
    assert (visits.most, visits.served) == (limit, 40)


def test_without_a_limit_all_at_once() -> None:
    async def main() -> Visits:
        visits = Visits(Gate("here"))
        await visits.many(50)
        return visits

    assert run(main()).most == 50


def test_requests_per_minute() -> None:
    async def main() -> Visits:
        visits = Visits(Gate("here", max_rpm=3000))  # one in 20 ms
        await visits.many(6)
        return visits

    moments = sorted(run(main()).moments)
    assert moments[-1] - moments[0] >= 5 * 0.02 - 0.005


def test_few_refusals_among_many_answers_hold_nobody() -> None:
    """One reply in twenty is refused at random: only the refused request waits."""

    async def main() -> tuple[Visits, float]:
        gate, loop = Gate("here", 8), asyncio.get_running_loop()
        for number in range(200):
            if number % 20 in (3, 4):
                gate.note_refusal(60.0)
            else:
                gate.note_answer()
        before, visits = loop.time(), Visits(gate)
        await visits.many(12)
        return visits, max(visits.moments) - before

    visits, seconds = run(main())
    assert visits.most == 8
    assert seconds < 5


def test_refusals_that_come_before_the_first_answers_hold_nobody() -> None:
    """A 429 is there at once, an answer after a second: three of forty requests are still few."""

    async def main() -> float:
        gate, loop = Gate("here", 80), asyncio.get_running_loop()
        await asyncio.gather(*(gate.enter() for _ in range(40)))
        for _ in range(3):
            gate.leave()
            gate.note_refusal(60.0)
        before, visits = loop.time(), Visits(gate)
        await visits.many(3)
        return max(visits.moments) - before

    assert run(main()) < 5


def test_a_cut_limit_comes_back_quickly_and_then_slowly() -> None:
    """From 40 to 20: places come back by halves up to 30, and above that one with each round of answers."""

    async def main() -> list[int]:
        gate, most = Gate("here", 40), []
        inside = [gate.enter() for _ in range(40)]
        await asyncio.gather(*inside)
        for _ in range(6):
            gate.note_refusal(0.0)
        for _ in inside:
            gate.leave()
        for answers in (0, 20, 30):
            for _ in range(answers):
                gate.note_answer()
            visits = Visits(gate)
            await visits.many(80)
            most.append(visits.most)
        return most

    assert run(main()) == [20, 30, 30]  # thirty answers at thirty places: just under one place


def test_many_refusals_halve_the_limit_and_hold_everyone() -> None:
    async def main() -> tuple[float, int]:
        gate = Gate("here", 8)
        visits = Visits(gate)
        loop = asyncio.get_running_loop()

        async def refused() -> None:
            async with inside(gate):
                await asyncio.sleep(0.001)
                gate.note_refusal(0.1)

        await asyncio.gather(*(refused() for _ in range(8)))
        before = loop.time()
        await visits.many(12)
        return min(visits.moments) - before, visits.most

    waited, most = run(main())
    assert waited >= 0.09
    assert most == 3  # six were under way at the third refusal


def test_the_limit_grows_back_as_the_server_answers() -> None:
    async def main() -> int:
        gate = Gate("here", 8)
        async with inside(gate):
            for _ in range(3):
                gate.note_refusal(0.0)
        for _ in range(200):
            gate.note_answer()
        visits = Visits(gate)
        await visits.many(30)
        return visits.most

    assert run(main()) == 8


def test_the_limit_never_falls_below_one() -> None:
    async def main() -> int:
        gate = Gate("here", 2)
        for _ in range(20):
            gate.note_refusal(0.0)
        visits = Visits(gate)
        await visits.many(5)
        return visits.served

    assert run(main()) == 5


def test_twenty_failed_connections_in_a_row_close_it() -> None:
    async def main() -> Gate:
        gate = Gate("host:1")
        for _ in range(19):
            gate.unreachable("refused")
        assert not gate.closed
        gate.unreachable("refused")
        assert gate.closed
        with pytest.raises(ConnectionFailed, match="host:1 is down"):  # type: ignore[unreachable]
            await gate.enter()
        return gate

    run(main())


def test_an_answer_in_between_starts_the_count_anew() -> None:
    async def main() -> None:
        gate = Gate("here")
        for _ in range(3):
            for _ in range(19):
                gate.unreachable("refused")
            gate.note_answer()
        assert not gate.closed

    run(main())


def test_everybody_who_waits_is_told_when_it_closes() -> None:
    async def main() -> list[Any]:
        gate = Gate("here", 1)

        async def closer() -> None:
            async with inside(gate):
                await asyncio.sleep(0.01)
                gate.close("here is down: gone")

        visits = Visits(gate)
        return await asyncio.gather(closer(), *(visits.one() for _ in range(5)), return_exceptions=True)

    first, *others = run(main())
    assert first is None
    assert len(others) == 5
    assert all(isinstance(each, ConnectionFailed) and "gone" in str(each) for each in others)


def test_nobody_sits_out_a_pause_before_being_told() -> None:
    async def main() -> float:
        gate = Gate("here", 4)
        for _ in range(3):
            gate.note_refusal(30.0)
        waiting = asyncio.create_task(Visits(gate).one())
        await asyncio.sleep(0.01)
        before = asyncio.get_running_loop().time()
        gate.close("gone")
        with pytest.raises(ConnectionFailed):
            await waiting
        return asyncio.get_running_loop().time() - before

    assert run(main()) < 1


def test_one_that_gives_up_waiting_blocks_nobody() -> None:
    async def main() -> int:
        gate = Gate("here", 1)
        visits = Visits(gate)
        first = asyncio.create_task(visits.one(0.2))
        await asyncio.sleep(0)
        quitters = [asyncio.create_task(visits.one()) for _ in range(3)]
        await asyncio.sleep(0)
        patient = asyncio.create_task(visits.one())
        await asyncio.sleep(0)
        for each in quitters:
            each.cancel()
        await asyncio.gather(first, patient)
        return visits.served

    assert run(main()) == 2


def test_first_come_first_served() -> None:
    async def main() -> list[int]:
        gate, order = Gate("here", 1), []

        async def worker(number: int) -> None:
            for _ in range(20):
                async with inside(gate):
                    order.append(number)
                    await asyncio.sleep(0)

        await asyncio.gather(*(worker(number) for number in range(4)))
        return order

    order = run(main())
    assert order == [0, 1, 2, 3] * 20


def test_a_place_that_was_handed_to_somebody_who_left_is_not_lost() -> None:
    async def main() -> int:
        gate = Gate("here", 1)
        await gate.enter()
        waiting = asyncio.ensure_future(gate.enter())
        await asyncio.sleep(0)
        gate.leave()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        visits = Visits(gate)
        await visits.many(3)
        return visits.served

    assert run(main()) == 3
