"""From rows to curves: the points of each sweep, their differences from the baseline, and the areas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from context_bench.compare.comparison import are_unlike, choose_baseline
from context_bench.compare.curves.curve import Curve, Point
from context_bench.compare.curves.knobs import Sweep, find_sweeps
from context_bench.compare.curves.scored import Scores, compare_scores, estimate_score, read_scores
from context_bench.numbers import choose_score_key
from context_bench.stats import (
    Setting,
    area_weights,
    find_common_range,
    find_largest_saving,
)

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

__all__ = ["draw_curves"]

Tokens = dict[tuple[str, str | int, int], float]
"""By dataset, example and repeat."""


@dataclass(frozen=True)
class _Arm:
    """One system: its scores and its tokens, by example."""

    scores: Scores
    tokens: Tokens

    @property
    def mean_tokens(self) -> float:
        return sum(self.tokens.values()) / len(self.tokens) if self.tokens else math.nan


def draw_curves(result: EvalResult, baseline: str | None = None, margin: float | None = None) -> list[Curve]:
    """Draw a curve for each system of a result that was run with several settings of a knob.

    Args:
        result: With its rows; a result without rows has no curves.
        baseline: The system that savings and differences are against; by default the one of the run, else `direct`,
            else `passthrough`, else the setting that keeps the most tokens.
        margin: A difference within it does not matter; by default the run's, else 0.02.
    """
    if baseline is not None:
        choose_baseline(result.systems, baseline)  # refuses one that is not there
    sweeps = find_sweeps(result.summary)
    if not sweeps or not result.rows:
        return []
    if margin is None:
        margin = result.settings.margin
    chosen = baseline or _find_baseline(result)
    wanted = {name for sweep in sweeps for name in sweep.settings} | ({chosen} if chosen else set())
    rows: dict[str, list[EvalRow]] = {name: [] for name in wanted}
    for row in result.rows:
        if row.system in wanted:
            rows[row.system].append(row)
    field = result.settings.score_field
    unneeded = "" if result.comparison is None else result.comparison.context_unneeded
    drawn = []
    for sweep in sweeps:
        meter = _find_meter(each for name in sweep.settings for each in rows[name])
        arms = {name: _make_arm(rows[name], field, meter) for name in (*sweep.settings, *_only(chosen))}
        # One setting of a knob is a baseline for the others only if somebody asked for it.
        held = None if baseline is None and chosen in sweep.settings else chosen
        if held is not None and any(are_unlike(result.config, name, held) for name in sweep.settings):
            held = None  # a context and an answer have no score in common
        curve = _draw_curve(sweep, arms, held, margin, meter)
        if unneeded:
            curve = replace(curve, best=None, note="; ".join(filter(None, (unneeded, curve.note))))
        drawn.append((curve, arms))
    return _add_areas(drawn)


def _only(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _find_baseline(result: EvalResult) -> str | None:
    wanted = result.settings.baseline
    controls = result.settings.controls
    return choose_baseline(result.systems, wanted if wanted in result.summary else None, controls)


def _find_meter(rows: Iterable[EvalRow]) -> str:
    """Find what tells how many tokens reached the model: what was seen of it, else the context that was returned."""
    meter = ""
    for row in rows:
        if row.upstream_tokens is not None:
            return "upstream_tokens"
        if row.metadata.get("output") == "context":
            meter = "output_tokens"
    return meter


def _make_arm(rows: Sequence[EvalRow], field: str, meter: str) -> _Arm:
    tokens: Tokens = {}
    for row in rows:
        count = _read_tokens(row, meter)
        if count is not None and row.error is None:
            tokens[row.dataset, row.example_id, row.repeat] = count
    return _Arm(read_scores(rows, field), tokens)


def _read_tokens(row: EvalRow, meter: str) -> int | None:
    if meter == "output_tokens":
        return row.output_tokens if row.metadata.get("output") == "context" else None
    return row.upstream_tokens if meter else None


def _draw_curve(sweep: Sweep, arms: Mapping[str, _Arm], baseline: str | None, margin: float, meter: str) -> Curve:
    own = baseline is None
    if baseline is None:
        baseline = max(
            sweep.settings, key=lambda name: (not math.isnan(arms[name].mean_tokens), arms[name].mean_tokens)
        )
    base = arms[baseline]
    points, settings = [], []
    for name, value in sweep.settings.items():
        arm = arms[name]
        saving = _find_saving(arm.tokens, base.tokens)
        difference = None
        if name != baseline:
            difference = compare_scores(arm.scores, base.scores)
            if saving > 0:
                settings.append(Setting(name, saving, difference))
        quality = estimate_score(arm.scores)
        limits = None if difference is None else difference.interval()
        points.append(Point(name, value, arm.mean_tokens, saving, quality, limits))
    points.sort(key=lambda point: math.inf if math.isnan(point.tokens) else point.tokens)
    best = find_largest_saving(settings, margin)
    datasets = {tag for name in sweep.settings for tag in arms[name].scores}
    return Curve(
        name=sweep.name,
        knob=sweep.knob,
        metric=choose_score_key(len(datasets)),
        meter=meter,
        points=tuple(points),
        baseline=baseline,
        margin=margin,
        best=best.name if best else None,
        note=_explain(meter, own, base, points),
    )


def _explain(meter: str, own: bool, base: _Arm, points: Sequence[Point]) -> str:
    notes = []
    if own:
        notes.append(
            "the baseline is the setting that keeps the most tokens: add a system that keeps all (passthrough; naive)"
        )
    if not meter or any(math.isnan(point.tokens) for point in points):
        notes.append(
            "not measured: tokens that reached the model (a tap, or a system that returns its context, has them)"
        )
    elif not base.tokens:
        notes.append("savings are not measured: the baseline's tokens are not known by the same count")
    return "; ".join(notes)


def _find_saving(tokens: Tokens, base: Tokens) -> float:
    """Find the share of the baseline's tokens that is saved, over the examples that both have."""
    shared = tokens.keys() & base.keys()
    whole = sum(base[key] for key in shared)
    return 1 - sum(tokens[key] for key in shared) / whole if whole else math.nan


def _add_areas(drawn: Sequence[tuple[Curve, Mapping[str, _Arm]]]) -> list[Curve]:
    """Add the area of each curve over the range that all of them cover, and its difference from the first."""
    measured = [curve for curve, _ in drawn if all(math.isfinite(point.tokens) for point in curve.points)]
    meters = {curve.meter for curve in measured}
    span = None
    if measured and len(meters) == 1:
        span = find_common_range([[point.tokens for point in curve.points] for curve in measured])
    if span is None:
        return [curve for curve, _ in drawn]
    curves: list[Curve] = []
    first: Scores | None = None
    for curve, arms in drawn:
        if curve not in measured:
            curves.append(curve)
            continue
        weights = area_weights([point.tokens for point in curve.points], *span)
        areas = _weigh([arms[point.system] for point in curve.points], weights)
        difference = None
        if first is not None:
            difference = compare_scores(areas, first).interval()
        first = areas if first is None else first
        curves.append(replace(curve, span=span, area=estimate_score(areas), area_difference=difference))
    return curves


def _weigh(arms: Sequence[_Arm], weights: Sequence[float]) -> Scores:
    """Give each example's own area, its scores weighted; examples that lack a setting are left out."""
    used = [(arm.scores, weight) for arm, weight in zip(arms, weights) if weight]
    areas: Scores = {}
    for tag, own in used[0][0].items():
        columns = [(scores.get(tag, {}), weight) for scores, weight in used]
        found = areas[tag] = {}
        for key, (_, group) in own.items():
            if all(key in column for column, _ in columns):
                area = sum(weight * column[key][0] for column, weight in columns)
                found[key] = (min(1.0, max(0.0, area)), group)
    return {tag: found for tag, found in areas.items() if found}
