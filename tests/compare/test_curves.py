"""Curves from rows; each expected number is worked out by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from context_bench.compare.curves import compare_curves
from context_bench.errors import UsageError
from context_bench.output.tables import TableReporter
from context_bench.results import EvalResult, EvalRow
from report_pages import make_result
from rows import failed_row, make_row

FOUR: dict[str, tuple[int, Sequence[float]]] = {
    "passthrough": (100, (1, 1, 1, 0)),
    "k:r=1": (20, (1, 0, 0, 0)),
    "k:r=2": (60, (1, 1, 0, 0)),
    "k:r=3": (100, (1, 1, 1, 0)),
}


def rows_of(system: str, tokens: int, scores: Sequence[float], **facts: Any) -> list[EvalRow]:
    metadata = {"output": "context"}
    return [
        make_row(score, system=system, example_id=place, output_tokens=tokens, metadata=metadata, **facts)
        for place, score in enumerate(scores)
    ]


def result_of(systems: dict[str, tuple[int, Sequence[float]]], **config: Any) -> EvalResult:
    rows = [row for name, (tokens, scores) in systems.items() for row in rows_of(name, tokens, scores)]
    return EvalResult(rows, {name: {} for name in systems}, config=config)


def test_points_area_and_differences() -> None:
    (curve,) = result_of(FOUR).curves()
    assert (curve.name, curve.knob, curve.baseline, curve.meter) == ("k", "r", "passthrough", "output_tokens")
    assert curve.tokens_title == "tokens of the returned context, per example"  # no model was asked
    assert curve.metric == "mean_score"
    assert [(point.setting, point.tokens) for point in curve.points] == [("1", 20), ("2", 60), ("3", 100)]
    assert [point.saving for point in curve.points] == pytest.approx([0.8, 0.4, 0])
    assert [point.quality.value for point in curve.points] == [0.25, 0.5, 0.75]
    # trapezoids between 20 and 100 tokens: (.25 + .5) / 2 * 40 + (.5 + .75) / 2 * 40 = 40, over a length of 80
    assert list(curve.span or ()) == [20, 100]
    assert curve.area is not None
    assert curve.area.value == pytest.approx(0.5)
    difference = curve.points[1].difference
    assert difference is not None
    assert (difference.value, difference.low, difference.high) == pytest.approx((-0.25, -1.0, 0.72614), abs=1e-4)
    assert curve.best is None  # four examples show nothing


def test_the_largest_saving_that_is_not_worse() -> None:
    half = (1.0, 0.0) * 1000
    systems = {
        "passthrough": (100, (1.0,) * 2000),
        "k:r=1": (20, half),
        "k:r=2": (60, (1.0,) * 2000),
        "k:r=3": (90, (1.0,) * 1999 + (0.0,)),
    }
    (curve,) = result_of(systems).curves()
    # r=2: no pair differs, standard error sqrt(2/2002/2002) = 0.0007, far from -0.02; r=1 loses half
    assert curve.best == "k:r=2"
    assert curve.best_point is not None
    assert curve.best_point.saving == pytest.approx(0.4)
    assert result_of(systems).curves(margin=0.001)[0].best is None
    assert result_of(systems, margin=0.6).curves()[0].best == "k:r=1"


def test_equal_scores_of_too_few_examples_are_titled_so() -> None:
    def title(scores: Sequence[float], whole: Sequence[float]) -> str:
        systems = {"passthrough": (100, whole), "k:r=1": (20, scores), "k:r=2": (60, scores)}
        return result_of(systems).plot.curve().title

    ten, many = [1.0] * 10, [1.0] * 2000
    said = "All settings score 1.000, and 10 examples are too few to show that saving costs no quality"
    assert title(ten, ten) == said
    assert title(many, many) == "k saves 80% without being worse than passthrough"
    worse = "Quality against tokens: no setting is shown to save tokens without being worse"
    assert title([0.0] * 10, ten) == worse  # equal to each other, and worse than the baseline


def test_a_setting_between_that_is_worse_ends_the_search() -> None:
    good, bad = (1.0,) * 500, (0.0,) * 500
    systems = {"passthrough": (100, good), "k:r=1": (20, good), "k:r=2": (60, bad)}
    assert result_of(systems).curves()[0].best is None


def test_two_curves_are_compared_over_the_tokens_that_both_cover() -> None:
    more = {"j:r=1": (60, (0, 0, 0, 0)), "j:r=2": (140, (1, 1, 1, 1))}
    one, two = result_of(FOUR | more).curves()
    assert [list(each.span or ()) for each in (one, two)] == [[60, 100], [60, 100]]
    assert one.area is not None
    assert two.area is not None
    # k rises from .5 to .75 there; j from 0 to .5, half way to 140
    assert one.area.value == pytest.approx(0.625)
    assert two.area.value == pytest.approx(0.25)
    assert one.area_difference is None
    assert two.area_difference is not None
    assert two.area_difference.value == pytest.approx(-0.375)
    assert one.area_differences["j"].value == pytest.approx(0.375)
    assert compare_curves([one, two]) == "At equal tokens k is not shown to differ from j."  # four examples


def test_the_users_own_curve_is_compared_with_each_other_one() -> None:
    """Of 100 examples bm25 is right in 90, the user's in 60 and truncate in 30, at 20 and at 60 tokens alike."""
    right = {"bm25": 90, "my.py:keep": 60, "truncate": 30}
    systems: dict[str, tuple[int, Sequence[float]]] = {"passthrough": (100, (1.0,) * 100)}
    for name, count in right.items():
        for tokens in (20, 60):
            systems[f"{name}:n_tokens={tokens}"] = (tokens, (1.0,) * count + (0.0,) * (100 - count))
    curves = result_of(systems).curves()
    limits = r"by 0\.300 \[(.*), (.*)\]"
    wanted = rf"At equal tokens my.py:keep is above truncate {limits} and below bm25 {limits}\."
    told = re.fullmatch(wanted, compare_curves(curves))
    assert told is not None
    above, below = (tuple(map(float, told.group(at, at + 1))) for at in (1, 3))
    assert above == below  # the same 30 of 100 pairs differ
    assert 0.15 < above[0] < 0.3 < above[1] < 0.45
    assert compare_curves(result_of(FOUR).curves()) == ""  # one curve


def test_a_setting_that_the_run_named_is_the_baseline_of_the_curve() -> None:
    (curve,) = result_of({"k:r=1": (20, (1, 0)), "k:r=2": (60, (1, 1))}, baseline="k:r=1").curves()
    assert curve.baseline == "k:r=1"
    assert [point.saving for point in curve.points] == [0, -2]  # 60 tokens are two more times 20


def test_several_datasets_count_alike() -> None:
    rows = []
    for name, tokens in (("passthrough", 100), ("k:r=1", 20), ("k:r=2", 60)):
        rows += rows_of(name, tokens, (1, 1), dataset="a") + rows_of(name, tokens, (0, 0, 0, 1), dataset="b")
    (curve,) = EvalResult(rows, {name: {} for name in ("passthrough", "k:r=1", "k:r=2")}).curves()
    assert curve.metric == "macro_score"
    assert curve.points[0].quality.value == pytest.approx((1 + 0.25) / 2)
    assert curve.area is not None
    assert curve.area.value == pytest.approx(0.625)


def test_what_reached_the_model_counts_where_it_is_known() -> None:
    rows = [
        make_row(
            1.0, system=name, example_id=n, output_tokens=5, upstream_tokens=tokens, metadata={"output": "response"}
        )
        for name, tokens in (("direct", 100), ("p[level=low]", 50), ("p[level=high]", 25))
        for n in range(3)
    ]
    (curve,) = EvalResult(rows, {row.system: {} for row in rows}).curves()
    assert (curve.meter, curve.baseline) == ("upstream_tokens", "direct")
    assert curve.tokens_title == "tokens that reached the model, per example"
    assert [(point.setting, point.tokens, point.saving) for point in curve.points] == [
        ("high", 25, 0.75),
        ("low", 50, 0.5),
    ]


def test_a_failed_row_scores_0_and_has_no_tokens() -> None:
    result = result_of(FOUR)
    failed = failed_row(system="k:r=1", example_id=0)
    result.rows = [failed if (row.system, row.example_id) == ("k:r=1", 0) else row for row in result.rows]
    point = result.curves()[0].points[0]
    assert (point.quality.value, point.tokens, point.saving) == (0, 20, pytest.approx(0.8))


def test_a_run_without_a_baseline_takes_the_gentlest_setting_and_says_so() -> None:
    (curve,) = result_of({name: values for name, values in FOUR.items() if name != "passthrough"}).curves()
    assert curve.baseline == "k:r=3"
    assert curve.points[-1].difference is None
    assert "keeps the most tokens" in curve.note


def test_tokens_that_nobody_knows() -> None:
    rows = [make_row(1.0, system=f"p[level={level}]", example_id=n) for level in ("low", "high") for n in range(3)]
    (curve,) = EvalResult(rows, {row.system: {} for row in rows}).curves()
    assert curve.meter == ""
    assert curve.area is None
    assert curve.best is None
    assert "not measured" in curve.note
    assert curve.to_dict()["points"][0]["tokens"] is None


def test_examples_of_one_document_count_for_fewer() -> None:
    scores = (1.0,) * 20 + (0.0,) * 20
    plain, grouped = (result_of({"k:r=1": (20, scores), "k:r=2": (60, scores)}) for _ in range(2))
    for row in grouped.rows:
        row.metadata = {**row.metadata, "cluster": int(row.example_id) // 5}
    widths = [(each.area.high - each.area.low) for each in (plain.curves()[0], grouped.curves()[0]) if each.area]
    assert widths[1] > 1.5 * widths[0]


def test_a_baseline_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="must be one of the systems"):
        result_of(FOUR).curves(baseline="nobody")


def test_no_sweep_no_curve() -> None:
    result = result_of({"passthrough": FOUR["passthrough"], "k:r=1": FOUR["k:r=1"]})
    assert result.curves() == []
    assert "curves" not in json.loads(result.to_json())


def test_json_has_the_curves() -> None:
    document = json.loads(result_of(FOUR).to_json())
    (curve,) = document["curves"]
    assert curve["points"][1]["system"] == "k:r=2"
    assert curve["area"]["value"] == pytest.approx(0.5)
    assert EvalResult.from_json(result_of(FOUR).to_json()).curves()[0].name == "k"


def test_the_table_fits_eighty_columns() -> None:
    text = TableReporter(80, wide=True).render(result_of(FOUR))
    assert max(map(len, text.splitlines())) <= 80
    table = text[text.index("| k: r") :].splitlines()
    assert [line.split("|")[1:4] for line in table[2:5]] == [
        [" 1    ", "     20 ", " 80.0% "],
        [" 2    ", "     60 ", " 40.0% "],
        [" 3    ", "    100 ", "  0.0% "],
    ]
    assert "area under the curve: 0.500 [" in text
    assert "from 20 to 100 tokens." in text
    assert "none is shown" in text


def test_examples_that_need_no_context_show_no_saving() -> None:
    good = (1.0,) * 500
    systems = {"passthrough": (100, good), "k:r=1": (20, good), "k:r=2": (60, good), "closed-book": (1, good)}
    rows = [row for name, (tokens, scores) in systems.items() for row in rows_of(name, tokens, scores)]
    (curve,) = make_result(rows, baseline="passthrough", controls=["closed-book"]).curves()
    assert curve.best is None
    assert (
        curve.note
        == "these examples do not need their context: closed-book, which reads none, is not worse than passthrough"
    )
    rows = [row for row in rows if row.system != "closed-book"]
    assert make_result(rows, baseline="passthrough").curves()[0].best == "k:r=1"


def test_contexts_are_not_held_against_answers() -> None:
    kinds = dict.fromkeys(FOUR, "context") | {"passthrough": "response"}
    result = result_of(FOUR, baseline="passthrough", returns=kinds, unread=["k:r=1", "k:r=2", "k:r=3"])
    (curve,) = result.curves()
    assert curve.baseline == "k:r=3"
