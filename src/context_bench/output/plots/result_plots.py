"""The plots of a result: `result.plot.pareto()` and the others, and all that a run has data for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from context_bench.errors import UsageError
from context_bench.output.plots.by_dataset import draw_datasets
from context_bench.output.plots.evidence import draw_evidence
from context_bench.output.plots.needles import Cells, draw_heatmap
from context_bench.output.plots.pareto import draw_pareto
from context_bench.output.plots.rate_distortion import draw_curve
from context_bench.output.plots.times import draw_latency, gather_latencies
from context_bench.output.plots.vega_plot import Plot

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve
    from context_bench.results import EvalResult

__all__ = ["KINDS", "ResultPlots"]

KINDS = ("pareto", "curve", "heatmap", "datasets", "latency", "evidence")


class ResultPlots:
    """Plots of one result. Each is drawn when asked for; a `UsageError` says what the run lacks for it.

    Args:
        result: The run.
        cells: Needles by depth and length, where they were gathered with the examples at hand.
        latencies: Seconds by system, where the result keeps no rows.
        curves: Those of its sweeps, where the result keeps no rows.
    """

    def __init__(
        self,
        result: EvalResult,
        cells: Cells | None = None,
        latencies: Mapping[str, Sequence[float]] | None = None,
        curves: Sequence[Curve] | None = None,
    ) -> None:
        self._result, self._cells, self._latencies, self._curves = result, cells, latencies, curves

    def pareto(self) -> Plot:
        """Draw quality against tokens or dollars, with the Pareto front."""
        return draw_pareto(self._result)

    def curve(self) -> Plot:
        """Draw quality against tokens for each sweep."""
        return draw_curve(self._result, self._curves)

    def heatmap(self) -> Plot:
        """Draw scores by depth and length of needles, and their difference from the baseline."""
        return draw_heatmap(self._result, self._cells)

    def datasets(self) -> Plot:
        """Draw quality by dataset."""
        return draw_datasets(self._result)

    def latency(self) -> Plot:
        """Draw how latencies are spread."""
        times = gather_latencies(self._result.rows) if self._latencies is None else self._latencies
        return draw_latency(self._result.systems, times)

    def evidence(self) -> Plot:
        """Draw whether evidence reached the model against whether the answer was right."""
        return draw_evidence(self._result)

    def draw_all(self) -> tuple[list[Plot], dict[str, str]]:
        """Draw every plot that the run has data for; of the others, say what is missing."""
        plots, missing = [], {}
        for kind in KINDS:
            try:
                plots.append(getattr(self, kind)())
            except UsageError as error:
                missing[kind] = str(error)
        return plots, missing
