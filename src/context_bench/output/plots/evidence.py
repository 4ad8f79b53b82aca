"""Evidence against right and wrong: the four shares as data, and the plot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from context_bench.errors import UsageError
from context_bench.numbers import EVIDENCE_SURVIVAL
from context_bench.output.plots.labels import label_systems
from context_bench.output.plots.scales import BLUE, GREY, ORANGE
from context_bench.output.plots.vega_plot import Plot

if TYPE_CHECKING:
    from context_bench.results import EvalResult

__all__ = ["EvidenceShares", "draw_evidence", "split_evidence"]

_SIDE = 104


class EvidenceShares(NamedTuple):
    """Shares of the rows whose evidence is known: it survived or was lost, and the answer was right or wrong."""

    rows: float
    survived_right: float
    failed_anyway: float
    right_without_it: float
    lost_by_system: float


def split_evidence(values: Mapping[str, float]) -> EvidenceShares | None:
    """Split the summary of a system into the four shares; None where evidence was not followed."""
    kept = values.get(EVIDENCE_SURVIVAL, math.nan)
    if not math.isfinite(kept):
        return None
    failed, lost = values.get("failed_anyway", 0.0), values.get("lost_by_system", 0.0)
    lucky = values.get("right_without_evidence", 0.0)
    return EvidenceShares(values.get("evidence_rows", math.nan), max(0.0, kept - failed), failed, lucky, lost)


def draw_evidence(result: EvalResult) -> Plot:
    """Draw whether the evidence reached the model against whether the answer was right, for each system.

    Raises:
        UsageError: No row tells both.
    """
    found = {name: split_evidence(values) for name, values in result.summary.items()}
    known = {name: shares for name, shares in found.items() if shares is not None}
    if not known:
        raise UsageError(
            "there is no plot of evidence of this run: no row tells both whether the evidence reached the model and "
            "whether the answer was right (a tap or a reader, and data with evidence, are needed)"
        )
    labels = label_systems(known, 26)
    controls = set(result.settings.controls)
    worst = max([name for name in known if name not in controls] or known, key=lambda name: known[name].lost_by_system)
    share = known[worst].lost_by_system
    title = f"{labels[worst]} loses the evidence and the answer in {share:.0%} of examples"
    if share <= 0:
        title = "No system lost an answer by losing its evidence"
    spec = {
        "title": {
            "text": title,
            "subtitle": [
                "Share of examples by whether the evidence reached the model, and whether the answer was right.",
                "Orange is the loss to blame on the system: the evidence did not arrive, and the answer was wrong.",
            ],
        },
        "concat": [_draw_square(labels[name], shares) for name, shares in known.items()],
        "columns": 3,
        "spacing": {"row": 18, "column": 26},
    }
    return Plot("evidence", spec)


_CELLS = (
    ("survived", "right", "survived_right", "right", BLUE),
    ("survived", "wrong", "failed_anyway", "failed anyway", GREY),
    ("lost", "right", "right_without_it", "right without it", GREY),
    ("lost", "wrong", "lost_by_system", "lost by the system", ORANGE),
)


def _draw_square(name: str, shares: EvidenceShares) -> dict[str, Any]:
    values = []
    for evidence, answer, field, words, colour in _CELLS:
        share = float(getattr(shares, field))
        rows = "" if math.isnan(shares.rows) else f"{share * shares.rows:,.0f} rows"
        values.append(
            {"evidence": evidence, "answer": answer, "share": share, "rows": rows, "words": words, "colour": colour}
            | {"strength": 0.08 + 0.92 * share}
        )
    across: dict[str, Any] = {"field": "answer", "type": "nominal", "sort": ["right", "wrong"], "title": "answer"}
    across["axis"] = {"labelAngle": 0, "domain": False, "ticks": False, "orient": "bottom"}
    down: dict[str, Any] = {"field": "evidence", "type": "nominal", "sort": ["survived", "lost"], "title": "evidence"}
    down["axis"] = {"domain": False, "ticks": False}
    dark = {"condition": {"test": "datum.share > 0.5", "value": "white"}, "value": "#222222"}
    tips = [{"field": "words", "title": "is"}, {"field": "share", "type": "quantitative", "format": ".1%"}]
    texts = [
        {
            "mark": {"type": "text", "dy": shift, "fontSize": size, "fontWeight": weight},
            "encoding": {"text": text, "color": dark},
        }
        for shift, size, weight, text in (
            (-14, 17, "bold", {"field": "share", "type": "quantitative", "format": ".1%"}),
            (4, 10.5, "normal", {"field": "words"}),
            (18, 10.5, "normal", {"field": "rows"}),
        )
    ]
    return {
        "title": {"text": name, "fontSize": 12, "anchor": "start", "offset": 6},
        "width": {"step": _SIDE},
        "height": {"step": _SIDE * 0.66},
        "data": {"values": values},
        "encoding": {"x": across, "y": down},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "white", "strokeWidth": 3},
                "encoding": {
                    "color": {"field": "colour", "type": "nominal", "scale": None, "legend": None},
                    "opacity": {"field": "strength", "type": "quantitative", "scale": None, "legend": None},
                    "tooltip": tips,
                },
            },
            *texts,
        ],
    }
