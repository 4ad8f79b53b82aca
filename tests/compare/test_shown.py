"""What a comparison shows, of one run and of two: print, repr, notebook, a verdict by name, a frame."""

from __future__ import annotations

import math

import pytest

from context_bench import EvalResult
from context_bench.compare.runs import RunComparison
from context_bench.compare.shown import ShownComparison
from context_bench.compare.verdicts import Comparison
from context_bench.summary import rebuild_metrics, summarize
from rows import make_row


def make_result(scores: dict[str, list[float]]) -> EvalResult:
    rows = [
        make_row(score, system=name, example_id=number)
        for name, own in scores.items()
        for number, score in enumerate(own)
    ]
    metrics = rebuild_metrics([{"name": "mean-score"}])
    return EvalResult.from_summary(rows, summarize(rows, list(scores), metrics, {}), {}, metrics)


# the second system fails 30 of 60 examples that the first one passes
SCORES = {"whole": [1.0] * 60, "cut": [1.0, 0.0] * 30}


def compare_within() -> ShownComparison:
    found = make_result(SCORES).compare("whole")
    assert isinstance(found, Comparison)
    return found


def compare_runs() -> ShownComparison:
    found = make_result({"cut": SCORES["cut"]}).compare(make_result({"cut": SCORES["whole"]}))
    assert isinstance(found, RunComparison)
    return found


KINDS = pytest.mark.parametrize("found", [compare_within(), compare_runs()], ids=["one run", "two runs"])


@KINDS
def test_the_repr_is_a_line_for_each_system(found: ShownComparison) -> None:
    first, second = repr(found).splitlines()
    assert first.startswith(f"{type(found).__name__}: score against ")
    assert first.endswith(", margin ±0.02")
    assert second.startswith("  cut: -0.500 [-0.6")
    assert second.endswith("], worse")
    assert len(repr(found)) < 200


@KINDS
def test_print_and_notebook_show_a_table(found: ShownComparison) -> None:
    head, rule, line, *notes = str(found).splitlines()
    assert head.startswith("| against ")
    assert set(rule) == set("| -:")
    assert line.startswith("| cut ")
    assert line.endswith("worse |")
    assert any("margin ±0.02" in note for note in notes)
    assert "Verdict(" not in str(found)
    assert found._repr_markdown_() == str(found)


@KINDS
def test_a_verdict_by_name(found: ShownComparison) -> None:
    verdict = found.of("cut")
    assert verdict is not None
    assert (verdict.word, verdict.difference, verdict.n) == ("worse", -0.5, 60)
    assert found.of("whole") is None


@KINDS
def test_the_frame_has_a_line_for_each_system(found: ShownComparison) -> None:
    pytest.importorskip("pandas")
    frame, verdict = found.to_dataframe(), found.of("cut")
    assert verdict is not None
    assert len(frame) == 1
    line = frame.iloc[0]
    assert (line["system"], line["verdict"], line["difference"], line["n"]) == ("cut", "worse", -0.5, 60)
    assert (line["difference:low"], line["difference:high"]) == (verdict.interval.low, verdict.interval.high)
    assert line["p_holm"] == line["p"] < 0.001
    assert (line["metric"], line["margin"]) == ("mean_score", 0.02)


def test_examples_without_a_dataset_are_listed_by_their_id() -> None:
    assert "broken by cut (30, the first 5):\n  1\n  3\n  5\n  7\n  9\n" in str(compare_runs())


def test_a_repr_of_many_systems_is_cut_off() -> None:
    many = make_result({f"s{number}": [1.0, 0.5, 1.0] for number in range(12)}).compare("s0")
    assert repr(many).splitlines()[-1] == "  and 3 more"
    assert len(repr(many).splitlines()) == 10


def test_one_pair_has_no_interval() -> None:
    one = make_result({"a": [1.0], "b": [0.0]}).compare("a")
    assert isinstance(one, Comparison)
    assert repr(one).splitlines()[1] == "  b: -1.000, undecided"
    verdict = one.of("b")
    assert verdict is not None
    assert math.isnan(verdict.interval.low)
