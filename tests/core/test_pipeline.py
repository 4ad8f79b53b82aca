"""From jobs to rows: none lost, none twice, each soon; a failure ends the run, and what had come is kept."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from context_bench import aevaluate, evaluate
from context_bench.core import pipeline
from context_bench.errors import UsageError
from context_bench.monitors.limits import Limits
from context_bench.pricing import Price, Prices
from context_bench.results import EvalRow
from context_bench.store import Store
from context_bench.store.database import FILE_NAME, connect
from numbered import expected, facts, numbered

FOREVER = 30.0


async def at_once(_number: int) -> None:
    """Nothing to wait for."""


def hangs_from(first: int) -> Callable[[int], Awaitable[None]]:
    """No answer to an example from this one on."""

    async def wait(number: int) -> None:
        if number >= first:
            await asyncio.sleep(FOREVER)

    return wait


class Endpoint:
    """Gives the right answer once `wait(number)` is over, and tells what it was asked."""

    name, fingerprint = "endpoint", "the one of these tests"

    def __init__(self, wait: Callable[[int], Awaitable[None]] = at_once) -> None:
        self.wait, self.asked = wait, list[int]()

    async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
        number = example["id"]
        self.asked.append(number)
        await self.wait(number)
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        return {"response": f"c{number}", "metadata": usage}

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("an endpoint is awaited")


class Seen:
    """A metric that shows which rows have come so far."""

    name = "seen"

    def __init__(self) -> None:
        self.ids: list[Any] = []

    def start(self) -> Seen:
        return self

    def add(self, row: EvalRow) -> None:
        self.ids.append(row.example_id)

    def result(self) -> dict[str, float]:
        return {"seen": float(len(self.ids))}

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        raise AssertionError("rows are taken in one by one")

    async def at_least(self, count: int) -> None:
        give_up = time.monotonic() + 10
        while len(self.ids) < count:
            assert time.monotonic() < give_up, f"{len(self.ids)} rows came"
            await asyncio.sleep(0.001)


class Judge:
    """1.0 for the right answer; tells which examples it was asked about."""

    name = "judge"

    def __init__(self, fingerprint: str = "1") -> None:
        self.fingerprint, self.judged = fingerprint, list[int]()

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        self.judged.append(original["id"])
        return {"exact_match": float(processed["response"] == original["answer"])}


def stored(directory: Path, run: str = "last") -> list[EvalRow]:
    with Store(directory, readonly=True) as store:
        return list(store.run_rows(store.run(run)))


def never_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gathered waits for others, or for the end; the first answer alone shows how long one takes."""
    monkeypatch.setattr(pipeline, "MAX_BATCH_DELAY", 600.0)
    monkeypatch.setattr(pipeline, "MAX_LOOP_BLOCK", 600.0)


# All become rows


async def backwards(number: int) -> None:
    """Of those in flight at once the last comes first."""
    await asyncio.sleep((64 - number % 64) / 4_000)


@pytest.mark.parametrize("wait", [at_once, backwards])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 130])
def test_each_answer_is_one_row_in_its_place(
    tmp_path: Path, count: int, wait: Callable[[int], Awaitable[None]]
) -> None:
    endpoint, seen = Endpoint(wait), Seen()
    result = evaluate(endpoint, numbered(*range(count)), metrics=[seen], max_workers=64, cache_dir=tmp_path)
    assert facts(result.rows) == facts(stored(tmp_path)) == expected(*range(count))
    assert Counter(seen.ids) == Counter(endpoint.asked) == Counter(range(count))
    assert result.summary["endpoint"]["num_examples"] == count


def test_an_answer_does_not_wait_for_others_to_come() -> None:
    seen = Seen()

    async def wait(number: int) -> None:
        await seen.at_least(number)

    result = evaluate(Endpoint(wait), numbered(*range(4)), metrics=[seen], max_workers=4)
    assert facts(result.rows) == expected(*range(4))
    assert seen.ids == [0, 1, 2, 3]


def test_so_many_answers_wait_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    never_by_time(monkeypatch)
    seen = Seen()

    async def wait(number: int) -> None:
        await seen.at_least(1 + (number - 1) // 64 * 64 if number else 0)  # the first, and then 64 at a time

    result = evaluate(Endpoint(wait), numbered(*range(130)), metrics=[seen], max_workers=130)
    assert facts(result.rows) == expected(*range(130))


def test_what_takes_long_to_judge_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the replies that come in meanwhile would wait for all of it."""
    monkeypatch.setattr(pipeline, "MAX_BATCH_DELAY", 600.0)
    seen = Seen()

    class Thorough(Judge):
        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            time.sleep(0.005)
            return super().score(original, processed)

    async def wait(number: int) -> None:
        await seen.at_least(number)

    result = evaluate(Endpoint(wait), numbered(*range(8)), [Thorough()], metrics=[seen], max_workers=8)
    assert facts(result.rows) == expected(*range(8))


def test_the_end_of_the_input_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    never_by_time(monkeypatch)
    started = time.monotonic()
    assert facts(evaluate(Endpoint(), numbered(1, 2, 3), max_workers=8).rows) == expected(1, 2, 3)
    assert time.monotonic() - started < 10


def test_a_failed_call_among_answers_is_a_row_too() -> None:
    async def wait(number: int) -> None:
        if number % 3 == 1:
            raise ConnectionError(f"no {number}")

    rows = evaluate(Endpoint(wait), numbered(*range(70)), max_workers=64).rows
    assert [row.example_id for row in rows] == list(range(70))
    assert [row.error for row in rows[:3]] == [None, "ConnectionError: no 1", None]
    assert {row.example_id for row in rows if row.error is None} == {n for n in range(70) if n % 3 != 1}


def test_an_answer_that_cannot_be_written_down_is_the_error_of_its_row_alone(tmp_path: Path) -> None:
    class Circular(Endpoint):
        async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
            given = await super().aprocess(example)
            if example["id"] == 2:
                given["metadata"]["itself"] = given["metadata"]
            return given

    rows = evaluate(Circular(), numbered(*range(5)), max_workers=4, cache_dir=tmp_path).rows
    assert [row.error is None for row in rows] == [True, True, False, True, True]
    assert "its result cannot be stored" in str(rows[2].error)
    assert [row.error for row in stored(tmp_path)] == [row.error for row in rows]


@pytest.mark.parametrize("limits", [None, Limits(max_errors="5")])
def test_in_this_process_a_row_is_there_before_the_next_call(limits: Limits | None) -> None:
    seen, before = Seen(), list[int]()

    def system(example: dict[str, Any]) -> str:
        before.append(len(seen.ids))
        if limits is None:
            time.sleep(0.003)  # calls that take less than a moment are made several at a time, unless there is a limit
        return str(example["context"])

    evaluate(system, numbered(*range(10)), metrics=[seen], limits=limits)
    assert before == list(range(10))


def test_in_this_process_what_was_answered_does_not_wait_for_a_call_that_takes_long() -> None:
    seen, before = Seen(), list[int]()

    def system(example: dict[str, Any]) -> str:
        if example["id"] == 50:
            time.sleep(0.3)
            before.extend(seen.ids)
        return str(example["context"])

    evaluate(system, numbered(*range(60)), metrics=[seen])
    assert before == list(range(50))
    assert seen.ids == list(range(60))


def test_a_function_in_this_process_costs_little() -> None:
    """An example in CPU time of this process; to hand each to a thread and back took more than 200 us."""
    data = numbered(*range(2_000))
    evaluate(lambda example: {"response": "c"}, data[:50], progress=False)
    costs = []
    for _ in range(3):
        started = time.process_time()
        evaluate(lambda example: {"response": "c"}, data, evaluators=[Judge()], progress=False)
        costs.append((time.process_time() - started) / len(data))
    assert min(costs) < 120e-6


# How soon


def test_an_answer_is_on_disk_within_50_ms(tmp_path: Path) -> None:
    """From the return of `aprocess`; with one slot the next call looks how long that of the last one took."""
    with Store(tmp_path) as store, closing(connect(tmp_path, readonly=True)) as reader:
        query = "SELECT (SELECT count(*) FROM rows WHERE answer IS NOT NULL) + (SELECT count(*) FROM responses)"
        times: list[float] = []
        returned = 0.0

        async def wait(number: int) -> None:
            nonlocal returned
            give_up = time.monotonic() + 10
            while reader.execute(query).fetchone() != (number,):
                assert time.monotonic() < give_up, "it never came"
                await asyncio.sleep(0.001)
            now = time.monotonic()
            if number:
                times.append(now - returned)
            returned = time.monotonic()

        rows = evaluate(Endpoint(wait), numbered(*range(21)), store=store).rows
    assert facts(rows) == expected(*range(21))
    assert len(times) == 20
    assert median(times) < 0.05  # a busy machine may hold up any single one


# Failures


class Rubbish(Judge):
    """Returns no scores for one example."""

    def __init__(self, bad: int) -> None:
        super().__init__("rubbish")
        self.bad = bad

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
        return "good" if original["id"] == self.bad else super().score(original, processed)


@pytest.mark.parametrize("limits", [None, Limits(max_errors="99")], ids=["gathered", "one by one"])
def test_rubbish_of_an_evaluator_ends_the_run_and_what_had_come_is_kept(tmp_path: Path, limits: Limits | None) -> None:
    examples, started = numbered(*range(12)), time.monotonic()

    async def wait(number: int) -> None:
        while number == 3 and 7 not in endpoint.asked:  # until others are in flight
            await asyncio.sleep(0.001)
        await hangs_from(4)(number)

    endpoint, rubbish = Endpoint(wait), Rubbish(3)
    with pytest.raises(UsageError, match="'judge' returned str"):
        evaluate(endpoint, examples, [rubbish], max_workers=8, limits=limits, cache_dir=tmp_path)
    assert time.monotonic() - started < FOREVER / 3
    assert {4, 5, 6, 7} < set(endpoint.asked)
    with Store(tmp_path, readonly=True) as store:
        assert store.run("last").status == "failed"
    again = Endpoint()
    result = evaluate(again, examples, [Judge()], cache_dir=tmp_path)
    assert again.asked == list(range(4, 12))
    assert facts(result.rows) == expected(*range(12))
    assert result.config["reused"] == 4


def test_rubbish_among_the_last_answers_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    never_by_time(monkeypatch)
    with pytest.raises(UsageError, match="'judge' returned str"):
        evaluate(Endpoint(), numbered(0, 1, 2), [Rubbish(2)], max_workers=8)


@pytest.mark.parametrize("slow", [False, True])
def test_what_was_gathered_is_kept_when_the_run_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    never_by_time(monkeypatch)
    endpoint = Endpoint(hangs_from(5))
    judge = Judge()
    judge.slow = slow  # type: ignore[attr-defined]

    async def main() -> None:
        work = aevaluate(endpoint, numbered(*range(8)), [judge], max_workers=8, cache_dir=tmp_path)
        task = asyncio.ensure_future(work)
        give_up = time.monotonic() + 10
        while len(endpoint.asked) < 8 or (slow and len(judge.judged) < 5):
            assert time.monotonic() < give_up
            await asyncio.sleep(0.001)
        if not slow:
            assert judge.judged == [0], "the others are still being gathered"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    again = Endpoint()
    result = evaluate(again, numbered(*range(8)), [judge], cache_dir=tmp_path)
    assert again.asked == [5, 6, 7]
    assert facts(result.rows) == expected(*range(8))


# A store that is behind


@pytest.mark.long
@pytest.mark.parametrize("long", [False, True], ids=["short contexts", "long contexts"])
def test_a_run_waits_for_a_store_that_is_behind(tmp_path: Path, long: bool) -> None:
    """Another process holds the store up: examples are read until enough of them wait, and no further."""
    Store(tmp_path).close()
    count, most = (1_000, 900) if long else (6_000, 4_000)  # 64 MB of long contexts are 671, and 2,000 short results
    read: list[int] = []
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None, check_same_thread=False)

    def read_examples() -> Iterator[dict[str, Any]]:
        for (example,) in (numbered(number) for number in range(count)):
            if len(read) == 100:
                other.execute("BEGIN IMMEDIATE")
                releasing.start()
            read.append(example["id"])
            yield example | {"context": example["context"] + " word" * 20_000} if long else example

    def release() -> None:
        while len(read) < count and (not seen or len(read) > seen[-1]):
            seen.append(len(read))
            time.sleep(0.5)
        seen.append(len(read))
        other.execute("COMMIT")

    seen: list[int] = []
    releasing = threading.Thread(target=release)
    with closing(other):
        result = evaluate("passthrough", read_examples(), [Judge("1")], cache_dir=tmp_path)
        releasing.join()
    assert 100 <= seen[-1] < most
    assert [row.example_id for row in result.rows] == [*range(count)]
    assert len(stored(tmp_path, result.config["run"])) == count


# Limits


@pytest.mark.parametrize("workers", [1, 4, 16])
@pytest.mark.parametrize("wait", [at_once, backwards])
def test_at_a_limit_only_what_was_in_flight_follows(workers: int, wait: Callable[[int], Awaitable[None]]) -> None:
    endpoint, limits = Endpoint(wait), Limits(max_total_tokens=5 * 12)
    result = evaluate(endpoint, numbered(*range(200)), max_workers=workers, limits=limits)
    assert 5 <= len(endpoint.asked) <= 5 + workers - 1
    assert facts(result.rows) == expected(*sorted(endpoint.asked)), "what was in flight is finished"
    assert "the limit of 60 tokens is reached" in result.config["stopped"]


# What is known


@pytest.mark.parametrize("priced", [False, True], ids=["without prices", "with new prices"])
def test_rows_answers_and_nothing_known_in_one_run(tmp_path: Path, priced: bool) -> None:
    """Of every third example the row is known, of another third the answer by another judge."""
    old, new = (Prices({"default": price}) if priced else None for price in (Price(1, 1), Price(100_000, 200_000)))
    rows, answers, nothing = ([*range(first, 60, 3)] for first in range(3))
    evaluate(Endpoint(), numbered(*rows), [Judge("1")], cache_dir=tmp_path, prices=old)
    evaluate(Endpoint(), numbered(*answers), [Judge("other")], cache_dir=tmp_path, prices=old)
    endpoint, judge = Endpoint(), Judge("1")
    result = evaluate(endpoint, numbered(*range(60)), [judge], max_workers=8, cache_dir=tmp_path, prices=new)
    assert sorted(endpoint.asked) == nothing
    assert sorted(judge.judged) == sorted(answers + nothing)
    assert result.config["reused"] == 40
    kept = stored(tmp_path, result.config["run"])
    for found in (result.rows, kept):
        assert facts(found) == expected(*range(60))
        # 10 tokens at 100,000 dollars a million and 2 at 200,000
        assert [row.metadata.get("cost_usd") for row in found] == [1.4 if priced else None] * 60

    endpoint, judge = Endpoint(), Judge("1")
    again = evaluate(endpoint, numbered(*range(60)), [judge], max_workers=8, cache_dir=tmp_path, prices=new)
    assert (endpoint.asked, judge.judged, again.rows) == ([], [], result.rows)
