"""Repeats: what K answers to each example say."""

from __future__ import annotations

import pytest

from context_bench import evaluate
from context_bench.metrics import Repeats, default_metrics
from context_bench.results import EvalRow
from rows import failed_row, make_row


def _rows(answers: list[list[float]]) -> list[EvalRow]:
    return [
        make_row(score, example_id=number, repeat=repeat)
        for number, scores in enumerate(answers)
        for repeat, score in enumerate(scores)
    ]


def test_each_number_by_hand() -> None:
    values = Repeats(repeats=3).compute(_rows([[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]]))
    assert values["pass_at_k"] == 0.75
    assert values["pass_all_k"] == 0.25
    # of three pairs of answers to one example two disagree, in two of four examples
    assert values["repeat_flips"] == pytest.approx((2 / 3 + 2 / 3) / 4)
    # within (2/3 + 2/3) / 8 = 1/6; between 3·(.25 + 1/36 + .25 + 1/36) / 3 = 5/9; (5/9 - 1/6)/3 = 7/54
    assert values["repeat_variance_share"] == pytest.approx((1 / 6) / (1 / 6 + 7 / 54))


def test_the_worked_example_has_its_intervals() -> None:
    baseline, system = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 0, 1, 1, 1, 1, 0, 1, 0.5]
    tally = Repeats(repeats=2).start()
    for row in _rows([list(pair) for pair in zip(baseline, system)]):
        tally.add(row)
    intervals = tally.intervals()
    assert intervals["repeat_variance_share"].render() == "0.503 [0.16, 1.00]"  # docs/statistics.md
    assert (intervals["pass_at_k"].value, intervals["pass_all_k"].value) == (0.8, 0.5)
    assert intervals["pass_at_k"].n == 10


def test_errors_do_not_pass_and_rows_without_a_score_are_no_answer() -> None:
    rows = [make_row(1.0), failed_row(repeat=1), make_row(1.0, example_id=2), make_row(None, example_id=2, repeat=1)]
    values = Repeats(repeats=2).compute(rows)
    assert (values["pass_at_k"], values["pass_all_k"], values["repeat_flips"]) == (1.0, 0.0, 1.0)  # the first alone


def test_what_has_too_few_answers_says_so() -> None:
    tally = Repeats(repeats=3).start()
    for row in _rows([[1, 0], [0, 0]]):
        tally.add(row)
    assert tally.result()["pass_at_k"] == 0.0  # NaN in a summary, as it is not measured
    assert tally.result()["repeat_flips"] == 0.5
    assert tally.unmeasured()["pass_at_k"] == "no example has 3 answers with a score"
    assert "repeat_flips" not in tally.unmeasured()


def test_a_run_with_repeats_has_it_by_default() -> None:
    assert not any(isinstance(metric, Repeats) for metric in default_metrics())
    asked: dict[int, int] = {}

    def every_other(example: dict[str, object]) -> dict[str, object]:
        number = int(str(example["id"]))
        asked[number] = asked.get(number, 0) + 1
        return {"response": "red" if asked[number] % 2 else "blue"}

    given = [{"id": number, "context": "red", "answer": "red"} for number in range(20)]
    result = evaluate(every_other, given, repeats=2, progress=False)
    values = result.summary["every_other"]
    assert (values["pass_at_k"], values["pass_all_k"], values["repeat_flips"]) == (1.0, 0.0, 1.0)
    assert result.intervals["every_other"]["pass_all_k"].high < 0.2
    flat = evaluate(every_other, given, repeats=2, progress=False, keep_rows=False)
    assert flat.summary["every_other"]["pass_all_k"] == 0.0
    table = result._repr_markdown_()
    assert all(title in table for title in ("pass@k", "pass^k", "flips", "repeat variance"))
    assert "pass@k: at least one of 2 answers" in table
