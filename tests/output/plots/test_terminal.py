"""Plots on a grid of characters: they fit, marks stand where they belong, and names are beside them."""

from __future__ import annotations

import math
import re

import pytest

from context_bench import EvalResult, evaluate
from context_bench.errors import UsageError
from context_bench.output.layout import display_width

SUMMARY = {
    "cheap": {"mean_score": 0.25, "cost_of_pass": 100.0},
    "dear": {"mean_score": 0.75, "cost_of_pass": 900.0},
    "beaten": {"mean_score": 0.5, "cost_of_pass": 1000.0},
    "oracle": {"mean_score": 1.0, "cost_of_pass": 50.0},
    "unknown": {"mean_score": 0.5},
}


def find(text: str, char: str) -> list[tuple[int, int]]:
    lines = text.splitlines()
    end = next(number for number, line in enumerate(lines) if "└" in line)
    return [(column, row) for row, line in enumerate(lines[:end]) for column, each in enumerate(line) if each == char]


def test_marks_stand_by_quality_and_cost() -> None:
    text = EvalResult([], SUMMARY, {}, {"controls": ["oracle"]}).plot.pareto().to_text(80)
    assert text.splitlines()[:2] == ["On the Pareto front of quality and cost: cheap and dear", "mean score"]
    (cheap_x, cheap_y), (dear_x, dear_y) = sorted(find(text, "●"))
    (beaten,), (oracle,) = find(text, "○"), find(text, "◇")
    assert cheap_x < dear_x < beaten[0]
    assert oracle[0] < cheap_x
    assert oracle[1] < dear_y < beaten[1] < cheap_y
    assert "Not measured, so not drawn: unknown." in text
    for name in ("cheap", "dear", "beaten", "oracle"):
        assert name in text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("names", [("a", "b", "c"), ("日本語システム", "e\u0301" * 20, "x" * 100)])
def test_no_line_is_longer_than_the_terminal(width: int, names: tuple[str, ...]) -> None:
    summary = {name: {"mean_score": 0.2 * number, "cost_of_pass": 10.0**number} for number, name in enumerate(names, 1)}
    text = EvalResult([], summary).plot.pareto().to_text(width)
    assert max(map(display_width, text.splitlines())) <= width


def test_names_that_would_cover_each_other_have_letters() -> None:
    summary = {
        f"a long name of system {number}": {"mean_score": 0.5, "cost_of_pass": 100.0 + number} for number in range(9)
    }
    text = EvalResult([], summary).plot.pareto().to_text(80)
    assert "a a long name of system 0" in text
    assert "i a long name of system 8" in text


def test_colour_adds_nothing_but_colour() -> None:
    result = EvalResult([], SUMMARY)
    coloured = result.plot.pareto().to_text(80, color=True)
    assert "\x1b[36m●\x1b[0m" in coloured
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == result.plot.pareto().to_text(80)


def test_curves_of_a_run() -> None:
    result = evaluate(
        ["passthrough", "bm25:ratio=0.1|0.3", "truncate:ratio=0.25|0.5"], "needle:length=400,n=8", progress=False
    )
    text = result.plot.curve().to_text(80)
    assert "■ bm25 (ratio)   ▲ truncate (ratio)   │ 95% interval" in text
    assert "┄ passthrough (baseline)" in text
    (low, high) = sorted(find(text, "▲"))
    assert low[1] > high[1]  # 0.25 of the text holds fewer needles than 0.5
    for setting in ("0.1", "0.3", "0.25", "0.5"):
        assert setting in text
    assert max(map(display_width, text.splitlines())) <= 80


def test_settings_of_two_curves_may_have_the_same_label() -> None:
    systems = ["passthrough", "bm25:ratio=0.2|0.6", "truncate:ratio=0.2|0.6"]
    plot = evaluate(systems, "needle:length=400,n=4", progress=False).plot.curve()
    for drawn in (plot.to_text(100), plot.to_svg()):
        assert drawn.count("0.6") >= 2
        assert "~2" not in drawn


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(UsageError, match=r"no system has both a score and a cost$"):
        EvalResult([], {"a": {"mean_score": 0.5, "cost_of_pass": math.nan}}).plot.pareto().to_text(80)
    with pytest.raises(UsageError, match=r"a score and a cost; add to metrics: cost-of-pass$"):
        EvalResult([], {"a": {"mean_score": 0.5}}).plot.pareto()
    with pytest.raises(UsageError, match=r"a score and a cost; add to metrics: mean-score, cost-of-pass$"):
        EvalResult([], {"a": {"longest": 0.5}}).plot.pareto()
    with pytest.raises(UsageError, match=r"a score and a cost; add to metrics: mean-score$"):
        EvalResult([], {"a": {"cost_of_pass": 50.0}}).plot.pareto()
    with pytest.raises(TypeError, match="the chart datasets is not drawn in a terminal"):
        EvalResult([], SUMMARY).plot.datasets().to_text(80)
    with pytest.raises(UsageError, match="there is no curve of this run"):
        EvalResult([], SUMMARY).plot.curve()
