"""What a notebook has at hand: functions as metrics, data frames as datasets; and parts of a result ranked anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, EvalRow, evaluate
from context_bench.errors import UsageError

DATA = [
    {
        "id": number,
        "context": f"Box {number} holds {number * 7} keys.",
        "question": "How many?",
        "answer": str(number * 7),
    }
    for number in range(6)
]


def longest(rows: Sequence[EvalRow]) -> float:
    return max(row.output_tokens for row in rows)


def by_half(rows: Sequence[EvalRow]) -> dict[str, float]:
    return {"first_half": float(len(rows) // 2), "second_half": float(len(rows) - len(rows) // 2)}


def test_functions_are_metrics(tmp_path: Path) -> None:
    result = evaluate("passthrough", DATA, metrics=["mean-score", longest, by_half], progress=False)
    values = result.summary["passthrough"]
    assert values["longest"] == max(row.output_tokens for row in result.rows)
    assert (values["first_half"], values["second_half"]) == (3, 3)
    assert "longest" in result._repr_markdown_()
    again = EvalResult.from_json(result.to_json())
    assert again.summary["passthrough"]["longest"] == values["longest"]
    assert result.filter(lambda row: row.example_id == 0).summary["passthrough"]["second_half"] == 1


def test_one_function_alone_and_one_that_fails() -> None:
    def broken(rows: Sequence[EvalRow]) -> float:
        raise ValueError("no rows for me")

    with pytest.warns(UserWarning, match="the metric 'broken' failed"):
        result = evaluate("passthrough", DATA, metrics=[longest, broken], progress=False)
    assert result.summary["passthrough"]["longest"] > 0
    assert "no rows for me" in result.notes["passthrough"]["broken"]


def test_a_function_that_cannot_be_a_metric() -> None:
    def two(rows: Any, more: Any) -> float:
        return 0.0

    with pytest.raises(UsageError, match="a metric must take one argument, the rows of a system"):
        evaluate("passthrough", DATA, metrics=[two], progress=False)


def test_a_function_of_a_file_is_a_metric_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def count(rows):\n    return len(rows)\n")
    run = ("--system", "passthrough", "--dataset", "needle:n=3,length=200", "--metric", "own.py:count")
    done = called(*run, "--output", "json", "--quiet", "--no-store", cwd=tmp_path)
    assert json.loads(done.stdout)["summary"]["passthrough"]["count"] == 3


def test_a_data_frame_is_a_dataset() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(DATA)
    result = evaluate("passthrough", frame, progress=False)
    assert [row.example_id for row in result.rows] == list(range(6))
    assert {row.scores["score"] for row in result.rows} == {1.0}
    tagged = evaluate("passthrough", {"boxes": frame, "more": DATA[:2]}, progress=False)
    assert tagged.config["datasets"] == {"boxes": 6, "more": 2}
    joined = evaluate("passthrough", [frame, "needle:n=2,length=200"], progress=False)
    assert len(joined.rows) == 8


def test_columns_of_a_frame_become_fields() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"context": ["a b", "c d"], "answer": ["a", None], "meta.lang": ["en", "fr"]})
    result = evaluate("passthrough", frame, progress=False)
    assert [row.example_id for row in result.rows] == [0, 1]
    assert list(result.group_by("meta.lang")) == ["en", "fr"]
    assert "score" not in result.rows[1].scores


def test_ranks_are_those_of_the_systems_that_are_left() -> None:
    result = evaluate(["passthrough", "truncate:ratio=0.5", "bm25:ratio=0.3"], "needle:n=6,length=300", progress=False)
    assert all("pareto_rank" in values for values in result.summary.values())
    two = result.filter(["passthrough", "bm25:ratio=0.3"])
    fresh = evaluate(["passthrough", "bm25:ratio=0.3"], "needle:n=6,length=300", progress=False)
    for name in two.systems:
        for key in ("pareto_rank", "pareto_front"):
            assert two.summary[name].get(key) == fresh.summary[name].get(key)
    alone = result.filter("passthrough").summary["passthrough"]
    assert alone["pareto_rank"] == 0
    assert not {"pareto_front", "pareto_tokens_read", "saved_per_1k_usd"} & alone.keys()
