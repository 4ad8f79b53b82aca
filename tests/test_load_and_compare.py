"""Results that are read back from files and stores, and compared with each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_bench import EvalResult, Store, evaluate
from context_bench.errors import DataError, UsageError

DATA = [
    {"id": number, "context": f"Box {number} holds {number * 7} keys.", "question": "How many?", "answer": str(number)}
    for number in range(40)
]


def answer_all(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"]}


def answer_half(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"] if example["id"] % 2 else "no idea"}


def run(system: Any, **options: Any) -> EvalResult:
    return evaluate(system, DATA, progress=False, **options)


class Box:
    name = "box"
    fingerprint = None

    def __init__(self, answer: Any) -> None:
        self.process = answer


def test_a_file_is_read_back(tmp_path: Path) -> None:
    result = run(answer_all)
    (tmp_path / "r.json").write_text(result.to_json())
    loaded = EvalResult.load(tmp_path / "r.json")
    assert loaded == result
    assert EvalResult.load(str(tmp_path / "r.json")).summary == result.summary


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: cannot be read: No such file"):
        EvalResult.load(tmp_path / "none.json")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(DataError, match=r"x\.json: this JSON is not a result"):
        EvalResult.load(tmp_path / "x.json")


def test_runs_of_a_store_are_listed_and_loaded(tmp_path: Path) -> None:
    first, second = run(answer_all, cache_dir=tmp_path), run(answer_half, cache_dir=tmp_path)
    with Store(tmp_path, readonly=True) as store:
        newest, oldest = store.runs()
        assert repr(newest).startswith(f"<run {newest.id}, ")
        assert repr(newest).endswith("done: answer_half on data without a tag>")
        loaded = store.load()
        assert loaded.rows == second.rows
        assert loaded.summary == second.summary
        assert loaded.config["run"] == newest.id
        assert store.load(oldest).rows == first.rows
        assert store.load("last~1").summary == first.summary
        assert store.load(oldest.id, rows=False).rows == []
        with pytest.raises(UsageError, match="there is no run 'x'"):
            store.load("x")


def test_two_results_are_compared_example_by_example() -> None:
    old, new = run(Box(answer_all)), run(Box(answer_half))
    found = new.compare(old)
    (contest,) = found.contests
    assert contest.verdict is not None
    assert contest.verdict.word == "worse"
    assert contest.verdict.interval.value == pytest.approx(-0.5)
    assert "worse" in str(found)
    assert found._repr_markdown_() == str(found)
    assert old.compare(new).contests[0].verdict.word == "better"  # type: ignore[union-attr]


def test_the_margin_counts_and_must_be_one() -> None:
    old, new = run(Box(answer_all)), run(Box(answer_half))
    assert new.compare(old, margin=0.9).margin == 0.9
    with pytest.raises(UsageError, match="the margin must be between 0 and 1"):
        new.compare(old, margin=2)


def test_results_that_cannot_be_compared() -> None:
    old = run(Box(answer_all))
    with pytest.raises(UsageError, match="result has no rows to compare"):
        EvalResult([], old.summary, config=old.config).compare(old)
    with pytest.raises(UsageError, match="remove metric"):
        old.compare(old, metric="f1")  # type: ignore[call-overload]


def test_a_system_as_the_baseline_still_compares_the_systems_of_one_result() -> None:
    result = run([answer_all, answer_half])
    found = result.compare("answer_all")
    assert found is not None
    assert [each.word for each in found.verdicts] == ["worse"]
