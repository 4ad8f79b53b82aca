"""Charts of grids: scores by depth and length of needles, and evidence against right and wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from context_bench.numbers import EVIDENCE_SURVIVAL, percent, score
from context_bench.output.plots.chart import Cell, Chart, Drawn, Grid, Grids
from context_bench.output.plots.labels import label_system, label_systems
from context_bench.output.plots.pareto import find_baseline
from context_bench.text.evidence_state import State

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

DEPTHS = ("0–20%", "20–40%", "40–60%", "60–80%", "80–100%")  # the fifths of a context
_MAX_LENGTHS = 16
_NEEDLE_ID = re.compile(r"-(\d+)-d([01]\.\d+)(?:-|$)")

Place = tuple[int, int]  # the length of a context in tokens, and the fifth that contains the needle

Cells = dict[str, dict[Place, list[float]]]  # sum of scores and number of rows, by system and cell


class NeedleGrid:
    """Gathers scores by length and depth, row by row."""

    def __init__(self, score_field: str = "score") -> None:
        self._field = score_field
        self.cells: Cells = {}

    @classmethod
    def of(cls, result: EvalResult) -> NeedleGrid:
        """Gather scores from the rows of a result; ids of generated needles contain length and depth."""
        grid = cls(result.settings.score_field)
        for row in result.rows:
            grid.add(row)
        return grid

    def add(self, row: EvalRow, example: Mapping[str, Any] | None = None) -> None:
        """Add a row, with its example if known; an errored row counts as 0, as in every mean."""
        score = 0.0 if row.error is not None else row.scores.get(self._field)
        cell = _find_cell(row, example) if score is not None else None
        if cell is not None and score is not None:
            sums = self.cells.setdefault(row.system, {}).setdefault(cell, [0.0, 0.0])
            sums[0] += score
            sums[1] += 1


def _find_cell(row: EvalRow, example: Mapping[str, Any] | None) -> Place | None:
    """Find length and depth of a needle, in the example or in its id."""
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


def draw_heatmap(result: EvalResult, cells: Cells) -> Drawn:
    """Draw scores by depth and length: a grid for each system, and one for its difference from the baseline."""
    lengths = sorted({length for own in cells.values() for length, _ in own})[:_MAX_LENGTHS]
    if not lengths:
        return "no example gives its length and the depth of its evidence (those of `needle` do)"
    baseline = find_baseline(result)
    base = cells.get(baseline or "", {})
    names = sorted((name for name in result.summary if cells.get(name)), key=lambda name: name != baseline)
    lines, numbers, labels = [], [], label_systems(names, 36)
    for name in names:
        own = cells[name]
        values = {place: sums[0] / sums[1] for place, sums in own.items()}
        pair = [_make_grid(labels[name], name, lengths, values, own)]
        if name != baseline and base:
            both = {place: values[place] - base[place][0] / base[place][1] for place in own if place in base}
            minus = f"minus {labels[baseline or '']}"
            pair.append(_make_grid(minus, f"{name} {minus}", lengths, both, own, minus=True))
        lines.append(pair)
        numbers += [
            [name, f"{length:,}", DEPTHS[depth], f"{own[length, depth][1]:.0f}", score(values[length, depth])]
            for length, depth in sorted(values)
            if length in lengths
        ]
    notes = [
        "Mean score by the length of the context (across, in tokens) and the depth of the evidence in it (down). "
        "The stronger the colour, the higher the score."
    ]
    if base:
        notes.append(f"Difference from {label_system(baseline or '')}: blue is better, orange is worse.")
    return Chart(
        "heatmap",
        "score by length and depth",
        _title_heatmap(result, cells, names),
        notes,
        Grids(lines, 62, 30),
        ["system", "tokens", "depth", "examples", "score"],
        numbers,
    )


def _make_grid(
    title: str,
    name: str,
    lengths: Sequence[int],
    values: Mapping[Place, float],
    counts: Mapping[Place, Sequence[float]],
    *,
    minus: bool = False,
) -> Grid:
    def make_cell(length: int, depth: int) -> Cell:
        tip, value = f"{name}: {length:,} tokens, depth {DEPTHS[depth]}", values.get((length, depth))
        if value is None:
            return Cell("", "none", f"{tip}: no examples")
        text = f"{value:+.2f}" if minus else f"{value:.2f}"
        shade = _shade_difference(value) if minus else _shade_share(value)
        return Cell(text, shade, f"{tip}: {text}, {counts[length, depth][1]:.0f} examples")

    cells = [[make_cell(length, depth) for length in lengths] for depth in range(len(DEPTHS))]
    return Grid(title, f"{name}: scores by length and depth", [f"{length:,}" for length in lengths], DEPTHS, cells)


def _shade_share(value: float) -> str:
    return f"q{min(9, max(0, int(value * 10)))}"


def _shade_difference(value: float) -> str:
    step = min(4, math.ceil(abs(value) / 0.25 - 1e-9)) if abs(value) >= 0.005 else 0
    return f"{'up' if value > 0 else 'down'}{step}" if step else "even"


def _title_heatmap(result: EvalResult, cells: Cells, names: list[str]) -> str:
    """Write the main observation: the lowest score of a competing system."""
    controls = set(result.settings.controls)
    competing = [name for name in names if name not in controls] or names
    worst, name, (length, depth) = min(
        ((sums[0] / sums[1], name, place) for name in competing for place, sums in cells[name].items()),
        key=lambda found: found[0],
    )
    if worst > 0.995:
        return "Every system finds the evidence at every depth and length"
    return f"The lowest score, {worst:.2f}: {label_system(name)} at {length:,} tokens, depth {DEPTHS[depth]}"


# --- evidence


class EvidenceShares(NamedTuple):
    """Shares of the rows with traced evidence: the evidence survived or was lost, and the answer was right or wrong."""

    rows: float
    survived_right: float
    failed_anyway: float
    right_without_it: float
    lost_by_system: float


def split_evidence(values: Mapping[str, float]) -> EvidenceShares | None:
    """Split the summary of a system into the four shares; None if the evidence was not traced."""
    kept = values.get(EVIDENCE_SURVIVAL, math.nan)
    if not math.isfinite(kept):
        return None
    failed, lost = values.get("failed_anyway", 0.0), values.get("lost_by_system", 0.0)
    lucky = values.get("right_without_evidence", 0.0)
    return EvidenceShares(values.get("evidence_rows", math.nan), max(0.0, kept - failed), failed, lucky, lost)


def draw_evidence(result: EvalResult) -> Drawn:
    """Draw, for each system, whether the evidence reached the model and whether the answer was right."""
    found = {name: split_evidence(values) for name, values in result.summary.items()}
    known = {name: shares for name, shares in found.items() if shares is not None}
    if not known:
        return (
            "no row shows both whether the evidence reached the model and whether the answer was right "
            "(this needs a tap or a reader, and data with evidence)"
        )
    labels = label_systems(known, 28)
    controls = set(result.settings.controls)
    worst = max([name for name in known if name not in controls] or known, key=lambda name: known[name].lost_by_system)
    lost = known[worst].lost_by_system
    title = f"{labels[worst]} loses the evidence and the answer in {lost:.0%} of examples"
    states = get_args(State)
    return Chart(
        "evidence",
        "evidence against right and wrong",
        title if lost > 0 else "No system lost an answer by losing its evidence",
        [
            "Share of examples by whether the evidence reached the model, and whether the answer was right.",
            "Orange is the loss caused by the system: the evidence did not reach the model, and the answer was "
            "wrong. Recoverable evidence lost only unneeded words and counts as survived.",
        ],
        Grids([[_make_square(labels[name], shares) for name, shares in known.items()]], 128, 68),
        ["system", "rows", "right", "failed anyway", "right without it", "lost by the system", *states],
        [
            [name, "" if math.isnan(shares.rows) else f"{shares.rows:,.0f}", *map(percent, shares[1:])]
            + [percent(result.summary[name].get(f"evidence_{state}", 0.0)) for state in states]
            for name, shares in known.items()
        ],
    )


def _make_square(name: str, shares: EvidenceShares) -> Grid:
    def make_cell(share: float, words: str, shade: str) -> Cell:
        rows = [] if math.isnan(shares.rows) else [f"{share * shares.rows:,.0f} rows"]
        return Cell(percent(share), shade, f"{name}: {words}, {percent(share)}", [words, *rows])

    right, failed, lucky, lost = shares[1:]
    cells = [
        [make_cell(right, "right", _shade_share(right)), make_cell(failed, "failed anyway", "even")],
        [make_cell(lucky, "right without it", "even"), make_cell(lost, "lost by the system", _shade_difference(-lost))],
    ]
    return Grid(name, f"{name}: evidence against answers", ["right", "wrong"], ["survived", "lost"], cells)
