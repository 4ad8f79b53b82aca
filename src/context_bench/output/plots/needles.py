"""Needles by depth and length: the cells of the grid as data, and the heatmap."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.output.plots.labels import shorten_name
from context_bench.output.plots.vega_plot import Plot

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

__all__ = ["DEPTHS", "Cell", "Cells", "NeedleGrid", "draw_heatmap", "list_lengths", "subtract_baseline"]

DEPTHS = ("0–20%", "20–40%", "40–60%", "60–80%", "80–100%")
"""The fifths of a context."""
_MOST_LENGTHS = 16
_NEEDLE_ID = re.compile(r"-(\d+)-d([01]\.\d+)(?:-|$)")
_SIDE, _HIGH = 56, 26

Cell = tuple[int, int]
"""The length of a context in tokens, and which fifth of it the needle stands in."""

Cells = dict[str, dict[Cell, list[float]]]
"""Sum of scores and number of rows, by system and cell."""


class NeedleGrid:
    """Gathers scores by length and depth, row by row.

    Args:
        score_field: The score that counts.
    """

    def __init__(self, score_field: str = "score") -> None:
        self._field = score_field
        self.cells: Cells = {}

    @classmethod
    def of(cls, result: EvalResult) -> NeedleGrid:
        """Gather from the rows of a result; ids state length and depth of generated needles."""
        grid = cls(result.settings.score_field)
        for row in result.rows:
            grid.add(row)
        return grid

    def add(self, row: EvalRow, example: Mapping[str, Any] | None = None) -> None:
        """Take in a row, with its example where that is known; an errored row counts as 0, as in every mean."""
        score = 0.0 if row.error is not None else row.scores.get(self._field)
        cell = _find_cell(row, example) if score is not None else None
        if cell is not None and score is not None:
            sums = self.cells.setdefault(row.system, {}).setdefault(cell, [0.0, 0.0])
            sums[0] += score
            sums[1] += 1


def _find_cell(row: EvalRow, example: Mapping[str, Any] | None) -> Cell | None:
    """Find length and depth of a needle, in the example or in its id, which states both."""
    meta = (example or {}).get("meta")
    if isinstance(meta, Mapping) and "length" in meta:
        length, depth = meta["length"], meta.get("asked_depth", meta.get("depth"))
    else:
        named = _NEEDLE_ID.search(str(row.example_id))
        if named is None:
            return None
        length, depth = int(named[1]), float(named[2])
    if not isinstance(length, int | float) or not isinstance(depth, int | float) or not 0 <= depth <= 1:
        return None
    return int(length), min(len(DEPTHS) - 1, int(depth * len(DEPTHS)))


def list_lengths(cells: Cells) -> list[int]:
    """List the lengths that are drawn, the shortest first."""
    return sorted({length for own in cells.values() for length, _ in own})[:_MOST_LENGTHS]


def subtract_baseline(own: dict[Cell, list[float]], base: dict[Cell, list[float]]) -> dict[Cell, float]:
    """Subtract the mean score of the baseline from a system's, in the cells that both have."""
    return {cell: own[cell][0] / own[cell][1] - base[cell][0] / base[cell][1] for cell in own if cell in base}


def draw_heatmap(result: EvalResult, cells: Cells | None = None) -> Plot:
    """Draw scores by depth and length: a grid for each system, and one for its difference from the baseline.

    Args:
        result: The run.
        cells: What was gathered with the examples at hand; by default from the rows alone.

    Raises:
        UsageError: No example states its length and the depth of its evidence.
    """
    cells = NeedleGrid.of(result).cells if cells is None else cells
    lengths = list_lengths(cells)
    if not lengths:
        raise UsageError(
            "there is no heatmap of this run: no example states its length and the depth of its evidence "
            "(as those of needle do)"
        )
    comparison = result.comparison
    baseline = comparison.baseline if comparison is not None else result.settings.baseline
    base = cells.get(baseline or "", {})
    controls = set(result.settings.controls)
    found = [name for name in result.summary if name in cells]
    names = sorted([name for name in found if name not in controls] or found, key=lambda name: name != baseline)
    grids = []
    for name in names:
        minus = None if name == baseline else base
        grids += _draw_pair(name, lengths, cells[name], minus, baseline, last=name == names[-1])
    lines = ["Mean score by depth of the evidence in the context (down) and length of the context (across)."]
    if base and baseline:
        lines.append(f"At the right minus {shorten_name(baseline)}: blue is better, orange is worse.")
    if len(names) < len(found):
        lines.append("Controls are left out.")
    spec = {
        "title": {
            "text": _find_title(cells, names),
            "subtitle": lines,
        },
        "concat": grids,
        "columns": 2 if base else 3,
        "spacing": {"row": 14, "column": 26},
    }
    return Plot("heatmap", spec)


def _draw_pair(
    name: str,
    lengths: list[int],
    own: dict[Cell, list[float]],
    base: dict[Cell, list[float]] | None,
    baseline: str | None,
    *,
    last: bool,
) -> list[dict[str, Any]]:
    """Draw a system and its difference; where there is a baseline, its own place at the right stays empty."""
    values = {cell: sums[0] / sums[1] for cell, sums in own.items()}
    grids = [_draw_grid(shorten_name(name, 44), lengths, values, own, last=last)]
    if base:
        title = f"minus {shorten_name(baseline or '', 36)}"
        grids.append(_draw_grid(title, lengths, subtract_baseline(own, base), own, last=last, minus=True))
    elif base is None:
        grids.append({"data": {"values": []}, "mark": "point", "width": 1, "height": 1})
    return grids


def _draw_grid(
    title: str,
    lengths: list[int],
    values: dict[Cell, float],
    counts: dict[Cell, list[float]],
    *,
    last: bool,
    minus: bool = False,
) -> dict[str, Any]:
    rows = [
        {
            "length": f"{length:,}",
            "depth": DEPTHS[depth],
            "score": round(value, 4),
            "examples": counts[length, depth][1],
        }
        for (length, depth), value in sorted(values.items())
        if length in lengths
    ]
    scheme = (
        {"domain": [-1, 0, 1], "range": ["#D55E00", "#f7f7f7", "#0072B2"]}
        if minus
        else {"domain": [0, 1], "range": ["#f3f7fb", "#08519c"], "interpolate": "lab"}
    )
    dark = "abs(datum.score) > 0.75" if minus else "datum.score > 0.65"
    tips = [
        {"field": "length", "title": "tokens"},
        {"field": "depth"},
        {"field": "score", "type": "quantitative", "format": "+.3f" if minus else ".3f"},
        {"field": "examples", "type": "quantitative"},
    ]
    return {
        "title": {"text": title, "fontSize": 12, "anchor": "start", "offset": 6},
        "width": {"step": _SIDE},
        "height": {"step": _HIGH},
        "data": {"values": rows},
        "encoding": _draw_axes(lengths, titled=last),
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white", "strokeWidth": 2},
                "encoding": {
                    "color": {"field": "score", "type": "quantitative", "scale": scheme, "legend": None},
                    "tooltip": tips,
                },
            },
            {
                "mark": {"type": "text"},
                "encoding": {
                    "text": {"field": "score", "type": "quantitative", "format": "+.2f" if minus else ".2f"},
                    "color": {"condition": {"test": dark, "value": "white"}, "value": "#222222"},
                },
            },
        ],
        "resolve": {"scale": {"color": "independent"}},
    }


def _draw_axes(lengths: list[int], *, titled: bool) -> dict[str, Any]:
    across = {
        "field": "length",
        "type": "ordinal",
        "scale": {"domain": [f"{each:,}" for each in lengths]},
        "title": "length of the context, in tokens" if titled else None,
        "axis": {"labelAngle": 0, "domain": False, "ticks": False, "titleFontSize": 11},
    }
    down = {
        "field": "depth",
        "type": "ordinal",
        "scale": {"domain": list(DEPTHS)},
        "title": None,
        "axis": {"domain": False, "ticks": False},
    }
    return {"x": across, "y": down}


def _find_title(cells: Cells, names: list[str]) -> str:
    """Say what is seen: where scores are lowest."""
    worst = min(
        ((sums[0] / sums[1], name, cell) for name in names for cell, sums in cells[name].items()),
        key=lambda found: found[0],
    )
    score, name, (length, depth) = worst
    if score > 0.995:
        return "Every system finds the evidence at every depth and length"
    return f"The lowest score, {score:.2f}: {shorten_name(name)} at {length:,} tokens, depth {DEPTHS[depth]}"
