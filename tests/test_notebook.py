"""What people type in a notebook: references, several datasets, functions as evaluators, a look at the result."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from context_bench import EvalResult, evaluate
from context_bench.errors import UnknownName, UsageError
from context_bench.evaluators import LLMJudge
from context_bench.registry import load_dataset
from context_bench.reporters import CsvReporter, TableReporter
from servers import Server, completion

DATA = [
    {"id": number, "context": f"Box {number} holds {number * 7} keys.", "answer": str(number * 7)}
    for number in range(3)
]


def half(example: dict[str, Any]) -> dict[str, Any]:
    return {"context": example["context"][:6], "metadata": {"kept": 6, "cut": True, "how": "start"}}


def test_systems_and_datasets_by_reference() -> None:
    result = evaluate("bm25:ratio=0.3", "needle:length=400,n=4", progress=False)
    assert result.systems == ["bm25:ratio=0.3"]
    assert result.config["datasets"] == {"needle:length=400,n=4": 4}


def test_a_list_of_references_is_several_systems_and_several_datasets(tmp_path: Path) -> None:
    own = tmp_path / "own.jsonl"
    own.write_text("".join(json.dumps(each) + "\n" for each in DATA))
    result = evaluate(["truncate:ratio=0.3|0.6", half], ["needle:length=400,n=2", str(own)], progress=False)
    assert result.systems == ["truncate:ratio=0.3", "truncate:ratio=0.6", "half"]
    assert result.config["datasets"] == {"needle:length=400,n=2": 2, "own": 3}
    assert {"dataset:needle:length=400,n=2", "dataset:own"} <= result.summary["half"].keys()


def test_datasets_by_tag() -> None:
    result = evaluate(half, {"first": DATA, "second": [DATA[0]], "third": "needle:length=400,n=2"}, progress=False)
    assert result.config["datasets"] == {"first": 3, "second": 1, "third": 2}
    assert [key for key in result.summary["half"] if key.startswith("dataset:")] == [
        "dataset:first",
        "dataset:second",
        "dataset:third",
    ]
    assert "dataset" not in DATA[0]  # the caller's own examples stay as they are


def test_loaded_datasets_are_joined() -> None:
    result = evaluate(
        half, load_dataset("needle", length=400, n=2) + load_dataset("kv", length=400, n=3), progress=False
    )
    assert result.config["datasets"] == {"needle": 2, "kv": 3}
    assert {"dataset:needle", "dataset:kv"} <= result.summary["half"].keys()
    more = DATA[1:]
    mixed = more + load_dataset("needle", length=400, n=1) + more
    assert [example.get("dataset") for example in mixed] == [None, None, "needle", None, None]


def test_what_is_no_dataset_is_said_to_be_none() -> None:
    with pytest.raises(UsageError, match="a dataset must be an iterable of examples, a name or a file"):
        evaluate(half, 3)
    with pytest.raises(UnknownName, match="nedle"):
        evaluate(half, "nedle")
    with pytest.raises(UnknownName, match="bm52"):
        evaluate("bm52", DATA)


def test_a_function_is_an_evaluator() -> None:
    def keeps_box(original: dict[str, Any], processed: dict[str, Any]) -> bool:
        return "Box" in processed["context"]

    def lengths(original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float] | None:
        return {"length": len(processed["context"])} if original["id"] else None

    result = evaluate(half, DATA, evaluators=[keeps_box, lengths], score_field="keeps_box", progress=False)
    assert [row.scores["keeps_box"] for row in result.rows] == [1.0] * 3
    assert [row.scores.get("length") for row in result.rows] == [None, 6.0, 6.0]
    assert result.rows[0].unscored == {"lengths": "returned no score"}
    assert result.summary["half"]["mean_score"] == 1.0
    assert evaluate(half, DATA, evaluators=[keeps_box], progress=False).summary["half"]["mean_score"] == 1.0
    assert "contains" in evaluate(half, DATA, evaluators=["answer-quality"], progress=False).rows[0].scores


def test_the_repr_of_a_result_is_a_few_lines() -> None:
    result = evaluate([half, "passthrough"], "needle:length=2000,n=50", progress=False)
    assert len(repr(result)) < 600
    assert repr(result).splitlines()[0] == "EvalResult: 100 rows of 2 systems on needle:length=2000,n=50"
    assert "mean_score" in repr(result)
    assert result._repr_markdown_() == TableReporter().render(result)
    many = EvalResult([], {f"s{number}": {"mean_score": 0.5} for number in range(30)})
    assert len(repr(many).splitlines()) == 10


def test_rows_are_filtered_by_a_function_and_by_any_field() -> None:
    def sometimes(example: dict[str, Any]) -> dict[str, Any]:
        if example["id"] == 1:
            raise ValueError("no")
        return half(example)

    result = evaluate([sometimes, half], DATA, repeats=2, progress=False)
    assert len(result.filter(lambda row: row.example_id == 2).rows) == 4
    assert len(result.filter(lambda row: row.error is not None).rows) == 2
    assert result.filter(lambda row: row.error is not None).systems == ["sometimes"]
    assert result.filter(lambda row: row.system == "half").summary["half"]["num_examples"] == 6
    assert len(result.filter("sometimes", error=None).rows) == 4
    assert len(result.filter(example_id=[0, 2], repeat=1).rows) == 4
    with pytest.raises(UsageError, match="a row has no field 'sytem'"):
        result.filter(sytem="half")


def test_numbers_of_the_metadata_are_columns() -> None:
    pandas = pytest.importorskip("pandas")
    result = evaluate(half, DATA, progress=False)
    frame = result.to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["metadata.kept"]) == [6, 6, 6]
    assert list(frame["metadata.cut"]) == [True] * 3
    assert "metadata.how" not in frame.columns
    assert list(frame["metadata.response_tokens"]) == [row.metadata["response_tokens"] for row in result.rows]
    (line, *_) = csv.DictReader(io.StringIO(CsvReporter().render(result)))
    assert (line["metadata.kept"], line["metadata.cut"]) == ("6", "True")


def test_a_judge_has_a_column() -> None:
    with Server(completion("Reason: fine.\nRating: 4")) as server:
        judge = LLMJudge(server.url, "m")
        data = [{**each, "question": "How many keys?"} for each in DATA]
        result = evaluate(lambda _: {"response": "7"}, data, evaluators=["answer-quality", judge], progress=False)
    assert result.summary["<lambda>"]["mean_score:judge_score"] == 0.75
    assert "judge score" in TableReporter().render(result)


def test_a_label_changes_no_score() -> None:
    plain = evaluate("minify", "needle:length=400,n=3", progress=False)
    for dataset in (
        "needle:length=400,n=3",
        list(load_dataset("needle", length=400, n=3)),
        load_dataset("needle", length=400, n=3),
    ):
        labelled = evaluate(["minify", lambda _: {"response": "?"}], {"some-label": dataset}, progress=False)
        assert labelled.config["primary"] == {"some-label": "contains"}
        assert labelled.config["datasets"] == {"some-label": 3}
        assert labelled.config["context_primary"] == {"some-label": "evidence_recall"}
        assert labelled.summary["minify"]["mean_score"] == plain.summary["minify"]["mean_score"] == 1.0


def test_functions_that_cannot_be_called_are_refused_at_once() -> None:
    def two(example: dict[str, Any], other: int) -> str:
        return ""

    with pytest.raises(UsageError, match=r"two.* cannot be called: a system must take one argument"):
        evaluate(two, DATA)
    with pytest.raises(UsageError, match="an evaluator must take two arguments"):
        evaluate(half, DATA, lambda row: 1.0)


def test_the_repr_names_the_first_failure() -> None:
    def fails(example: dict[str, Any]) -> str:
        return str(example["nope"])

    assert "3 errors, first: KeyError: 'nope' at " in repr(evaluate(fails, DATA, progress=False))
