"""Plots of a result: one chart model, drawn as SVG for page, files and notebooks, and in the terminal."""

from __future__ import annotations

from context_bench.output.plots.result_plots import KINDS, Plot, ResultPlots

__all__ = ["KINDS", "Plot", "ResultPlots"]
