"""From rows to a summary: counts beside every number, ranks between systems, metrics rebuilt from data."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.metrics import CostOfPass, DollarCost, MeanScore, ParetoRank, PassRate, default_metrics
from context_bench.registry import register_metric
from context_bench.results import EvalRow
from context_bench.summary import describe_metric, rebuild_metrics, summarize
from numbered import numbered
from rows import failed_row, make_row


def _counts(rows: list[EvalRow], score_field: str = "score") -> dict[str, float]:
    return summarize(rows, ["s"], [], {"score_field": score_field}).numbers["s"]


def test_counts_stand_in_every_summary() -> None:
    rows = [make_row(1.0), make_row(None), failed_row(), make_row(0.0)]
    assert _counts(rows) == {"num_examples": 4.0, "num_errors": 1.0, "error_rate": 0.25, "num_unscored": 1.0}


def test_counts_of_nothing() -> None:
    assert _counts([]) == {"num_examples": 0.0, "num_errors": 0.0, "error_rate": 0.0, "num_unscored": 0.0}


def test_unscored_means_without_the_score_that_counts() -> None:
    assert _counts([make_row(1.0, field="f1")])["num_unscored"] == 1.0
    assert _counts([make_row(1.0, field="f1")], "f1")["num_unscored"] == 0.0


def test_each_system_has_its_own_rows_and_the_order_of_the_run() -> None:
    rows = [make_row(1.0, system="b"), make_row(0.0, system="a"), make_row(0.5, system="b")]
    summary = summarize(rows, ["b", "a"], [MeanScore()]).numbers
    assert list(summary) == ["b", "a"]
    assert (summary["b"]["mean_score"], summary["a"]["mean_score"]) == (0.75, 0.0)


def test_many_rows_of_two_systems_give_what_each_gives_alone() -> None:
    def row(number: int, name: str) -> EvalRow:
        facts: dict[str, Any] = {"system": name, "example_id": number, "input_tokens": 4, "output_tokens": number % 4}
        if number % 10 == 9:
            return failed_row(**facts)
        return make_row(None if number % 10 == 8 else float(number % 2), latency=number / 1000, **facts)

    own = {name: [row(number, name) for number in range(count)] for name, count in (("a", 300), ("b", 170))}
    mixed = [each for pair in zip(own["a"], own["b"]) for each in pair] + own["a"][170:]
    together = summarize(mixed, ["a", "b"], default_metrics()).numbers
    for name, rows in own.items():
        assert together[name] == summarize(rows, [name], default_metrics()).numbers[name]
    # Of ten rows one is an error, which counts as zero, one has no score, and four of the others have 1.0.
    counts = {"num_examples": 300.0, "num_errors": 30.0, "error_rate": 0.1, "num_unscored": 30.0}
    assert {key: together["a"][key] for key in counts} == counts
    assert together["a"]["mean_score"] == pytest.approx(4 / 9)
    assert (together["b"]["num_examples"], together["b"]["num_errors"]) == (170.0, 17.0)


def test_a_system_without_rows_has_a_summary_too() -> None:
    summary = summarize([], ["a"], default_metrics()).numbers
    assert summary["a"]["num_examples"] == 0.0
    for key in ("mean_score", "pass_rate", "cost_of_pass", "compression_ratio", "latency_median"):
        assert math.isnan(summary["a"][key])


def _rows(**points: tuple[float, int]) -> list[EvalRow]:
    return [make_row(score, system=name, output_tokens=tokens) for name, (score, tokens) in points.items()]


def test_real_ranks_are_put_in_for_two_systems() -> None:
    metrics = [MeanScore(), CostOfPass(), ParetoRank()]
    summary = summarize(_rows(a=(0.8, 100), b=(0.9, 50)), ["a", "b"], metrics).numbers
    assert {name: values["pareto_rank"] for name, values in summary.items()} == {"a": 2.0, "b": 1.0}


def test_one_system_keeps_the_placeholder() -> None:
    assert (
        summarize(_rows(a=(1.0, 1)), ["a"], [MeanScore(), CostOfPass(), ParetoRank()]).numbers["a"]["pareto_rank"]
        == 0.0
    )


def test_a_system_that_fails_does_not_share_the_front() -> None:
    """Over the rows that it answers, flaky is as good as passthrough and cheaper: the long ones are those that fail."""
    answered = {"output_tokens": 100, "metadata": {"output": "context"}}
    rows = [
        make_row(1.0, system="passthrough", example_id=place, **{**answered, "output_tokens": 100 + place})
        for place in range(100)
    ] + [
        make_row(1.0, system="flaky", example_id=place, **{**answered, "output_tokens": 100 + place})
        if place < 69
        else failed_row(system="flaky", example_id=place)
        for place in range(100)
    ]
    found = summarize(rows, ["passthrough", "flaky"], default_metrics(systems=2))
    assert {name: values["pareto_rank"] for name, values in found.numbers.items()} == {"passthrough": 1, "flaky": 1}
    assert {name: values["pareto_front"] for name, values in found.numbers.items()} == {"passthrough": 1, "flaky": 0}
    assert found.numbers["flaky"]["pareto_tokens_read"] == 149.5
    assert found.notes["flaky"]["pareto_front"] == "passthrough scores higher and is not shown to cost more"


def test_a_system_that_cannot_be_ranked_has_no_rank() -> None:
    summary = summarize(
        _rows(a=(1.0, 1), b=(1.0, 2)), ["a", "b"], [MeanScore(), ParetoRank()]
    ).numbers  # no cost_of_pass
    assert not any("pareto_rank" in values for values in summary.values())


def test_ranking_contexts_against_answers_is_warned_of() -> None:
    rows = _rows(a=(1.0, 100), b=(1.0, 50))
    rows[0].metadata |= {"output": "context", "answered": True}  # by a reader
    rows[1].metadata["output"] = "response"
    with pytest.warns(UserWarning, match="their output tokens count different things"):
        summarize(rows, ["a", "b"], [MeanScore(), CostOfPass(), ParetoRank()])


def test_ranking_rows_of_one_kind_is_silent() -> None:
    rows = _rows(a=(1.0, 100), b=(1.0, 50))
    rows += [failed_row(system="a", metadata={})]
    for row in rows:
        row.metadata["output"] = "context"
    rows[-1].metadata["output"] = "response"  # of an errored row: it spent nothing
    assert summarize(rows, ["a", "b"], [MeanScore(), CostOfPass(), ParetoRank()]).numbers["b"]["pareto_rank"] == 1.0


def test_a_metric_that_returns_no_dict_is_named() -> None:
    class Broken:
        name = "broken"

        def compute(self, rows: list[EvalRow]) -> float:
            return 1.0

    summary = summarize([], ["a"], [Broken()])  # type: ignore[list-item]
    assert summary.failures == {"broken": "TypeError: it returned float; it must return a dict of numbers"}
    assert math.isnan(summary.numbers["a"]["broken"])


class _Fragile:
    """A metric whose tally breaks at the third row."""

    name = "fragile"

    def __init__(self) -> None:
        self._rows = 0

    def start(self) -> _Fragile:
        return _Fragile()

    def add(self, row: EvalRow) -> None:
        self._rows += 1
        if self._rows == 3:
            raise ZeroDivisionError("the third row")

    def result(self) -> dict[str, float]:
        return {}

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        return {}


def test_a_tally_that_raises_ends_the_run_at_once() -> None:
    calls: list[int] = []

    def system(example: dict[str, Any]) -> str:
        calls.append(example["id"])
        return str(example["context"])

    with pytest.raises(ZeroDivisionError, match="the third row") as caught:
        evaluate(system, numbered(*range(100)), metrics=[_Fragile()])
    assert calls == [0, 1, 2]
    assert [row.example_id for row in caught.value.result.rows] == [0, 1, 2]  # type: ignore[attr-defined]


def test_a_tally_that_raises_does_not_wait_for_requests_in_flight() -> None:
    calls: list[int] = []

    async def endpoint(example: dict[str, Any]) -> dict[str, Any]:
        calls.append(example["id"])
        await asyncio.sleep(30 if example["id"] >= 3 else 0)
        return {"response": "x"}

    with pytest.raises(ZeroDivisionError, match="the third row"):
        evaluate(endpoint, numbered(*range(100)), metrics=[_Fragile()], max_workers=2)
    assert calls == [0, 1, 2, 3, 4]


def test_metrics_are_rebuilt_from_their_description() -> None:
    metrics = default_metrics("f1", 0.3, datasets=2, systems=2)
    assert rebuild_metrics([describe_metric(metric) for metric in metrics]) == metrics


def test_the_description_is_name_and_parameters() -> None:
    assert describe_metric(PassRate(0.5, "f1")) == {
        "name": "pass-rate",
        "params": {"threshold": 0.5, "score_field": "f1"},
    }


def test_metrics_of_any_make_can_be_described() -> None:
    class Slotted:
        __slots__ = ("k",)
        name = "slotted"

        def compute(self, rows: list[EvalRow]) -> dict[str, float]:
            return {}

    class Plain:
        name = "plain"

        def __init__(self, k: int) -> None:
            self.k = k

        def compute(self, rows: list[EvalRow]) -> dict[str, float]:
            return {}

    assert describe_metric(Slotted()) == {"name": "slotted", "params": {}}
    assert describe_metric(Plain(3)) == {"name": "plain", "params": {"k": 3}}


def test_metrics_that_nobody_knows_are_left_out() -> None:
    described = [{"name": "max-score", "params": {}}, {"name": "latency", "params": {}}]
    assert [metric.name for metric in rebuild_metrics(described)] == ["latency"]


def test_parameters_of_another_version_are_left_out() -> None:
    assert rebuild_metrics([{"name": "latency", "params": {"from_the_future": 1}}]) == []


def test_registered_metrics_are_rebuilt_class_and_object_alike() -> None:
    @dataclass(frozen=True)
    class Best:
        field: str = "score"
        name = "best"

        def compute(self, rows: list[EvalRow]) -> dict[str, float]:
            return {"best": max(row.scores[self.field] for row in rows)}

    register_metric("best", Best)
    assert rebuild_metrics([describe_metric(Best("f1"))]) == [Best("f1")]
    ready = Best("f1")
    register_metric("best", ready)
    assert rebuild_metrics([{"name": "best", "params": {}}]) == [ready]


# --- intervals


HEADLINES = ("mean_score", "pass_rate", "compression_ratio", "cost_of_pass", "latency_median", "latency_p95")


def _answer(example: dict[str, Any]) -> str:
    return "red" if int(example["id"]) % 3 else "green"


def _other(example: dict[str, Any]) -> str:
    return "red" if int(example["id"]) % 4 else "blue and green"


def _run(**more: Any) -> Any:
    given = [
        {"id": number, "context": "red green blue " * 4, "answer": "red", "dataset": "x" if number % 2 else "y"}
        for number in range(80)
    ]
    return evaluate([_answer, _other], given, progress=False, **more)


def test_every_headline_has_an_interval_around_it() -> None:
    result = _run()
    for name, values in result.summary.items():
        for key in HEADLINES:
            interval = result.intervals[name][key]
            assert interval.value == pytest.approx(values[key])
            if interval.known:
                assert interval.low <= values[key] <= interval.high
        for key in ("pass_rate@x", "pass_rate@y", "compression_ratio@x"):
            assert result.intervals[name][key].n == 40
    # the 95th percentile of 80 values has limits, that of 40 does not
    assert result.intervals["_answer"]["latency_p95"].known


@pytest.mark.long
def test_intervals_are_the_same_however_the_run_is_read(tmp_path: Any) -> None:
    from context_bench.core.record import load_result
    from context_bench.store import Store

    kept = _run(cache_dir=tmp_path)
    flat = _run(cache_dir=tmp_path, keep_rows=False)  # the same answers, from the store
    with Store(tmp_path, readonly=True) as store:
        stored = load_result(store, store.run(kept.config["run"]))
    again = type(kept).from_json(kept.to_json())
    filtered = kept.filter(system=kept.systems)
    for other in (flat, stored, again, filtered):
        assert repr(other.comparison) == repr(kept.comparison)  # NaN is not equal to NaN
        for name, own in kept.intervals.items():
            assert other.intervals[name].keys() == own.keys()
            for key, interval in own.items():
                theirs = other.intervals[name][key]
                assert (theirs.value, theirs.n, theirs.mark) == (
                    pytest.approx(interval.value),
                    interval.n,
                    interval.mark,
                )
                assert (theirs.low, theirs.high) == pytest.approx((interval.low, interval.high), nan_ok=True)


def test_rows_that_share_a_document_widen_the_interval() -> None:
    scores = [1.0, 0.0] * 10
    alone = [make_row(score, example_id=number) for number, score in enumerate(scores)]
    shared = [
        make_row(score, example_id=number, metadata={"cluster": f"d{number % 4}"})
        for number, score in enumerate(scores)
    ]
    first, second = (summarize(rows, ["s"], [MeanScore()]).intervals["s"]["mean_score"] for rows in (alone, shared))
    assert (first.method, second.method) == ("wilson", "clusters")
    assert second.high - second.low > first.high - first.low
    # a document of the same name in another dataset is another one
    for number, row in enumerate(shared):
        row.dataset, row.metadata = ("x", "y")[number % 2], {"cluster": f"d{number // 4}"}
    third = summarize(shared, ["s"], [MeanScore()]).intervals["s"]["mean_score"]
    assert third.method == "clusters"


def test_a_number_is_inside_its_interval_to_the_last_digit() -> None:
    """Sums by conversation round otherwise than sums by row, and three digits of a dollar show it."""
    rows = [
        make_row(1.0, example_id=place, dataset="d", metadata={"cost_usd": 0.001015, "cluster": place // 2})
        for place in range(18)
    ]
    found = summarize(rows, ["s"], [DollarCost()])
    for key in ("cost_of_pass_usd", "cost_per_1k_usd"):
        interval = found.intervals["s"][key]
        assert interval.low <= found.numbers["s"][key] == interval.value <= interval.high


def test_what_was_not_measured_has_no_interval() -> None:
    assert "mean_score" not in summarize([make_row(None)], ["s"], [MeanScore()]).intervals["s"]


def test_dollars_saved_stand_in_the_summary() -> None:
    rows = [
        make_row(1.0, system=name, example_id=number, metadata={"cost_usd": cost})
        for name, cost in (("a", 0.002), ("b", 0.0005))
        for number in range(400)
    ]
    summary = summarize(rows, ["a", "b"], default_metrics(systems=2))
    assert summary.numbers["b"]["saved_per_1k_usd"] == pytest.approx(1.5)
    assert summary.intervals["b"]["saved_per_1k_usd"].value == pytest.approx(1.5)
    assert "saved_per_1k_usd" not in summary.numbers["a"]
    few = summarize([row for row in rows if int(row.example_id) < 9], ["a", "b"], default_metrics(systems=2))
    assert math.isnan(few.numbers["b"]["saved_per_1k_usd"])
    assert few.notes["b"]["saved_per_1k_usd"] == "not claimed: its quality is undecided, and may be worse"
