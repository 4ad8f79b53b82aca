"""EvalRow, Scores and EvalResult: recomputed when filtered, strict when written, whole when read back."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from typing import Any

import pytest

from context_bench import EvalResult, EvalRow, Scores
from context_bench.errors import DataError, UsageError
from context_bench.metrics import MeanScore, default_metrics
from context_bench.summary import describe_metric, summarize
from context_bench.text import dump_json
from rows import failed_row, make_row


def _result(rows: list[EvalRow], metrics: Any = None, **config: Any) -> EvalResult:
    """A result as evaluate() makes it."""
    names = list(dict.fromkeys(row.system for row in rows))
    metrics = default_metrics(systems=len(names)) if metrics is None else metrics
    config = {"metrics": [describe_metric(metric) for metric in metrics], "score_field": "score", **config}
    timing = dict.fromkeys(names, 1.5)
    summary = summarize(rows, names, metrics, config)
    return EvalResult.from_summary(rows, summary, config, metrics, timing)


def _strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is no JSON")

    return json.loads(text, parse_constant=refuse)


# --- EvalRow


def test_fields_in_the_order_of_the_specification() -> None:
    row = EvalRow("s", "e1", {"f1": 0.5}, 10, 5, {"usage": 1}, 0.25, "squad")
    assert (row.system, row.example_id, row.scores, row.input_tokens, row.output_tokens) == (
        "s",
        "e1",
        {"f1": 0.5},
        10,
        5,
    )
    assert (row.metadata, row.latency, row.dataset) == ({"usage": 1}, 0.25, "squad")


def test_defaults_of_a_row() -> None:
    row = EvalRow("s", 1, {}, 0, 0)
    assert (row.metadata, row.latency, row.dataset) == ({}, 0.0, "")
    assert (row.response, row.error, row.repeat, row.unscored, row.upstream_tokens) == ("", None, 0, {}, None)


def test_rows_share_no_default() -> None:
    first, second = EvalRow("s", 1, {}, 0, 0), EvalRow("s", 2, {}, 0, 0)
    first.metadata["x"] = first.unscored["e"] = "y"
    assert (second.metadata, second.unscored) == ({}, {})


def test_a_row_is_a_dataclass_and_a_plain_dict_when_asked() -> None:
    row = make_row(1.0, dataset="d")
    assert row.as_dict() == dataclasses.asdict(row)
    assert list(row.as_dict())[:8] == [
        "system",
        "example_id",
        "scores",
        "input_tokens",
        "output_tokens",
        "metadata",
        "latency",
        "dataset",
    ]


# --- Scores


def test_scores_equal_a_plain_dict_of_the_same_numbers() -> None:
    assert Scores({"f1": 0.5}) == {"f1": 0.5}
    assert Scores({"f1": 0.5}, details={"x": 1}) == {"f1": 0.5}
    assert Scores() == {}
    assert not Scores(reason="no gold")


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_scores_keep_reason_and_details_when_copied(clone: Any) -> None:
    scores = clone(Scores({"f1": 0.5}, reason="why", details={"x": [1]}))
    assert type(scores) is Scores
    assert (scores, scores.reason, scores.details) == ({"f1": 0.5}, "why", {"x": [1]})


def test_details_are_a_copy() -> None:
    details = {"x": 1}
    scores = Scores(details=details)
    details["x"] = 2
    assert scores.details == {"x": 1}


# --- filter


def _two_systems() -> EvalResult:
    return _result(
        [
            make_row(1.0, system="a", dataset="x", output_tokens=10, input_tokens=20),
            make_row(0.0, system="a", dataset="y", output_tokens=30, input_tokens=60),
            make_row(0.9, system="b", dataset="x", output_tokens=5, input_tokens=20),
            make_row(0.8, system="b", dataset="y", output_tokens=15, input_tokens=60),
        ]
    )


def test_filter_by_system_keeps_rows_summary_and_time_of_that_system() -> None:
    part = _two_systems().filter(system="a")
    assert {row.system for row in part.rows} == {"a"}
    assert part.systems == ["a"]
    assert part.timing == {"a": 1.5}
    assert part.summary["a"]["mean_score"] == 0.5


def test_filter_by_dataset_recomputes_every_number() -> None:
    whole = _two_systems()
    part = whole.filter(dataset="x")
    assert whole.summary["a"]["mean_score"] == 0.5
    assert part.summary["a"]["mean_score"] == 1.0
    assert part.summary["a"]["cost_of_pass"] == 10.0
    assert part.summary["a"]["num_examples"] == 1.0
    assert part.summary["b"]["mean_score"] == 0.9


def test_ranks_are_recomputed_among_those_that_are_left() -> None:
    whole = _two_systems()
    assert {name: values["pareto_rank"] for name, values in whole.summary.items()} == {"a": 2.0, "b": 1.0}
    in_x = whole.filter(dataset="x").summary  # a: 1.0 at 10 tokens, b: 0.9 at 5: nobody dominates
    assert {name: values["pareto_rank"] for name, values in in_x.items()} == {"a": 1.0, "b": 1.0}
    assert whole.filter(system="a").summary["a"]["pareto_rank"] == 0.0


def test_filter_takes_several_names_and_both_conditions() -> None:
    whole = _two_systems()
    assert whole.filter(system=["b", "a"]).systems == ["a", "b"]
    assert [row.dataset for row in whole.filter(system=("a",), dataset={"y"}).rows] == ["y"]
    assert len(whole.filter().rows) == 4


def test_filter_leaves_the_whole_as_it_was() -> None:
    whole = _two_systems()
    before = whole.to_json()
    whole.filter(system="a", dataset="x")
    assert whole.to_json() == before


def test_filter_for_a_name_that_is_not_there_is_empty() -> None:
    part = _two_systems().filter(system="nobody")
    assert (part.rows, part.summary, part.timing) == ([], {}, {})


class MaxScore:
    """A metric that the registry does not know."""

    name = "max-score"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        return {"max_score": max((row.scores.get("score", 0.0) for row in rows), default=0.0)}


def test_filter_recomputes_ones_own_metrics() -> None:
    rows = [make_row(1.0, dataset="x"), make_row(0.25, dataset="y")]
    assert _result(rows, [MaxScore()]).filter(dataset="y").summary["s"]["max_score"] == 0.25


def test_a_result_made_by_hand_keeps_its_numbers_when_a_system_is_picked() -> None:
    result = EvalResult([make_row(system="a"), make_row(system="b")], {"a": {"x": 1.0}, "b": {"x": 2.0}})
    assert result.filter(system="b").summary["b"]["x"] == 2.0


def test_numbers_that_cannot_be_recomputed_are_dropped_with_part_of_the_rows() -> None:
    result = EvalResult([make_row(dataset="d"), make_row(dataset="e")], {"s": {"x": 1.0}})
    assert "x" not in result.filter(dataset="d").summary["s"]


# --- JSON


def test_json_is_strict_and_holds_everything() -> None:
    rows = [make_row(0.1, output_tokens=5, metadata={"nan": math.nan, "inf": [math.inf, -math.inf]}), failed_row()]
    document = _strict(_result(rows).to_json())
    assert set(document) == {"summary", "notes", "intervals", "comparison", "timing", "config", "rows"}
    assert document["summary"]["s"]["cost_of_pass"] is None
    assert document["rows"][0]["metadata"] == {"nan": None, "inf": [None, None]}
    assert document["rows"][1]["error"] == "TimedOut: no answer"


def test_round_trip_gives_the_same_rows_summary_time_and_config() -> None:
    result = _two_systems()
    back = EvalResult.from_json(result.to_json())
    assert back == result
    assert back.to_json() == result.to_json()
    assert EvalResult.from_json(result.to_json(indent=False).encode()) == result


def test_infinite_cost_comes_back_as_infinite() -> None:
    result = _result([make_row(0.1, output_tokens=5)])
    back = EvalResult.from_json(result.to_json())
    assert back.summary["s"]["cost_of_pass"] == math.inf
    assert back.summary["s"]["num_passing"] == 0.0


def test_infinite_cost_comes_back_even_where_no_metric_can_be_rebuilt() -> None:
    result = EvalResult([], {"s": {"cost_of_pass": math.inf, "num_passing": 0.0}})
    assert EvalResult.from_json(result.to_json()).summary["s"]["cost_of_pass"] == math.inf


def test_the_summary_is_computed_again_from_the_rows() -> None:
    document = json.loads(_result([make_row(1.0), make_row(0.0)]).to_json())
    document["summary"]["s"]["mean_score"] = 0.99
    assert EvalResult.from_json(json.dumps(document)).summary["s"]["mean_score"] == 0.5


def test_metrics_that_the_registry_does_not_know_keep_their_stored_values() -> None:
    back = EvalResult.from_json(_result([make_row(0.4), make_row(0.8)], [MeanScore(), MaxScore()]).to_json())
    assert back.summary["s"]["max_score"] == 0.8
    assert back.summary["s"]["mean_score"] == pytest.approx(0.6)
    assert back.filter(system="s").summary["s"]["max_score"] == 0.8


def test_ids_keep_their_type() -> None:
    rows = [make_row(1.0, example_id=1), make_row(1.0, example_id="1")]
    assert [row.example_id for row in EvalResult.from_json(_result(rows).to_json()).rows] == [1, "1"]


def test_a_score_that_is_no_number_reads_back_as_missing() -> None:
    back = EvalResult.from_json(_result([make_row(math.inf), make_row(1.0)]).to_json())
    assert back.rows[0].scores == {}
    assert back.summary["s"]["mean_score"] == 1.0


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"rows": []}', '{"summary": {}}', "null"])
def test_what_is_no_result_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(DataError, match="this JSON is not a result of context-bench"):
        EvalResult.from_json(text)


def test_a_row_with_a_field_that_does_not_exist_is_refused_in_one_sentence() -> None:
    document = {"summary": {"s": {}}, "rows": [{"system": "s", "surprise": 1}]}
    with pytest.raises(DataError, match="row 1"):
        EvalResult.from_json(json.dumps(document))


@pytest.mark.parametrize(
    "metadata",
    [
        {"surrogate": "\ud800 \ud83d"},
        {"\udfff": 1},
        {"big": 2**70, "small": -(2**70)},
        {(1, 2): "tuple key"},
        {1: "int key", None: "none key", 1.5: "float key"},
        {"set": {1}, "bytes": b"\xff", "object": object(), "class": dict},
        {"both": ["\ud800", 2**70, math.nan, {"deep": (1, 2, {3})}]},
    ],
    ids=lambda metadata: str(next(iter(metadata))),
)
def test_whatever_a_system_puts_into_metadata_can_be_written(metadata: dict[Any, Any]) -> None:
    document = _strict(_result([make_row(1.0, metadata=metadata)]).to_json())
    assert len(document["rows"][0]["metadata"]) == len(metadata)


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    value = {"a": numpy.float64(0.5), "b": numpy.int32(7), "c": numpy.float32("nan"), "d": numpy.bool_(True)}
    assert _strict(dump_json(value)) == {"a": 0.5, "b": 7, "c": None, "d": True}


# --- data frame


def test_a_data_frame_has_a_line_for_each_row_and_a_column_for_each_score() -> None:
    pytest.importorskip("pandas")
    frame = _result([make_row(scores={"f1": 0.5, "score": 0.5}, latency=0.25), make_row(None)]).to_dataframe()
    assert len(frame) == 2
    assert {"system", "example_id", "input_tokens", "output_tokens", "latency", "dataset", "f1", "score"} <= set(frame)
    assert "scores" not in frame
    assert frame["f1"][0] == 0.5
    assert math.isnan(frame["f1"][1])


def test_a_score_called_like_a_field_of_the_row_does_not_replace_it() -> None:
    pytest.importorskip("pandas")
    frame = _result([make_row(scores={"latency": 9.0}, latency=0.25)]).to_dataframe()
    assert (frame["latency"][0], frame["score:latency"][0]) == (0.25, 9.0)


def test_a_data_frame_of_no_rows_is_empty() -> None:
    pytest.importorskip("pandas")
    assert len(EvalResult([], {}).to_dataframe()) == 0


# --- every system against the baseline


def _compared(**more: Any) -> EvalResult:
    scores = {"a": [1, 1, 0, 1, 0, 1, 1, 0, 1, 1], "b": [1, 0, 0, 1, 1, 1, 1, 0, 1, 0.5]}
    rows = [
        make_row(scores={"score": float(score), "f1": 1 - score}, system=name, example_id=number)
        for name, own in scores.items()
        for number, score in enumerate(own)
    ]
    return _result(rows, threshold=0.7, **more)


def test_compare_gives_what_the_run_gave() -> None:
    result = _compared()
    assert result.compare() is result.comparison
    assert result.compare(metric="score") is result.comparison
    assert result.compare(baseline="a", margin=0.02) is result.comparison


def test_compare_with_another_baseline_metric_or_margin() -> None:
    result = _compared()
    turned = result.compare(baseline="b")
    assert turned is not None
    assert (turned.baseline, turned.verdicts[0].name) == ("b", "a")
    assert turned.verdicts[0].difference == pytest.approx(0.05)
    other = result.compare(metric="f1")
    assert other is not None
    assert (other.metric, other.verdicts[0].difference) == ("f1", pytest.approx(0.05))
    passing = result.compare(metric="pass_rate")  # 0.5 does not pass: 6 of 10 against 7 of 10
    assert passing is not None
    assert passing.verdicts[0].difference == pytest.approx(-0.1)
    wide = result.compare(margin=0.5)
    assert wide is not None
    assert (wide.margin, wide.verdicts[0].word) == (0.5, "equivalent")  # [-0.36, 0.27] lies within


def test_a_threshold_of_nothing_is_one_too() -> None:
    result = _compared()
    result.config["threshold"] = 0.0
    passing = result.compare(metric="pass_rate")
    assert passing is not None
    assert passing.verdicts[0].difference == 0.0  # everything passes


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"baseline": "c"}, "the baseline must be one of the systems a, b (got 'c')"),
        ({"metric": "fi"}, "the metric must be one of score, pass_rate, f1 (got 'fi')"),
        ({"margin": 0}, "the margin must be between 0 and 1 (got 0)"),
    ],
)
def test_a_wrong_name_is_one_sentence(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        _compared().compare(**asked)
    assert str(raised.value) == sentence


def test_one_system_has_nothing_to_be_held_against() -> None:
    assert _result([make_row(1.0)]).compare() is None


def test_what_was_not_kept_cannot_be_compared_anew() -> None:
    result = _compared()
    result.rows = []
    assert result.compare() is result.comparison
    with pytest.raises(UsageError, match="this result has no rows"):
        result.compare(metric="pass_rate")


def test_a_result_that_was_stored_before_there_were_intervals() -> None:
    document = json.loads(_compared().to_json())
    del document["intervals"], document["comparison"]
    back = EvalResult.from_json(json.dumps(document))
    assert back.comparison == _compared().comparison  # the rows are there
    document["rows"] = []
    bare = EvalResult.from_json(json.dumps(document))
    assert (bare.intervals, bare.comparison) == ({}, None)
    assert "against" not in bare._repr_markdown_()
