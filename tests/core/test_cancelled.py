"""A CancelledError of a system or an evaluator is a failure like any other; only the run itself cancels on purpose."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from context_bench import aevaluate, evaluate
from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.core.schedule import Feed, Lane, Workers
from context_bench.errors import ContextBenchError
from context_bench.memory.members import Worker
from context_bench.monitors.limits import Limits
from numbered import numbered

COUNT, CANCELLED = 8, {2, 5}
WAYS = ["raised", "a child", "itself"]


async def cancel(way: str) -> None:
    """Raise a CancelledError that has nothing to do with the end of the run."""
    if way == "raised":
        raise asyncio.CancelledError
    if way == "a child":
        child = asyncio.ensure_future(asyncio.sleep(30))
        child.cancel()
        await child
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(30)


class Cancelling:
    """An endpoint that is cancelled on some examples."""

    name = fingerprint = "p"

    def __init__(self, way: str) -> None:
        self.way = way
        self.left_over: list[int] = []

    def process(self, example: dict[str, Any]) -> Any:
        raise AssertionError("aprocess is there")

    async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        task = asyncio.current_task()
        self.left_over.append(getattr(task, "cancelling", int)())
        if example["id"] in CANCELLED:
            await cancel(self.way)
        return {"response": f"c{example['id']}"}


class Talking(Cancelling):
    """The same for conversations."""

    async def aprocess_conversation(self, turns: list[dict[str, Any]]) -> list[str]:
        number = int(turns[0]["content"])
        answer = await self.aprocess({"id": number})
        return [answer["response"]] * sum(turn["content"] is None for turn in turns)


@pytest.mark.parametrize("max_workers", [1, 3])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limits", [None, Limits(max_errors="5")], ids=["no limit", "a limit"])
def test_a_system_that_is_cancelled_fails_on_that_example_alone(
    tmp_path: Path, way: str, max_workers: int, limits: Limits | None
) -> None:
    system = Cancelling(way)
    result = evaluate(system, numbered(*range(COUNT)), max_workers=max_workers, cache_dir=tmp_path, limits=limits)
    assert [row.example_id for row in result.rows] == list(range(COUNT))
    errors = {row.example_id: row.error for row in result.rows if row.error}
    assert errors == dict.fromkeys(sorted(CANCELLED), "CancelledError")
    assert result.config["stopped"] is None
    assert system.left_over == [0] * COUNT, "no later example is told that somebody cancels it"
    again = evaluate(system, numbered(*range(COUNT)), max_workers=max_workers, cache_dir=tmp_path)
    assert again.config["reused"] == COUNT - len(CANCELLED), "what failed is tried again"


@pytest.mark.parametrize("max_workers", [1, 3])
def test_so_does_a_conversation(max_workers: int) -> None:
    turns = [{"role": "user", "content": "0"}, {"role": "assistant", "content": None}]
    data = [
        {"id": number, "turns": [{**turns[0], "content": str(number)}, turns[1], *turns], "answer": "c"}
        for number in range(COUNT)
    ]
    result = evaluate(Talking("a child"), data, max_workers=max_workers)
    assert [(row.example_id, row.error) for row in result.rows] == [
        (number, "CancelledError" if number in CANCELLED else None) for number in range(COUNT)
    ]


def test_at_the_limit_of_errors_such_failures_stop_the_run() -> None:
    result = evaluate(Cancelling("raised"), numbered(*range(COUNT)), max_workers=1, limits=Limits(max_errors="1"))
    assert [row.example_id for row in result.rows] == list(range(6))
    assert "1" in str(result.config["stopped"])


class Judge:
    """An evaluator that is cancelled on some examples."""

    name = "judge"

    def __init__(self, way: str) -> None:
        self.way = way

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        if original["id"] in CANCELLED:
            raise asyncio.CancelledError
        return {"judged": 1.0}

    async def wait(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        await asyncio.sleep(0)
        if original["id"] in CANCELLED:
            await cancel(self.way)
        return {"judged": 1.0}


class AsyncJudge(Judge):
    def ascore(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
        return self.wait(original, processed)


class SlowJudge(Judge):
    slow = True


JUDGES = [Judge("raised"), SlowJudge("raised"), *map(AsyncJudge, WAYS)]


@pytest.mark.parametrize("max_workers", [1, 3])
@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: f"{type(judge).__name__} {judge.way}")
@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_an_evaluator_that_is_cancelled_is_a_missing_score(
    tmp_path: Path, judge: Judge, place: str, max_workers: int
) -> None:
    async def endpoint(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": f"c{example['id']}"}

    def function(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": f"c{example['id']}"}

    system = function if place == "here" else endpoint
    options: dict[str, Any] = {"evaluators": [judge], "max_workers": max_workers, "cache_dir": tmp_path}
    rows = evaluate(system, numbered(*range(COUNT)), **options).rows
    assert [row.example_id for row in rows] == list(range(COUNT))
    assert [row.error for row in rows] == [None] * COUNT
    assert {row.example_id for row in rows if "judged" not in row.scores} == CANCELLED
    assert {row.unscored["judge"] for row in rows if "judged" not in row.scores} == {"CancelledError"}


@pytest.mark.parametrize("name", ["query", "aquery"])
def test_so_does_a_call_of_a_memory(name: str) -> None:
    async def aquery(question: str) -> str:
        await cancel("a child")
        return ""

    def query(question: str) -> str:
        raise asyncio.CancelledError

    async def main() -> Any:
        worker = Worker("m", 10.0)
        try:
            return await worker.call("query()", {"query": query, "aquery": aquery}[name], "which?")
        finally:
            worker.close()

    with pytest.raises(ContextBenchError, match=r"^m: query\(\) failed: CancelledError$"):
        asyncio.run(main())


@pytest.mark.parametrize("stubborn", [False, True], ids=["told once", "raises its own"])
def test_the_end_of_a_run_is_none_of_those(stubborn: bool) -> None:
    begun: list[int] = []

    async def hangs(example: dict[str, Any]) -> dict[str, Any]:
        begun.append(example["id"])
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            if stubborn:
                raise asyncio.CancelledError("mine") from None
            raise
        return {}

    async def main() -> None:
        await asyncio.wait_for(aevaluate(hangs, numbered(*range(COUNT)), max_workers=2, preflight=False), 0.5)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(main())
    assert begun == [0, 1], "nothing was begun after the end"


def test_a_worker_that_somebody_cancels_ends_the_work_with_an_error() -> None:
    async def main() -> None:
        async def work(job: Job) -> None:
            await cancel("itself")

        lane = Lane(1, [(0, object())])  # type: ignore[list-item]
        feed = Feed(iter(items), [lane], 1, 1, 4)
        workers = Workers(feed, [lane], work)
        try:
            await asyncio.wait_for(workers.over, 10)
        finally:
            await workers.close()

    items = [Item(example) for example in numbered(0, 1)]
    with pytest.raises(ContextBenchError, match="cancelled by a system, an evaluator or the program around it"):
        asyncio.run(main())
