"""The tables in short: the sentences beneath them say what the numbers say, and claim no more than the verdicts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench import EvalResult
from context_bench.comparison import Comparison
from context_bench.reporters import TableReporter
from context_bench.reporters.plain_answers import answer_plainly
from context_bench.stats import Interval, Verdict


def verdict(name: str, word: str, needed: int | None = None, **facts: Any) -> Verdict:
    interval = Interval(0.0, -0.1, 0.1, n=30)
    return Verdict(word, 0.0, interval, 0.5, 0.5, 0.02, 30, needed_n=needed, name=name, **facts)


def answers(summary: dict[str, dict[str, float]], *verdicts: Verdict, **config: Any) -> list[str]:
    """What is said of these systems, the first of which is the baseline."""
    comparison = Comparison(next(iter(summary)), "mean_score", 0.02, list(verdicts)) if verdicts else None
    full = {name: {"num_examples": 30.0, "num_errors": 0.0, **values} for name, values in summary.items()}
    return answer_plainly(EvalResult([], full, {}, config, comparison=comparison))


def test_what_it_loses_saves_and_costs() -> None:
    summary = {
        "direct": {"prompt_savings": 0.0, "evidence_survival": 1.0, "cost_per_1k_usd": 0.6},
        "squeeze": {"prompt_savings": 0.077, "evidence_survival": 1.0, "cost_per_1k_usd": 0.56},
        "cut": {"prompt_savings": 0.5, "evidence_survival": 0.75, "cost_per_1k_usd": 0.31},
    }
    assert answers(summary, verdict("squeeze", "undecided", 1170), verdict("cut", "worse")) == [
        "in short, against direct:",
        "squeeze: undecided (about 1,170 examples would decide); loses no evidence; 7.7% fewer prompt tokens; "
        "$0.56 for 1,000 examples (direct: $0.6).",
        "cut: worse; loses evidence in 25.0% of the examples; 50.0% fewer prompt tokens; "
        "$0.31 for 1,000 examples (direct: $0.6).",
        "largest saving that is not worse: none is shown to be.",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("equivalent", "worse"), "largest saving that is not worse: a, 30.0%."),
        (("equivalent", "not worse"), "largest saving that is not worse: b, 60.0%."),
        (("better", "undecided"), "largest saving that is not worse: a, 30.0%."),
        (("worse", "worse"), "no saving without loss: all that save are worse than passthrough."),
    ],
)
def test_which_one_wins(words: tuple[str, str], said: str) -> None:
    summary = {
        "passthrough": {"compression_ratio": 0.0},
        "a": {"compression_ratio": 0.3},
        "b": {"compression_ratio": 0.6},
    }
    assert answers(summary, *map(verdict, "ab", words))[-1] == said


def test_longer_prompts_and_unchanged_ones_are_called_so() -> None:
    summary = {
        "p": {"compression_ratio": 0.0},
        "a": {"compression_ratio": -0.25},
        "b": {"compression_ratio": 0.0001},
        "c": {"compression_ratio": math.nan, "prompt_savings": math.nan},
    }
    assert answers(summary, *(verdict(name, "equivalent") for name in "abc"))[1:] == [
        "a: equivalent (within 0.02); 25.0% more prompt tokens.",
        "b: equivalent (within 0.02); as many prompt tokens.",
        "c: equivalent (within 0.02).",
    ]


def test_failures_are_told_and_controls_are_left_out() -> None:
    summary = {"p": {}, "a": {"num_errors": 30.0}, "b": {"num_errors": 3.0}, "floor": {}}
    errors = verdict("b", "worse", word_without_errors="equivalent")
    said = answers(summary, verdict("a", "worse"), errors, verdict("floor", "worse", control=True))
    assert said[1:] == ["a: all examples failed.", "b: worse, equivalent without errors."]


def test_one_system_alone_has_no_verdict() -> None:
    (said,) = answers({"mine": {"prompt_savings": 0.342, "evidence_survival": 0.7}})
    assert said.startswith("in short: mine: loses evidence in 30.0% of the examples; 34.2% fewer prompt tokens; ")
    assert "no verdict without a baseline" in said
    assert answers({"passthrough": {"compression_ratio": 0.0}}) == []
    assert answers({"proxy": {"compression_ratio": math.nan}}) == []


def test_a_memory_is_said_to_find() -> None:
    summary = {"naive": {}, "bm25": {"retrieval_recall": 0.98, "prompt_savings": 0.9}}
    assert answers(summary, verdict("bm25", "not worse"))[1] == (
        "bm25: not worse; finds 98.0% of the evidence; 90.0% fewer prompt tokens."
    )


def test_many_systems_have_their_tables_alone() -> None:
    names = [f"s{number}" for number in range(9)]
    summary: dict[str, dict[str, float]] = {"p": {}, **{name: {} for name in names}}
    assert answers(summary, *(verdict(name, "worse") for name in names)) == []
    assert len(answers(summary, *(verdict(name, "worse") for name in names[:8]))) == 9


def test_it_stands_at_the_end_of_the_table_and_fits_it() -> None:
    summary = {name: {"num_examples": 30.0, "mean_score": 1.0, "compression_ratio": 0.5} for name in ("p", "a", "b")}
    comparison = Comparison("p", "mean_score", 0.02, [verdict("a", "equivalent"), verdict("b", "undecided", 99)])
    lines = TableReporter(40).render(EvalResult([], summary, {}, {}, comparison=comparison)).splitlines()
    place = lines.index("in short, against p:")
    assert lines[place + 1 :] == [
        "a: equivalent (within 0.02); 50.0% fewer",
        "  prompt tokens.",
        "b: undecided (about 99 examples would",
        "  decide); 50.0% fewer prompt tokens.",
        "largest saving that is not worse: a,",
        "  50.0%.",
    ]
