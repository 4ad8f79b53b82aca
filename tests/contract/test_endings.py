"""Whatever a part does at the end of a run, or on its way there, the rows are kept."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import DataError, evaluate
from context_bench.core import lifecycle
from context_bench.errors import ScoreClash, UsageError
from context_bench.store import Store
from numbered import numbered


class Plain:
    name = "plain"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": example["context"]}


def _raise(error: BaseException) -> Callable[..., Any]:
    def end(_: Any) -> Any:
        raise error

    return end


def _raise_later(error: BaseException) -> Callable[..., Any]:
    async def end(_: Any) -> Any:
        raise error

    return end


ENDS = [
    ValueError("no"),
    SystemExit(3),
    KeyboardInterrupt(),
    asyncio.CancelledError(),
    StopIteration(),
    GeneratorExit(),
]


@pytest.mark.parametrize("end", [_raise, _raise_later], ids=["called", "awaited"])
@pytest.mark.parametrize("error", ENDS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kept", [False, True], ids=["no store", "store"])
def test_a_system_that_raises_at_its_end(error: BaseException, end: Any, kept: bool, tmp_path: Path) -> None:
    system = type("Ends", (Plain,), {"finish": end(error)})()
    with pytest.warns(UserWarning, match=rf"plain failed in finish\(\): {type(error).__name__}|coroutine raised"):
        result = evaluate(system, numbered(1, 2), progress=False, cache_dir=tmp_path if kept else None)
    assert [row.example_id for row in result.rows] == [1, 2]
    if kept:
        with Store(tmp_path) as store:
            assert store.run("last").status == "done"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_system_that_hangs_at_its_end_is_left_alone(asynchronous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "MAX_FINISH_SECONDS", 0.2)
    ended: list[str] = []

    class Hangs(Plain):
        def finish(self) -> None:
            time.sleep(30)

    class HangsAwaited(Plain):
        async def finish(self) -> None:
            await asyncio.sleep(30)

    class Ends(Plain):
        name = "ends"

        def finish(self) -> None:
            ended.append(self.name)

    started = time.monotonic()
    with pytest.warns(UserWarning, match=r"plain failed in finish\(\): it did not return within 0.2 s"):
        result = evaluate([HangsAwaited() if asynchronous else Hangs(), Ends()], numbered(1), progress=False)
    assert len(result.rows) == 2
    assert ended == ["ends"]
    assert time.monotonic() - started < 20


def test_an_evaluator_is_prepared_and_ended_like_a_system() -> None:
    events: list[str] = []

    class Judge:
        name = "judge"

        async def prepare(self) -> None:
            events.append("prepare")

        def score(self, original: Any, processed: Any) -> dict[str, float]:
            events.append("score")
            return {"judge": 1.0}

        def finish(self) -> None:
            events.append("finish")
            raise SystemExit

    with pytest.warns(UserWarning, match=r"judge failed in finish\(\): SystemExit"):
        result = evaluate(Plain(), numbered(1), [Judge()], progress=False)
    assert events == ["prepare", "score", "finish"]
    assert result.rows[0].scores["judge"] == 1.0


@pytest.mark.parametrize("returned", [None, 3.0, "yes", ["a"]])
def test_an_evaluator_that_returns_no_dict_leaves_the_rows_before(returned: Any) -> None:
    class Odd:
        name = "odd"

        def score(self, original: dict[str, Any], processed: Any) -> Any:
            return returned if original["id"] == 3 else {"odd": 1.0}

    with pytest.raises(UsageError, match=r"evaluator 'odd' returned .*; it must return a dict") as caught:
        evaluate(Plain(), numbered(1, 2, 3, 4), [Odd()], progress=False)
    assert [row.example_id for row in caught.value.result.rows] == [1, 2]  # type: ignore[attr-defined]


def test_scores_that_clash_in_the_middle_leave_the_rows_before() -> None:
    class One:
        name = "one"

        def score(self, original: dict[str, Any], processed: Any) -> dict[str, float]:
            return {"same" if original["id"] == 3 else self.name: 1.0}

    class Two(One):
        name = "two"

    with pytest.raises(ScoreClash) as caught:
        evaluate(Plain(), numbered(1, 2, 3), [One(), Two()], progress=False)
    assert [row.example_id for row in caught.value.result.rows] == [1, 2]  # type: ignore[attr-defined]


# --- metrics


class Fails:
    name = "fails"

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error or ZeroDivisionError("by zero")

    def compute(self, rows: Any) -> dict[str, float]:
        raise self._error


class Tally:
    def __init__(self, where: str) -> None:
        self._where = where

    def __deepcopy__(self, memo: Any) -> Any:
        if self._where == "copy":
            raise TypeError("cannot be copied")
        return Tally(self._where)

    def add(self, row: Any) -> None:
        if self._where == "add":
            raise RuntimeError("add")

    def result(self) -> dict[str, float]:
        if self._where == "result":
            raise RuntimeError("result")
        return {"own": 1.0}

    def notes(self) -> Any:
        return 5 if self._where == "notes" else {}


class Starts:
    name = "starts"
    by_dataset = ("own",)

    def __init__(self, where: str) -> None:
        self._where = where

    def start(self) -> Tally:
        return Tally(self._where)

    def compute(self, rows: Any) -> dict[str, float]:
        return {}


def test_a_metric_that_fails_costs_its_own_numbers_only(tmp_path: Path) -> None:
    from context_bench.metrics import MeanScore

    with pytest.warns(UserWarning, match="the metric 'fails' failed, and its numbers are missing: ZeroDivisionError"):
        result = evaluate(Plain(), numbered(1, 2), metrics=[MeanScore("recall"), Fails()], progress=False)
    assert len(result.rows) == 2
    assert result.summary["plain"]["mean_score"] == 1.0
    assert math.isnan(result.summary["plain"]["fails"])
    assert result.notes["plain"]["fails"] == "not measured: the metric 'fails' failed: ZeroDivisionError: by zero"
    assert json.loads(result.to_json())["summary"]["plain"]["fails"] is None


def test_a_tally_that_fails_on_a_row_ends_the_run_with_that_row() -> None:
    with pytest.raises(RuntimeError, match="add") as caught:
        evaluate(Plain(), numbered(1, 2), metrics=[Starts("add")], progress=False)
    result = caught.value.result  # type: ignore[attr-defined]
    assert [row.example_id for row in result.rows] == [1]
    assert math.isnan(result.summary["plain"]["starts"])


@pytest.mark.parametrize("where", ["result", "notes"])
def test_a_tally_that_fails_costs_its_own_numbers_only(where: str) -> None:
    with pytest.warns(UserWarning, match="the metric 'starts' failed"):
        result = evaluate(Plain(), numbered(1, 2), metrics=[Starts(where)], progress=False, keep_rows=True)
    assert len(result.rows) == 2
    assert math.isnan(result.summary["plain"]["starts"])


def test_a_tally_that_cannot_be_copied_has_no_numbers_by_dataset() -> None:
    data = [*numbered(1, dataset="a"), *numbered(2, dataset="b")]
    result = evaluate(Plain(), data, metrics=[Starts("copy")], progress=False)
    assert len(result.rows) == 2
    assert result.summary["plain"]["own"] == 1.0


@pytest.mark.parametrize("value", [None, "high", object(), [1]])
def test_a_value_of_a_metric_that_is_no_number_is_not_measured(value: Any) -> None:
    class Odd:
        name = "odd"

        def compute(self, rows: Any) -> Any:
            return {"odd": value, "good": 2}

    result = evaluate(Plain(), numbered(1), metrics=[Odd()], progress=False)
    assert math.isnan(result.summary["plain"]["odd"])
    assert result.notes["plain"]["odd"].startswith("not measured: the metric gave ")
    assert result.summary["plain"]["good"] == 2.0
    assert "not measured" in result._repr_markdown_()


# --- datasets and reporters


@pytest.mark.parametrize("error", [OSError("gone"), SystemExit(1)], ids=lambda error: type(error).__name__)
def test_a_dataset_that_fails_at_its_end(error: BaseException) -> None:
    def examples() -> Iterator[dict[str, Any]]:
        yield from numbered(1, 2)
        raise error

    with pytest.raises(DataError, match=f"reading the dataset failed after 2 rows: {type(error).__name__}") as caught:
        evaluate(Plain(), examples(), progress=False)
    assert len(caught.value.result.rows) == 2  # type: ignore[attr-defined]


REPORTER = """
class Broken:
    name = "broken"

    def render(self, result):
        raise KeyError("summary")


def number(result):
    return len(result.rows)


class Halfway:
    name = "halfway"

    def render(self, result):
        return ""

    def render_parts(self, result):
        raise SystemExit(0)


class Numbers(Halfway):
    def render_parts(self, result):
        return [len(result.rows)]


class Nothing(Halfway):
    def render_parts(self, result):
        return None
"""


@pytest.mark.parametrize("reporter", ["Broken", "number", "Halfway", "Numbers", "Nothing"])
@pytest.mark.parametrize("kept", [False, True], ids=["no store", "store"])
def test_a_reporter_that_fails_loses_no_row(reporter: str, kept: bool, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(REPORTER)
    run = ["--system", "passthrough", "--dataset", "needle:n=2", "--quiet", "--output", f"own.py:{reporter}"]
    done = called(*run, *([] if kept else ["--no-store"]), cwd=tmp_path)
    assert done.returncode == 2
    assert f"the reporter own.py:{reporter} failed: " in done.stderr
    if kept:
        assert "context-bench runs export" in done.stderr
        done = called("runs", "export", "last", "--output", "json", cwd=tmp_path)
    assert len(json.loads(done.stdout)["rows"]) == 2


@pytest.mark.parametrize("kept", [False, True], ids=["no store", "store"])
def test_a_finish_that_cannot_even_be_read_is_a_warning(kept: bool, tmp_path: Path) -> None:
    class Odd(Plain):
        @property
        def finish(self) -> Any:
            raise RuntimeError("closed already")

    with pytest.warns(UserWarning, match=r"plain failed in finish\(\): `finish` of a Odd must be readable") as told:
        result = evaluate(Odd(), numbered(1, 2), progress=False, cache_dir=tmp_path if kept else None)
    assert len(told) == 1
    assert "RuntimeError: closed already" in str(told[0].message)
    assert [row.error for row in result.rows] == [None, None]


def test_a_prepare_that_is_not_asynchronous_is_not_called_and_says_so() -> None:
    class Mine(Plain):
        def prepare(self) -> None:
            raise AssertionError

    class Judge:
        name = "judge"

        def prepare(self) -> None:
            raise AssertionError

        def score(self, original: Any, processed: Any) -> dict[str, float]:
            return {"judge": 1.0}

    with pytest.warns(UserWarning, match="prepare\\(\\) of .* is not called") as told:
        result = evaluate(Mine(), numbered(1, 2, 3), [Judge()], progress=False)
    assert [str(each.message) for each in told] == [
        "prepare() of plain is not called, because it is not `async def`",
        "prepare() of judge is not called, because it is not `async def`",
    ]
    assert [row.error for row in result.rows] == [None] * 3


@pytest.mark.parametrize("member", ["prepare", "model", "aprocess", "reads_gold", "sends_elsewhere"])
def test_a_member_that_cannot_be_read_is_one_sentence_before_the_run(member: str, tmp_path: Path) -> None:
    def read(_: Any) -> Any:
        raise RuntimeError("not yet")

    system = type("Odd", (Plain,), {member: property(read)})()
    with pytest.raises(UsageError, match=f"`{member}` of a Odd must be readable .it raised RuntimeError: not yet"):
        evaluate(system, numbered(1), progress=False, cache_dir=tmp_path)
