"""Curves: quality against the tokens that reached the model, with one point for each setting of a system's knob."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from context_bench.compare.pairing import Answers, compare_answers, gather_answers
from context_bench.compare.sweeps import Sweep, find_sweeps, name_family
from context_bench.compare.verdicts import are_unlike, choose_baseline
from context_bench.numbers import choose_score_key
from context_bench.registry import registry
from context_bench.stats import (
    Interval,
    ScoreSums,
    Setting,
    area_weights,
    average_means,
    find_common_range,
    find_largest_saving,
)
from context_bench.text import list_names

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow


@dataclass(frozen=True)
class Point:
    system: str  # the name of the system with this setting
    setting: str  # the value of the knob
    tokens: float  # mean tokens that reached the model per example; NaN if unknown
    saving: float  # share of the baseline's tokens saved on the same examples; NaN if unknown
    quality: Interval  # the score with its interval
    difference: Interval | None  # score minus the baseline's, with its 95% interval; None for the baseline

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "setting": self.setting,
            "tokens": self.tokens if math.isfinite(self.tokens) else None,
            "saving": self.saving if math.isfinite(self.saving) else None,
            "quality": self.quality.to_dict(),
            "difference": self.difference and self.difference.to_dict(),
        }


@dataclass(frozen=True)
class Curve:
    """Quality against tokens of one system with a knob, a parameter with several settings."""

    name: str  # the system, without the knob
    knob: str  # the swept parameter
    metric: str  # the key of the score, which depends on whether there are several datasets
    meter: str  # source of the tokens: `upstream_tokens`, `output_tokens`, or "" if unknown
    points: tuple[Point, ...]  # the setting with the fewest tokens first
    baseline: str  # the system that savings and differences refer to
    margin: float  # the largest difference that does not matter
    # the range of tokens that all curves of the run cover, if any
    span: tuple[float, float] | None = None
    area: Interval | None = None  # area under the curve divided by the span: the mean quality there
    area_difference: Interval | None = None  # area minus that of the run's first curve; None for the first
    # area minus that of each other curve of the run, by its name
    area_differences: Mapping[str, Interval] = field(default_factory=dict)
    # the system with the largest saving that is not worse than the baseline (by the margin), if any
    best: str | None = None
    note: str = ""

    @property
    def tokens_title(self) -> str:
        """The axis title: tokens that reached a model, or tokens of returned contexts if no model read them."""
        seen = self.meter != "output_tokens"
        return f"tokens {'that reached the model' if seen else 'of the returned context'}, per example"

    @property
    def best_point(self) -> Point | None:
        return next((point for point in self.points if point.system == self.best), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "points": [point.to_dict() for point in self.points],
            "span": None if self.span is None else list(self.span),
            "area": self.area and self.area.to_dict(),
            "area_difference": self.area_difference and self.area_difference.to_dict(),
            "area_differences": {name: each.to_dict() for name, each in self.area_differences.items()},
        }


Tokens = dict[tuple[str, str | int, int], float]  # by dataset, example and repeat


@dataclass(frozen=True)
class _SweptSystem:
    scores: Answers
    tokens: Tokens

    @property
    def mean_tokens(self) -> float:
        return sum(self.tokens.values()) / len(self.tokens) if self.tokens else math.nan


def choose_own_curve(curves: Sequence[Curve]) -> Curve:
    """Choose the curve of the user's own system, which is not a registered one; the first if none or several are."""
    own = [curve for curve in curves if ("system", name_family(curve.name)) not in registry]
    return own[0] if len(own) == 1 else curves[0]


def compare_curves(curves: Sequence[Curve]) -> str:
    """Compare the user's own curve, else the first, with the others at equal tokens; empty for a single curve.

    A difference is stated only if its interval excludes 0.
    """
    compared = [curve for curve in curves if curve.area_differences]
    if not compared:
        return ""
    own = choose_own_curve(compared)
    told: dict[str, list[str]] = {"above": [], "below": [], "": []}
    for name, each in own.area_differences.items():
        side = "" if not each.known or each.low <= 0 <= each.high else "above" if each.value > 0 else "below"
        low, high = sorted((abs(each.low), abs(each.high))) if side else (each.low, each.high)
        told[side].append(f"{name} by {abs(each.value):.3f} [{low:.3f}, {high:.3f}]" if side else name)
    parts = [f"{side} {list_names(names)}" for side, names in told.items() if side and names]
    parts += [f"not shown to differ from {list_names(told[''])}"] if told[""] else []
    return f"At equal tokens {own.name} is {list_names(parts)}."


def draw_curves(result: EvalResult, baseline: str | None = None, margin: float | None = None) -> list[Curve]:
    """Compute a curve for each system with several settings of a knob; none for a result without rows.

    Savings and differences are relative to the baseline: by default the run's, else `direct`, else `passthrough`, else
    the setting that keeps the most tokens. The margin is by default the run's, else `DEFAULT_MARGIN`.
    """
    if baseline is not None:
        choose_baseline(result.systems, baseline)  # raises if it is unknown
    sweeps = find_sweeps(result.summary)
    if not sweeps or not result.rows:
        return []
    settings = result.settings
    margin = settings.margin if margin is None else margin
    recorded = settings.baseline if settings.baseline in result.summary else None
    chosen = baseline or choose_baseline(result.systems, recorded, settings.controls)
    wanted = {name for sweep in sweeps for name in sweep.settings} | ({chosen} if chosen else set())
    rows: dict[str, list[EvalRow]] = {name: [] for name in wanted}
    for row in result.rows:
        if row.system in wanted:
            rows[row.system].append(row)
    field = settings.score_field
    unneeded = "" if result.comparison is None else result.comparison.context_unneeded
    drawn = []
    for sweep in sweeps:
        meter = _find_meter(each for name in sweep.settings for each in rows[name])
        names = dict.fromkeys((*sweep.settings, *(() if chosen is None else (chosen,))))
        arms = {name: _make_arm(rows[name], field, meter) for name in names}
        # A setting of a knob is the baseline of the others only if the caller or the run chose it.
        held = None if (baseline or recorded) is None and chosen in sweep.settings else chosen
        if held is not None and any(are_unlike(result.config, name, held) for name in sweep.settings):
            held = None  # no score applies to both contexts and answers
        curve = _draw_curve(sweep, arms, held, margin, meter)
        blind = (
            "" if curve.best is None or result.comparison is None else result.comparison.explain_blindness(curve.best)
        )
        if blind:
            curve = replace(curve, best=None, note="; ".join(filter(None, (f"{curve.best} is {blind}", curve.note))))
        if unneeded:
            curve = replace(curve, best=None, note="; ".join(filter(None, (unneeded, curve.note))))
        drawn.append((curve, arms))
    return _add_areas(drawn)


def _find_meter(rows: Iterable[EvalRow]) -> str:
    """Choose the token count: of requests seen upstream, else of returned contexts."""
    meter = ""
    for row in rows:
        if row.upstream_tokens is not None:
            return "upstream_tokens"
        if row.metadata.get("output") == "context":
            meter = "output_tokens"
    return meter


def _make_arm(rows: Sequence[EvalRow], field: str, meter: str) -> _SweptSystem:
    tokens: Tokens = {}
    for row in rows:
        count = row.upstream_tokens if meter == "upstream_tokens" else None
        if meter == "output_tokens" and row.metadata.get("output") == "context":
            count = row.output_tokens
        if count is not None and row.error is None:
            tokens[row.dataset, row.example_id, row.repeat] = count
    return _SweptSystem(gather_answers(rows, field), tokens)


def _draw_curve(
    sweep: Sweep, arms: Mapping[str, _SweptSystem], baseline: str | None, margin: float, meter: str
) -> Curve:
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
            difference = compare_answers(arm.scores, base.scores)
            if saving > 0:
                settings.append(Setting(name, saving, difference))
        quality = estimate_score(arm.scores)
        limits = None if difference is None else difference.interval()
        points.append(Point(name, value, arm.mean_tokens, saving, quality, limits))
    points.sort(key=lambda point: math.inf if math.isnan(point.tokens) else point.tokens)
    best = find_largest_saving(settings, margin)
    datasets = {tag for name in sweep.settings for tag, _ in arms[name].scores}
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


def _explain(meter: str, own: bool, base: _SweptSystem, points: Sequence[Point]) -> str:
    notes = []
    if own:
        notes.append(
            "the baseline is the setting that keeps the most tokens: add one that keeps all (passthrough or naive)"
        )
    if not meter or any(math.isnan(point.tokens) for point in points):
        notes.append("not measured: tokens that reached the model (needs a tap, or a system that returns its context)")
    elif not base.tokens:
        notes.append("savings are not measured: the baseline's tokens were counted in another way")
    return "; ".join(notes)


def _find_saving(tokens: Tokens, base: Tokens) -> float:
    shared = tokens.keys() & base.keys()
    whole = sum(base[key] for key in shared)
    return 1 - sum(tokens[key] for key in shared) / whole if whole else math.nan


def _add_areas(drawn: Sequence[tuple[Curve, Mapping[str, _SweptSystem]]]) -> list[Curve]:
    """Add each curve's area over the range that all cover, and its differences from the other curves'."""
    measured = [curve for curve, _ in drawn if all(math.isfinite(point.tokens) for point in curve.points)]
    meters = {curve.meter for curve in measured}
    span = None
    if measured and len(meters) == 1:
        span = find_common_range([[point.tokens for point in curve.points] for curve in measured])
    if span is None:
        return [curve for curve, _ in drawn]
    areas = {}
    for curve, arms in drawn:
        if curve in measured:
            weights = area_weights([point.tokens for point in curve.points], *span)
            areas[curve.name, curve.knob] = _weigh([arms[point.system] for point in curve.points], weights)
    first = next(iter(areas))
    curves = []
    for curve, _ in drawn:
        own = areas.get((curve.name, curve.knob))
        if own is not None:
            apart = {key: compare_answers(own, each).interval() for key, each in areas.items() if each is not own}
            others = {name: each for (name, _), each in apart.items()}
            area, difference = estimate_score(own), apart.get(first)
            curve = replace(curve, span=span, area=area, area_difference=difference, area_differences=others)
        curves.append(curve)
    return curves


def _weigh(arms: Sequence[_SweptSystem], weights: Sequence[float]) -> Answers:
    """Compute the area of each example from its weighted scores, without examples that lack a setting."""
    used = [(arm.scores, weight) for arm, weight in zip(arms, weights) if weight]
    areas = {}
    for key, answer in used[0][0].items():
        if all(key in scores for scores, _ in used):
            area = sum(weight * (scores[key].value or 0.0) for scores, weight in used)
            areas[key] = replace(answer, value=min(1.0, max(0.0, area)), failed=False)
    return areas


def estimate_score(answers: Answers) -> Interval:
    """Estimate the mean score (for several datasets, the mean of their means), by cluster if examples have one."""
    sums: dict[str, ScoreSums] = {}
    for each in answers.values():
        sums.setdefault(each.dataset, ScoreSums()).add(each.value or 0.0, each.group)
    return average_means([own.estimate() for own in sums.values()])
