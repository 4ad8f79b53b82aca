"""The code samples of the specification, run: printed dicts are exact, a literal `...` is completed here.

One section for each page. Numbers that the pages print without their inputs only say which keys there are.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import context_bench.evaluators
from context_bench import EvalResult, evaluate
from context_bench.evaluators import AnswerQuality
from context_bench.metrics import (
    CompressionRatio,
    CostOfPass,
    Latency,
    MeanScore,
    PassRate,
    PerDatasetBreakdown,
)
from context_bench.metrics.token_stats import ParetoRank
from context_bench.results import EvalRow
from context_bench.types import Evaluator, MemorySystem, Metric, System
from sandboxed import needs_sandbox


class MySystem:
    """Answers from a table; what it does not know it calls unknown."""

    name = "my-system"

    def __init__(self, name: str = "my-system") -> None:
        self.name = name

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        known = {"France": "Paris", "Italy": "Rome"}
        return {"response": next((city for land, city in known.items() if land in example["question"]), "unknown")}


my_system = MySystem()

my_dataset = [
    {"id": 1, "context": "Paris is in France.", "question": "Capital of France?", "answer": "Paris"},
    {"id": "two", "context": "Rome is in Italy.", "question": "Capital of Italy?", "answer": "Rome"},
    {"id": 3, "context": "Oslo is in Norway.", "question": "Capital of Norway?", "answer": "Oslo"},
    {"id": 4, "context": "Bern is in Switzerland.", "question": "Capital of Switzerland?", "answer": "Bern"},
]


@pytest.fixture(autouse=True)
def _quiet(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """The samples of the API print nothing by themselves: stdout belongs to the caller."""
    yield
    assert capsys.readouterr().out == ""


# --- metrics


def test_the_metric_protocol() -> None:
    assert all(isinstance(metric, Metric) for metric in (MeanScore(), PassRate(), Latency(), ParetoRank()))
    assert not isinstance(AnswerQuality(), Metric)


def test_the_keys_of_every_metric() -> None:
    row = EvalRow("my-system", 1, {"f1": 0.8}, 3200, 1856, {}, 1.1, "hotpotqa")
    assert MeanScore(score_field="f1").compute([row]) == {"mean_score": 0.8}
    assert PassRate(score_field="f1", threshold=0.7).compute([row]) == {"pass_rate": 1.0}
    assert CompressionRatio().compute([row]) == pytest.approx(
        {"compression_ratio": 0.42, "mean_input_tokens": 3200.0, "mean_output_tokens": 1856.0}
    )
    assert CostOfPass(score_field="f1", threshold=0.7).compute([row]) == {"cost_of_pass": 1856.0, "num_passing": 1.0}
    assert set(Latency().compute([row])) == {"latency_mean", "latency_median", "latency_p95", "latency_p99"}
    assert PerDatasetBreakdown(score_field="f1").compute([row]) == {"dataset:hotpotqa": 0.8}


def test_ranks_of_a_run() -> None:
    baseline = MySystem("baseline")
    baseline.process = lambda example: {"response": "It could be Paris or Rome or any other city."}  # type: ignore[method-assign]
    metrics = [MeanScore(score_field="recall"), CostOfPass(score_field="recall")]
    result = evaluate([MySystem("kompact"), baseline], my_dataset, [AnswerQuality()], metrics, progress=False)
    ranks = ParetoRank.rank_systems(
        result.summary,
        quality_field="mean_score",
        cost_field="cost_of_pass",
    )
    assert ranks == {"kompact": 1, "baseline": 2}
    assert ParetoRank(quality_field="score", cost_field="cost_of_pass").compute(result.rows) == {"pareto_rank": 0.0}


def test_using_metrics() -> None:
    result = evaluate(
        systems=[my_system],
        dataset=my_dataset,
        evaluators=[AnswerQuality()],
        metrics=[
            MeanScore(score_field="f1"),
            PassRate(score_field="f1", threshold=0.7),
            CompressionRatio(),
            Latency(),
        ],
    )
    summary = result.summary["my-system"]
    assert (summary["mean_score"], summary["pass_rate"]) == (0.5, 0.5)
    assert "compression_ratio" in summary


class MaxScore:
    name = "max-score"

    def __init__(self, score_field: str = "f1"):
        self.score_field = score_field

    def compute(self, rows):  # type: ignore[no-untyped-def]
        scores = [r.scores.get(self.score_field, 0.0) for r in rows]
        return {"max_score": max(scores) if scores else 0.0}


def test_a_custom_metric() -> None:
    assert isinstance(MaxScore(), Metric)
    result = evaluate(
        systems=[my_system],
        dataset=my_dataset,
        evaluators=[AnswerQuality()],
        metrics=[MeanScore(score_field="f1"), MaxScore(score_field="f1")],
    )
    assert result.summary["my-system"]["max_score"] == 1.0
    assert result.summary["my-system"]["mean_score"] == 0.5
    assert MaxScore().compute([]) == {"max_score": 0.0}  # type: ignore[no-untyped-call]


# --- CostOfPass


def test_cost_of_pass_in_a_run() -> None:
    result = evaluate(
        systems=[my_system],
        dataset=my_dataset,
        evaluators=[AnswerQuality()],
        metrics=[
            MeanScore(score_field="f1"),
            CostOfPass(threshold=0.7, score_field="f1"),
        ],
    )
    summary = result.summary["my-system"]
    spent = sum(row.output_tokens for row in result.rows)
    assert summary["cost_of_pass"] == spent / 2
    assert summary["num_passing"] == 2.0


def test_parameters_of_cost_of_pass() -> None:
    parameters = inspect.signature(CostOfPass).parameters
    assert {name: each.default for name, each in parameters.items()} == {"threshold": 0.7, "score_field": "score"}


def test_without_a_pass_the_cost_is_infinite() -> None:
    row = EvalRow("s", 1, {"score": 0.0}, 10, 10)
    assert CostOfPass().compute([row]) == {"cost_of_pass": math.inf, "num_passing": 0.0}


# --- the pipeline


def test_eval_row_as_declared() -> None:
    names = [field.name for field in dataclasses.fields(EvalRow)]
    assert names[:8] == [
        "system",
        "example_id",
        "scores",
        "input_tokens",
        "output_tokens",
        "metadata",
        "latency",
        "dataset",
    ]
    row = EvalRow("s", "x", {"f1": 1.0}, 1, 2, {"prompt_tokens": 3}, 0.5, "d")
    assert (row.system, row.example_id, row.scores, row.input_tokens) == ("s", "x", {"f1": 1.0}, 1)
    assert (row.output_tokens, row.metadata, row.latency, row.dataset) == (2, {"prompt_tokens": 3}, 0.5, "d")


def test_eval_result_as_declared() -> None:
    assert [field.name for field in dataclasses.fields(EvalResult)][:4] == ["rows", "summary", "timing", "config"]
    hints = get_type_hints(EvalRow)
    assert hints["example_id"] == (str | int)


def test_filter_export_and_convert() -> None:
    pytest.importorskip("pandas")
    result = evaluate([MySystem("kompact"), MySystem("other")], my_dataset, [AnswerQuality()], progress=False)
    part = result.filter(system="kompact")
    assert isinstance(part, EvalResult)
    assert {row.system for row in part.rows} == {"kompact"}
    assert isinstance(result.to_json(), str)
    assert len(result.to_dataframe()) == 8


def test_data_flow_in_code(tmp_path: Path) -> None:
    result = evaluate(
        systems=[my_system],
        dataset=my_dataset,
        evaluators=[AnswerQuality()],
        metrics=[
            MeanScore(score_field="f1"),
            PassRate(score_field="f1"),
            Latency(),
        ],
        max_workers=4,  # concurrent threads
        cache_dir=str(tmp_path / "cache"),  # resume on re-run
    )
    assert result.summary["my-system"]["mean_score"] == 0.5
    assert result.summary["my-system"]["pass_rate"] == 0.5
    assert [row.example_id for row in result.rows] == [1, "two", 3, 4]
    assert isinstance(result.timing["my-system"], float)


def test_the_registry() -> None:
    from context_bench.registry import load_dataset, register_dataset, registry

    def my_loader_fn(n: int = 5) -> list[dict[str, Any]]:
        return [{"id": number, "context": "text"} for number in range(n)]

    registry.register("dataset", "my-data", my_loader_fn)
    register_dataset("my-data", my_loader_fn)
    dataset = load_dataset("my-data", n=100)
    assert len(list(dataset)) == 100
    assert "my-data" in registry.list("dataset")


def test_the_four_interfaces_are_protocols() -> None:
    for protocol in (System, Evaluator, Metric, MemorySystem):
        assert getattr(protocol, "_is_protocol", False)
    assert isinstance(my_system, System)
    assert MySystem.__bases__ == (object,)


# --- PerDatasetBreakdown


def test_a_breakdown_of_two_datasets() -> None:
    hotpotqa_examples = [{**example, "dataset": "hotpotqa"} for example in my_dataset[:2]]
    gsm8k_examples = [{**example, "dataset": "gsm8k"} for example in my_dataset[2:]]
    result = evaluate(
        systems=[my_system],
        dataset=hotpotqa_examples + gsm8k_examples,
        evaluators=[AnswerQuality()],
        metrics=[
            MeanScore(score_field="f1"),
            PerDatasetBreakdown(score_field="f1"),
        ],
    )
    shown = [(key, score) for key, score in result.summary["my-system"].items() if key.startswith("dataset:")]
    assert shown == [("dataset:gsm8k", 0.0), ("dataset:hotpotqa", 1.0)]


def test_examples_without_a_tag_are_unknown() -> None:
    metrics = [PerDatasetBreakdown(score_field="f1")]
    result = evaluate([my_system], my_dataset, [AnswerQuality()], metrics, progress=False)
    assert result.summary["my-system"]["dataset:unknown"] == 0.5
    assert PerDatasetBreakdown().score_field == "f1"


# --- evaluators


def test_answer_quality() -> None:
    ev = AnswerQuality()
    assert isinstance(ev, Evaluator)
    scores = ev.score({"answer": "Paris"}, {"response": "The capital is Paris."})
    assert scores == {"f1": 0.5, "exact_match": 0.0, "recall": 1.0, "contains": 1.0}


def _evaluator(name: str, **parameters: Any) -> Any:
    return getattr(context_bench.evaluators, name)(**parameters)


SAMPLES = [
    (
        "MultipleChoiceAccuracy",
        {},
        {"correct_letter": "B"},
        {"response": "The answer is B."},
        {"mc_accuracy": 1.0},
    ),
    pytest.param(
        "CodeExecution",
        {"timeout": 10.0},
        {
            "context": "def add(a, b):\n",
            "test": "def check(c):\n    assert c(1,2)==3\n",
            "entry_point": "add",
        },
        {"response": "    return a + b\n"},
        {"pass_at_1": 1.0},
        marks=needs_sandbox,
    ),
    ("MathEquivalence", {}, {"answer": r"\frac{1}{2}"}, {"response": "0.5"}, {"math_equiv": 1.0}),
    ("MathEquivalence", {}, {"answer": "42"}, {"response": r"The answer is $\boxed{42}$."}, {"math_equiv": 1.0}),
    ("NLILabelMatch", {}, {"answer": "Entailment"}, {"response": "Yes, this is true."}, {"nli_accuracy": 1.0}),
    (
        "IFEvalChecker",
        {},
        {
            "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
            "kwargs": [{}, {"keywords": ["hello"]}],
        },
        {"response": "hello world"},
        {"ifeval_strict": 1.0, "ifeval_loose": 1.0},
    ),
]


@pytest.mark.parametrize(("name", "parameters", "original", "processed", "printed"), SAMPLES)
def test_built_in_evaluators_print_what_the_page_prints(
    name: str,
    parameters: dict[str, Any],
    original: dict[str, Any],
    processed: dict[str, Any],
    printed: dict[str, float],
) -> None:
    ev = _evaluator(name, **parameters)
    assert ev.score(original, processed) == printed
    assert set(printed) == set(ev.score_fields)


def test_summarization_quality_emits_rouge_l() -> None:
    ev = _evaluator("SummarizationQuality")
    scores = ev.score({"answer": "the cat sat"}, {"response": "the cat sat"})
    assert scores == {"rouge_l_precision": 1.0, "rouge_l_recall": 1.0, "rouge_l_f1": 1.0}


class WordCountDiff:
    name = "word-count-diff"

    def score(self, original, processed):  # type: ignore[no-untyped-def]
        original_words = len(original.get("context", "").split())
        output_words = len(processed.get("response", "").split())
        ratio = output_words / original_words if original_words else 0.0
        return {"word_count_ratio": ratio}


def test_a_custom_evaluator() -> None:
    assert isinstance(WordCountDiff(), Evaluator)
    result = evaluate(
        systems=[my_system],
        dataset=my_dataset,
        evaluators=[AnswerQuality(), WordCountDiff()],
        metrics=[MeanScore(score_field="word_count_ratio")],
    )
    assert result.rows[0].scores["word_count_ratio"] == 1 / 4
    assert result.rows[0].scores["f1"] == 1.0
    assert result.summary["my-system"]["mean_score"] == 0.25
