"""What every reporter keeps to.

Runs for every registered reporter: install a plugin with an entry point in `context_bench.reporters`,
and it is held to the same.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from context_bench import EvalResult, Reporter
from context_bench.metrics import default_metrics
from context_bench.registry import registry
from context_bench.results import EvalRow
from context_bench.summary import describe_metric, summarize
from rows import failed_row, make_row

HOSTILE = "a|b\n<script>\x1b[31m\u202e\ud800"


def _result(rows: list[EvalRow]) -> EvalResult:
    names = list(dict.fromkeys(row.system for row in rows))
    metrics = default_metrics(datasets=2, systems=len(names))
    config = {"metrics": [describe_metric(metric) for metric in metrics], "score_field": "score"}
    summary = summarize(rows, names, metrics).numbers
    return EvalResult(rows, summary, dict.fromkeys(names, 1.0), config, metrics)


RESULTS = {
    "none": _result([]),
    "one": _result([make_row(1.0, input_tokens=10, output_tokens=5, latency=0.1, response="x")]),
    "two systems": _result([make_row(1.0, system="a", dataset="x"), make_row(0.0, system="b", dataset="y")]),
    "only errors": _result([failed_row(), failed_row(system="b")]),
    "no pass": _result([make_row(0.0), make_row(None)]),
    "hostile": _result([make_row(1.0, system=HOSTILE, example_id=HOSTILE, dataset=HOSTILE, response=HOSTILE)]),
}


@pytest.fixture(params=registry.list("reporter"))
def reporter(request: pytest.FixtureRequest) -> Any:
    return registry.get("reporter", request.param)()


@pytest.fixture(params=RESULTS)
def result(request: pytest.FixtureRequest) -> EvalResult:
    return copy.deepcopy(RESULTS[request.param])


def test_it_has_a_name_and_renders(reporter: Any) -> None:
    assert isinstance(reporter, Reporter)
    assert registry.get("reporter", reporter.name) is type(reporter)


def test_it_gives_a_text_that_can_be_written_and_ends_its_last_line(reporter: Any, result: EvalResult) -> None:
    text = reporter.render(result)
    assert text.endswith("\n")
    text.encode("utf-8")


def test_the_same_result_gives_the_same_text_and_stays_as_it_was(reporter: Any, result: EvalResult) -> None:
    before = copy.deepcopy(result)
    assert reporter.render(result) == reporter.render(result)
    assert result == before
