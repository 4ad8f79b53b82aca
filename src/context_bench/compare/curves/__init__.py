"""Curves: a system with a knob, its quality against the tokens that reached the model, one point for each setting."""

from __future__ import annotations

from context_bench.compare.curves.curve import Curve, Point
from context_bench.compare.curves.from_rows import draw_curves
from context_bench.compare.curves.knobs import Sweep, find_sweeps

__all__ = ["Curve", "Point", "Sweep", "draw_curves", "find_sweeps"]
