"""A run under way: what it changes of this process, and that it puts it back."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from context_bench import aevaluate, evaluate
from context_bench.errors import UsageError
from numbered import numbered

Thresholds = tuple[int, int, int]


@pytest.fixture(autouse=True)
def _usual_collections() -> Iterator[None]:
    """No test leaves other thresholds behind."""
    usual = gc.get_threshold()
    yield
    gc.set_threshold(*usual)


def set_first(first: int) -> Thresholds:
    gc.set_threshold(first, 10, 10)
    return gc.get_threshold()


def during(**options: Any) -> set[Thresholds]:
    """The thresholds that a system finds while it is called."""
    found: set[Thresholds] = set()

    def system(example: dict[str, Any]) -> str:
        found.add(gc.get_threshold())
        return str(example["context"])

    evaluate(system, numbered(1, 2, 3), **options)
    return found


def test_cycles_are_looked_for_less_often_while_it_runs() -> None:
    usual = set_first(700)
    assert during() == {(10_000, *usual[1:])}
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("first", [0, 10_000, 50_000], ids=["off", "as many", "more"])
def test_who_looks_less_often_is_left_alone(first: int) -> None:
    usual = set_first(first)
    assert during() == {usual}
    assert gc.get_threshold() == usual


def test_a_run_that_fails_puts_it_back() -> None:
    class Rubbish:
        name = "rubbish"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
            return "good"

    usual = set_first(700)
    with pytest.raises(UsageError, match="'rubbish' returned str"):
        during(evaluators=[Rubbish()])
    assert gc.get_threshold() == usual


def test_a_run_that_is_cancelled_puts_it_back() -> None:
    usual = set_first(700)
    called = asyncio.Event()

    async def hangs(example: dict[str, Any]) -> str:
        called.set()
        await asyncio.sleep(30)
        return ""

    async def main() -> Thresholds:
        task = asyncio.ensure_future(aevaluate(hangs, numbered(1)))
        await asyncio.wait_for(called.wait(), 10)
        meanwhile = gc.get_threshold()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return meanwhile

    assert asyncio.run(main()) == (10_000, *usual[1:])
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("first_to_end", ["one", "two"])
def test_two_runs_at_once_put_it_back(first_to_end: str) -> None:
    usual = set_first(700)

    async def main() -> None:
        ends = {"one": asyncio.Event(), "two": asyncio.Event()}
        under_way = {"one": asyncio.Event(), "two": asyncio.Event()}

        def run(name: str) -> asyncio.Future[Any]:
            async def system(example: dict[str, Any]) -> dict[str, Any]:
                under_way[name].set()
                await asyncio.wait_for(ends[name].wait(), 10)
                return {"response": name}

            return asyncio.ensure_future(aevaluate(system, numbered(1)))

        runs = {name: run(name) for name in ends}
        for event in under_way.values():
            await asyncio.wait_for(event.wait(), 10)
        for name in sorted(ends, key=lambda each: each != first_to_end):
            ends[name].set()
            result = await runs[name]
            assert [row.response for row in result.rows] == [name]

    asyncio.run(main())
    assert gc.get_threshold() == usual
