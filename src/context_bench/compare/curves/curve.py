"""A curve as data: its points, the area under it, and the setting that saves most without being worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from context_bench.stats import Interval

__all__ = ["Curve", "Point"]


@dataclass(frozen=True)
class Point:
    """One setting of the knob.

    Attributes:
        system: The name of the system with this setting.
        setting: The value of the knob.
        tokens: Tokens that reached the model, for each example on average; NaN where nobody knows.
        saving: The share of the baseline's tokens that is saved on the same examples; NaN where nobody knows.
        quality: The score with its interval.
        difference: The score less the baseline's, with its 95% interval; None for the baseline itself.
    """

    system: str
    setting: str
    tokens: float
    saving: float
    quality: Interval
    difference: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        return {
            "system": self.system,
            "setting": self.setting,
            "tokens": _null(self.tokens),
            "saving": _null(self.saving),
            "quality": self.quality.to_dict(),
            "difference": self.difference and self.difference.to_dict(),
        }


@dataclass(frozen=True)
class Curve:
    """Quality against tokens for one system with a knob.

    Attributes:
        name: The system, without the knob.
        knob: The parameter that was swept.
        metric: `mean_score`, or `macro_score` where there are several datasets.
        meter: Where the tokens are from: `upstream_tokens`, `output_tokens`, or empty where nobody knows.
        points: The settings, the fewest tokens first.
        baseline: What savings and differences are against: a system of the run.
        margin: A difference within it does not matter.
        span: The range of tokens that every curve of the run covers; None if there is none.
        area: The area under the curve over the span divided by its length: the mean quality there.
        area_difference: The area less that of the first curve of the run; None for the first.
        best: The system with the largest saving that is not worse than the baseline by the margin, if there is one.
        note: What has to be known to read it.
    """

    name: str
    knob: str
    metric: str
    meter: str
    points: tuple[Point, ...]
    baseline: str
    margin: float
    span: tuple[float, float] | None = None
    area: Interval | None = None
    area_difference: Interval | None = None
    best: str | None = None
    note: str = ""

    @property
    def tokens_title(self) -> str:
        """The name of its tokens: those that a model got, or those of the context, where none was seen to get it."""
        seen = self.meter != "output_tokens"
        return f"tokens {'that reached the model' if seen else 'of the context that was returned'}, for each example"

    @property
    def best_point(self) -> Point | None:
        """The point of the largest saving that is not worse."""
        return next((point for point in self.points if point.system == self.best), None)

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        return {
            "name": self.name,
            "knob": self.knob,
            "metric": self.metric,
            "meter": self.meter,
            "points": [point.to_dict() for point in self.points],
            "baseline": self.baseline,
            "margin": self.margin,
            "span": None if self.span is None else list(self.span),
            "area": self.area and self.area.to_dict(),
            "area_difference": self.area_difference and self.area_difference.to_dict(),
            "best": self.best,
            "note": self.note,
        }


def _null(value: float) -> float | None:
    return value if math.isfinite(value) else None
