"""Plots of a result, declared once as Vega-Lite specs: for notebooks and files, and as data for page and terminal."""

from __future__ import annotations

from context_bench.output.plots.result_plots import KINDS, ResultPlots
from context_bench.output.plots.vega_plot import Plot

__all__ = ["KINDS", "Plot", "ResultPlots"]
