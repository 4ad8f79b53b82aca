"""Colour: only added to what is there, never in names."""

from __future__ import annotations

import re

from context_bench import EvalResult
from context_bench.output.tables import color_table
from context_bench.reporters import TableReporter

TABLE = """\
| system    |               score |   verdict |
| --------- | ------------------: | --------: |
| a ★1 worse | ★1.000 [0.95, 1.00] | not worse |
| b         |        0.500 ± 0.04 |     worse |

worse (a note) [1, 2]
"""


def test_best_values_intervals_and_verdicts_are_coloured() -> None:
    title, rule, first, second, *rest = color_table(TABLE).split("\n")
    assert title == "\x1b[1m| system    |               score |   verdict |\x1b[0m"
    assert rule.startswith("\x1b[2m| ---")
    assert first == "| a ★1 worse | \x1b[1m★1.000\x1b[0m \x1b[2m[0.95, 1.00]\x1b[0m | \x1b[36mnot worse\x1b[0m |"
    assert second == "| b         |        0.500 \x1b[2m± 0.04\x1b[0m |     \x1b[33mworse\x1b[0m |"
    assert rest == ["", "worse (a note) [1, 2]", ""]


def test_nothing_but_colour_is_added() -> None:
    summary = {"a": {"mean_score": 0.5}, "b\x1b[31m|x": {"mean_score": 0.25}}
    result = EvalResult([], summary)
    coloured = TableReporter(color=True, wide=True).render(result)
    assert "\x1b[1m★0.500\x1b[0m" in coloured
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == TableReporter(wide=True).render(result)
