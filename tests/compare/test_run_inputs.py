"""What can be compared: runs of a store and JSON files, as streams of scored rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.compare.run_inputs import open_file, open_run, select
from context_bench.errors import DataError, UsageError
from context_bench.results import EvalResult
from context_bench.stats import Interval
from context_bench.store import Store

EXAMPLES: list[dict[str, Any]] = [
    {"id": n, "context": f"The value of {n} is v{n}.", "question": "?", "answer": f"v{n}", "dataset": "d"}
    for n in range(5)
]


def _run(folder: Path, examples: list[dict[str, Any]] = EXAMPLES, **options: Any) -> EvalResult:
    return evaluate("passthrough", examples, cache_dir=folder, progress=False, **options)


def _write_out(intervals: Mapping[str, Mapping[str, Interval]]) -> dict[str, dict[str, Any]]:
    """Write them as JSON does: a limit that is not known is None, which equals itself."""
    return {name: {key: each.to_dict() for key, each in own.items()} for name, own in intervals.items()}


def test_a_stored_run_and_its_json_give_the_same_rows(tmp_path: Path) -> None:
    result = _run(tmp_path / "store")
    (tmp_path / "run.json").write_text(result.to_json())
    with Store(tmp_path / "store", readonly=True) as store:
        stored, exported = open_run(store, "last"), open_file(tmp_path / "run.json")
        ours, theirs = list(stored.read_answers()), list(exported.read_answers())
        assert list(stored.read_answers()) == ours  # from the beginning each time
    assert [name for name, _ in ours] == ["passthrough"] * 5
    expected = [(str(n), "d", 1.0) for n in range(5)]  # "v0" stands in "value of 0 is v0"
    assert [(row.id, row.dataset, row.value) for _, row in ours] == expected
    assert [(row.id, row.dataset, row.value) for _, row in theirs] == expected
    assert len({row.content for _, row in ours}) == 5
    assert {row.content for _, row in theirs} == {None}
    assert (stored.run, exported.run) == (result.config["run"], None)
    assert stored.summary == exported.summary == result.summary
    plain = [_write_out(each) for each in (stored.intervals, exported.intervals, result.intervals)]
    assert plain[0] == plain[1] == plain[2]


def test_the_content_of_an_example_is_its_own(tmp_path: Path) -> None:
    changed = [{**each, "answer": "other"} if each["id"] == 2 else each for each in EXAMPLES]
    _run(tmp_path)
    _run(tmp_path, changed)
    with Store(tmp_path, readonly=True) as store:
        first, second = (
            [row.content for _, row in open_run(store, name).read_answers()] for name in ("last~1", "last")
        )
    assert [one == other for one, other in zip(first, second)] == [True, True, False, True, True]


def test_one_system_of_a_run(tmp_path: Path) -> None:
    evaluate(["passthrough", "truncate:ratio=0.5"], EXAMPLES, cache_dir=tmp_path, progress=False)
    with Store(tmp_path, readonly=True) as store:

        def find(name: str) -> Any:
            return open_run(store, name)

        assert select("last", find).systems == ("passthrough", "truncate:ratio=0.5")
        assert select("last@truncate:ratio=0.5", find).systems == ("truncate:ratio=0.5",)
        with pytest.raises(UsageError, match=r"unknown system of \S+ 'passthru': did you mean passthrough\?"):
            select("last@passthru", find)
        with pytest.raises(UsageError, match="there is no run 'last~1'"):
            select("last~1", find)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a result of context-bench"),
        ("[]", "it has no rows or no summary"),
        (json.dumps({"rows": [], "summary": {"s": {}}}), "has a summary but no rows"),
    ],
)
def test_a_file_that_is_not_a_result_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DataError, match=said) as caught:
        open_file(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x\.json: cannot be read: No such file"):
        select(str(tmp_path / "x.json"), pytest.fail)
