"""The table of verdicts, and the words beneath the tables."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import EvalResult
from context_bench.metrics import DollarCost, PerDatasetBreakdown, default_metrics
from context_bench.reporters import TableReporter
from context_bench.results import EvalRow
from context_bench.summary import describe_metric, summarize
from rows import failed_row, make_row

NAMES = ("passthrough", "bm25:ratio=0.3", "a|b `name` with_marks", "a system with quite a long name:ratio=0.25,seed=7")


def _result(rows: list[EvalRow], **config: Any) -> EvalResult:
    names = list(dict.fromkeys(row.system for row in rows))
    tags = len({row.dataset for row in rows})
    metrics = [*default_metrics(systems=len(names)), DollarCost()]
    metrics += [PerDatasetBreakdown("score")] if tags > 1 else []
    config = {"metrics": [describe_metric(metric) for metric in metrics], "score_field": "score", **config}
    return EvalResult.from_summary(rows, summarize(rows, names, metrics, config), config, metrics)


def _rows(*tags: str, n: int = 60, **facts: Any) -> list[EvalRow]:
    """The k-th system fails on every k-th example but the first."""
    return [
        make_row(
            float(not place or number % (5 * place) > 0),
            system=name,
            example_id=number,
            dataset=tag,
            input_tokens=1000,
            output_tokens=400,
            latency=0.01,
            **facts,
        )
        for tag in tags or ("",)
        for place, name in enumerate(NAMES)
        for number in range(n)
    ]


def test_the_verdicts() -> None:
    text = TableReporter(wide=True).render(_result(_rows()))
    table = text.split("\n\n")[1].splitlines()
    rows = [[cell.strip() for cell in line.replace("\\|", "/").split("|")[1:-1]] for line in table]
    assert rows[0] == ["against passthrough", "pairs", "difference", "95% interval", "p", "verdict"]
    # -12 of 60: -12/62 = -0.1935, √((14/62 - 0.0375)/62) = 0.0551, t(59) = 2.001; p = 0.00085, times 3
    assert rows[2] == ["bm25:ratio=0.3", "60", "-0.200", "[-0.304, -0.083]", "0.003", "worse"]
    assert rows[3][0] == "a/b \\`name\\` with_marks"
    assert rows[4][-1].startswith("undecided (n ≥ ")
    assert "p corrected for 3 comparisons (Holm), intervals uncorrected." in text
    assert "n ≥ A; B: a verdict needs at least A examples" in text


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("tags", [(), ("needle:length=4000", "kv:length=4000", "json-logs:length=4000")])
def test_it_fits_a_terminal(width: int, tags: tuple[str, ...]) -> None:
    result = _result(_rows(*tags, metadata={"cost_usd": 0.001}))
    text = TableReporter(width, wide=True).render(result)
    assert max(map(len, text.splitlines())) <= width
    assert "difference" in text
    assert "worse" in text


def test_intervals_of_differences_fit_80_columns() -> None:
    text = TableReporter(80, wide=True).render(_result([row for row in _rows() if row.system in NAMES[:2]]))
    assert "| against passthrough | difference |     95% interval |      p | verdict |" in text


def test_controls_errors_and_samples_are_said() -> None:
    rows = _rows(n=200)
    for row in rows:
        if row.system == NAMES[1] and row.scores["score"] == 0.0:
            row.error, row.scores = "TimedOut: no answer", {}
    result = _result(rows, controls=[NAMES[2]], samples={"needle": "first", "kv": "random"})
    text = TableReporter(wide=True).render(result)
    assert "(control)" in text
    assert "worse; equivalent without errors" in text or "worse; undecided without errors" in text
    assert "only the first examples of needle were used" in text


def test_intervals_over_the_first_examples_have_a_mark_and_one_note() -> None:
    result = _result(_rows("x", "y"), samples={"x": "first", "y": "random"})
    lines = TableReporter(wide=True).render(result).splitlines()
    assert "first" in lines[5]
    assert "first" in next(line for line in lines if line.startswith("| bm25") and "worse" in line)
    notes = [line for line in lines if "only the first examples" in line]
    assert len(notes) == 1
    assert notes[0].startswith("first: only the first examples of x were used: intervals may not hold")
    marks = {key: each.mark for key, each in result.intervals[NAMES[1]].items()}
    assert (marks["mean_score"], marks["macro_score"]) == ("first", "first")
    assert {marks[key] for key in marks if key.endswith("@x")} <= {"first", "too few"}
    assert "first" not in {marks[key] for key in marks if key.endswith("@y")}
    assert result.comparison is not None
    assert [result.comparison.by_dataset[tag][0].interval.mark for tag in "xy"] == ["first", ""]
    alone = _result([row for row in _rows() if row.system == "passthrough"], samples={"": "first"})
    assert "first: only the first examples" in TableReporter(wide=True).render(
        alone
    )  # with one system, without a comparison
    assert EvalResult.from_json(result.to_json()).intervals[NAMES[1]]["mean_score"].mark == "first"
    found = result.compare(margin=0.1)
    assert found is not None
    assert found.verdicts[0].interval.mark == "first"


def test_it_says_by_how_many_clusters_it_went() -> None:
    rows = _rows("x", "y")
    for row in rows:
        if row.dataset == "x" and row.example_id:
            row.metadata = {"cluster": f"c{int(row.example_id) % 6}"}
    result = _result(rows)
    text = TableReporter(wide=True).render(result)
    # of x 59 in 6 documents and one by itself, of y 60 by themselves
    assert "intervals: 120 rows count as 67 clusters (rows of one document, conversation or example " in text
    assert "verdicts: 120 examples count as 67 clusters (those of one document or conversation go together)." in text
    assert result.intervals["passthrough"]["mean_score"].groups == 67
    assert result.comparison is not None
    assert [result.comparison.by_dataset[tag][0].groups for tag in "xy"] == [7, None]
    assert "clusters" not in TableReporter(wide=True).render(_result(_rows("x", "y")))


def test_a_baseline_that_agrees_with_itself_has_no_floor() -> None:
    rows = [row for row in _rows() if row.system in NAMES[:2]]
    again = [make_row(row.scores["score"], system="again", example_id=row.example_id) for row in rows[:60]]
    text = TableReporter(wide=True).render(_result([*rows, *again], baseline="passthrough", twin="again"))
    assert (
        "noise: no disagreement seen: passthrough agrees with itself on all 60 examples, so it disagrees on at most 6."
        in text
    )
    assert "differences up to" not in text


def test_by_dataset() -> None:
    text = TableReporter(wide=True).render(_result(_rows("x", "y")))
    assert "verdicts: difference of macro score, paired by example" in text
    assert "against passthrough, by dataset" in text
    assert "-0.200 worse" in text


def test_dollars_that_are_not_claimed_say_why() -> None:
    rows = _rows(n=400)
    for row in rows:
        row.metadata = {"cost_usd": 0.002 if row.system == "passthrough" else 0.001}
        if row.system == NAMES[3]:
            row.scores["score"] = 1.0
    text = TableReporter(wide=True).render(_result(rows))
    lines = text.splitlines()
    place = [cell.strip() for cell in lines[0].split("|")].index("$ saved / 1k")
    cells = [line.replace("\\|", "/").split("|")[place].strip() for line in lines[2:6]]
    assert cells == ["–", "not claimed", "not claimed", "$1.00 [$1.00, $1.00]"]
    assert "* $ saved / 1k of bm25:ratio=0.3" in text
    assert "not claimed: its quality is worse." in text


def test_one_example_and_one_failure_are_too_few() -> None:
    text = TableReporter(wide=True).render(_result([make_row(1.0, system="a"), failed_row(system="b")]))
    assert "too few" in text
    assert "undecided" in text


def test_what_would_decide_is_explained_where_it_is_told() -> None:
    rows = [row for row in _rows() if row.system in (NAMES[0], NAMES[3])]
    assert "n ≥ A; B: " in TableReporter(wide=True).render(_result(rows))
    assert "n ≥" not in TableReporter(wide=True).render(_result(rows, controls=[NAMES[3]]))


def test_a_rough_interval_is_explained() -> None:
    rows = _rows()
    assert "rough:" not in TableReporter(wide=True).render(_result(rows))
    for row in rows:
        if row.example_id == 1:
            row.input_tokens, row.output_tokens = 500_000, 100_000
    text = TableReporter(wide=True).render(_result(rows))
    assert " rough |" in text
    assert "rough: a few long examples dominate" in text
