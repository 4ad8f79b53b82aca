"""Plots that are grids: scores by depth and length of needles, and evidence against right and wrong."""

from __future__ import annotations

import math
from typing import get_args

from context_bench.numbers import percent, score
from context_bench.output.page.axes import figure, label, svg, table
from context_bench.output.page.elements import Child, Markup, element, join
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.evidence import split_evidence
from context_bench.output.plots.labels import shorten_name
from context_bench.output.plots.needles import DEPTHS, Cell, list_lengths, subtract_baseline
from context_bench.text.evidence_state import State

__all__ = ["plot_evidence", "plot_needles"]

_SIDE, _HIGH, _LEFT, _TOP = 62, 30, 70, 34


def plot_needles(facts: RunFacts) -> Child:
    """Draw a grid for each system, and one for its difference from the baseline."""
    lengths = list_lengths(facts.cells)
    if not lengths:
        return element(
            "p", {"class": "missing"}, "Not measured: no example states its length and the depth of its evidence."
        )
    base = facts.cells.get(facts.baseline or "", {})
    grids: list[Markup] = []
    rows: list[list[Child]] = []
    for name in sorted(facts.result.summary, key=lambda name: name != facts.baseline):
        cells = facts.cells.get(name)
        if not cells:
            continue
        values = {cell: sums[0] / sums[1] for cell, sums in cells.items()}
        pair = [_draw_grid(name, name, lengths, values, cells)]
        if name != facts.baseline and base:
            both = subtract_baseline(cells, base)
            minus = f"minus {facts.baseline}"
            pair.append(_draw_grid(minus, f"{name} {minus}", lengths, both, cells, minus=True))
        alone = " alone" if name == facts.baseline else ""  # a row of its own, so that the pairs beneath line up
        grids.append(element("div", {"class": f"pair{alone}"}, *pair))
        rows += [
            [name, f"{length:,}", DEPTHS[depth], f"{cells[length, depth][1]:.0f}", score(values[length, depth])]
            for length, depth in sorted(values)
            if length in lengths
        ]
    head = ["system", "tokens", "depth", "examples", "score"]
    return figure(
        "score by length and depth",
        element("div", {"class": "grids"}, *grids),
        "Mean score by the length of the context (across, in tokens) and how deep in it the evidence stands (down). "
        "The stronger the colour, the higher; minus the baseline, blue is better and orange is worse.",
        table(head, rows, "Score by length and depth"),
    )


def _draw_grid(
    title: str,
    name: str,
    lengths: list[int],
    values: dict[Cell, float],
    counts: dict[Cell, list[float]],
    *,
    minus: bool = False,
) -> Markup:
    width, height = max(250, _LEFT + len(lengths) * _SIDE + 8), _TOP + len(DEPTHS) * _HIGH + 24
    children: list[Child] = [label(8, 16, shorten_name(title, int(width / 8)), "start", "group")]
    for row, depth in enumerate(DEPTHS):
        children.append(label(_LEFT - 8, _TOP + row * _HIGH + 19, depth, "end", "tick"))
    for column, length in enumerate(lengths):
        x = _LEFT + column * _SIDE
        children.append(label(x + _SIDE / 2, height - 8, f"{length:,}", "middle", "tick"))
        for row, depth in enumerate(DEPTHS):
            tip = f"{name}: {length:,} tokens, depth {depth}"
            examples = counts.get((length, row), [0, 0])[1]
            children.append(_draw_cell(x, row, values.get((length, row)), minus=minus, tip=tip, n=examples))
    return svg(width, height, f"{name}: scores by length and depth", *children)


def _draw_cell(x: float, row: int, value: float | None, *, minus: bool, tip: str, n: float) -> Markup:
    y = _TOP + row * _HIGH
    box = {"x": x + 1, "y": y + 1, "width": _SIDE - 2, "height": _HIGH - 2, "rx": 3}
    if value is None:
        return element("rect", {**box, "class": "q none", "data-tip": f"{tip}: no examples"})
    shown = f"{value:+.2f}" if minus else f"{value:.2f}"
    kind = _name_difference(value) if minus else f"q{min(9, max(0, int(value * 10)))}"
    return element(
        "g",
        {"class": f"q {kind}", "data-tip": f"{tip}: {shown}, {n:.0f} examples"},
        element("rect", box),
        label(x + _SIDE / 2, y + 20, shown, "middle"),
    )


def _name_difference(value: float) -> str:
    step = min(4, math.ceil(abs(value) / 0.25 - 1e-9)) if abs(value) >= 0.005 else 0
    return f"{'up' if value > 0 else 'down'}{step}" if step else "even"


def plot_evidence(facts: RunFacts) -> Child:
    """Draw rows by whether the evidence reached the model, and whether the answer was right."""
    tables = []
    for name, values in facts.result.summary.items():
        shares = split_evidence(values)
        if shares is None:
            continue
        rows = shares.rows
        lines: list[list[Child]] = [
            ["survived", _share(shares.survived_right, rows), _share(shares.failed_anyway, rows, "failed anyway")],
            [
                "lost",
                _share(shares.right_without_it, rows, "right without it"),
                _share(shares.lost_by_system, rows, "lost by the system"),
            ],
        ]
        states = [f"{percent(values.get(f'evidence_{each}', 0.0))} {each}" for each in get_args(State)]
        about = f"{name} ({rows:,.0f} rows: {', '.join(states)})"
        tables.append(table(["evidence", "right", "wrong"], lines, about, "square"))
    if not tables:
        why = (
            "of a memory, the ids that it retrieved are held against those of the evidence; see Memory"
            if facts.is_memory
            else "the examples do not name the passages that an answer needs"
            if facts.has_evidence is False
            else "no row tells both whether the evidence reached the model and whether the answer was right "
            "(a tap or a reader, and data with evidence, are needed)"
        )
        return element("p", {"class": "missing"}, f"Not measured: {why}.")
    return join(
        element("div", {"class": "squares"}, *tables),
        element(
            "p",
            {"class": "about"},
            "“Lost by the system” is the loss to blame on it: what the answer needs did not reach the model, and the "
            "answer was wrong. Recoverable evidence lost only words that a reader does not need: it survived.",
        ),
    )


def _share(value: float, rows: float, name: str = "") -> Markup:
    level = min(9, max(0, int(value * 10)))
    about = f"{value * rows:,.0f}" + (f", {name}" if name else "")
    return element("span", {"class": f"share q q{level}"}, element("b", None, percent(max(0.0, value))), " ", about)
