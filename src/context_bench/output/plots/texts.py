"""Texts of a plot that were placed in pixels: as layers of a spec, with a light edge that keeps them off lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_bench.output.plots.labels import Place

__all__ = ["draw_texts"]


def draw_texts(texts: Sequence[str], places: Sequence[Place], colours: Sequence[str]) -> list[dict[str, Any]]:
    """Write each text at its place, in its colour."""
    layers: list[dict[str, Any]] = []
    for align in dict.fromkeys(place.align for place in places):
        values = [
            {"x": round(place.x, 1), "y": round(place.y, 1), "label": text, "colour": colour}
            for text, place, colour in zip(texts, places, colours)
            if place.align == align
        ]
        mark = {"type": "text", "align": align, "baseline": "middle"}
        encoding = {
            "x": {"field": "x", "type": "quantitative", "scale": None},
            "y": {"field": "y", "type": "quantitative", "scale": None},
            "text": {"field": "label"},
        }
        colour = {"color": {"field": "colour", "type": "nominal", "scale": None, "legend": None}}
        edge = {"stroke": "white", "strokeWidth": 3, "strokeJoin": "round", "aria": False}
        data = {"values": values}
        layers.append({"data": data, "mark": {**mark, **edge}, "encoding": encoding})
        layers.append({"data": data, "mark": mark, "encoding": {**encoding, **colour}})
    return layers
