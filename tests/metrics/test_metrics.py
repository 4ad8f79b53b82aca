"""The metrics of a run, and those that are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.errors import UsageError
from context_bench.metrics import MeanScore, default_metrics, load_metrics
from context_bench.metrics.quality import PassRate
from context_bench.metrics.token_stats import CostOfPass
from context_bench.types import Metric

# -- defaults


def test_five_metrics_for_every_run() -> None:
    names = [metric.name for metric in default_metrics()]
    assert names == ["mean-score", "pass-rate", "compression-ratio", "cost-of-pass", "latency"]


def test_more_datasets_add_a_breakdown_and_more_systems_a_rank() -> None:
    assert default_metrics(datasets=2)[-1].name == "per-dataset-breakdown"
    assert default_metrics(systems=2)[-1].name == "pareto-rank"
    assert [metric.name for metric in default_metrics(datasets=2, systems=2)[5:]] == [
        "engagement",
        "per-dataset-breakdown",
        "pareto-rank",
    ]


def test_field_and_threshold_reach_every_metric_that_has_them() -> None:
    mean, passes, _, cost, *_ = default_metrics("f1", 0.5)
    assert (mean, passes, cost) == (MeanScore("f1"), PassRate(0.5, "f1"), CostOfPass(0.5, "f1"))
    assert default_metrics("f1", datasets=2)[-1].score_field == "f1"  # type: ignore[attr-defined]


# -- load


DATA = [{"id": number, "context": "The code is c7.", "question": "code?", "answer": "c7"} for number in range(3)]

OWN = """
class Rows:
    def __init__(self, factor=1):
        self.name, self.factor = "rows", factor

    def compute(self, rows):
        return {self.name: float(self.factor * len(rows))}


made = Rows(factor=5)
made.name = "made"
text = "not a metric"
"""


def summarize(*metrics: Any) -> dict[str, float]:
    return evaluate("passthrough", DATA, metrics=metrics, progress=False).summary["passthrough"]


def test_a_name() -> None:
    assert "latency_median" in summarize("latency")
    assert "mean_score" not in summarize("latency")
    (metric,) = load_metrics("mean-score:score_field=contains")
    assert vars(metric) == vars(MeanScore("contains"))


def test_a_class_and_an_object_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    values = summarize(f"{file}:Rows:factor=2", f"{file}:made")
    assert (values["rows"], values["made"]) == (6.0, 15.0)


def test_a_sweep_is_several_metrics(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    found = list(load_metrics(f"{file}:Rows:factor=2|3"))
    assert all(isinstance(each, Metric) for each in found)
    assert [each.compute([])["rows"] for each in found] == [0.0, 0.0]
    assert [vars(each)["factor"] for each in found] == [2, 3]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("laetncy", "did you mean latency?"),
        ("latency:speed=1", "speed"),
        ("{file}:text", "is not a metric: it needs .name and .compute"),
        ("{file}:made:factor=2", "is already an instance and takes no parameters"),
        ("{file}:Nothing", "has no 'Nothing'"),
    ],
)
def test_what_is_not_a_metric_is_refused(reference: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    with pytest.raises(UsageError) as refused:
        summarize(reference.format(file=file))
    assert message in str(refused.value)


def test_one_text_in_place_of_a_list() -> None:
    result = evaluate("passthrough", DATA, metrics="latency", progress=False)
    assert result.summary["passthrough"].keys() == summarize("latency").keys()


def test_evaluators_too(tmp_path: Path) -> None:
    file = tmp_path / "scores.py"
    file.write_text(
        "class Length:\n"
        "    name = 'length'\n"
        "    def __init__(self, unit=1):\n"
        "        self.unit = unit\n"
        "    def score(self, original, processed):\n"
        "        return {'length': len(processed['context']) / self.unit}\n"
    )
    result = evaluate("passthrough", DATA, evaluators=[f"{file}:Length:unit=5"], progress=False)
    assert [row.scores["length"] for row in result.rows] == [3.0] * 3  # "The code is c7." has 15 characters
