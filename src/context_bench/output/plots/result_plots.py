"""The plots of a result: `result.plot.pareto()` and the others, as files, in notebooks and in a terminal."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.errors import MissingExtra, UsageError, printable
from context_bench.output.plots.by_system import draw_datasets, draw_times, gather_latencies
from context_bench.output.plots.chart import Chart, Drawn
from context_bench.output.plots.curve import draw_curve
from context_bench.output.plots.grids import Cells, NeedleGrid, draw_evidence, draw_heatmap
from context_bench.output.plots.pareto import draw_pareto
from context_bench.output.plots.svg import draw_file
from context_bench.output.plots.terminal import draw_text

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve
    from context_bench.results import EvalResult

KINDS = ("pareto", "curve", "heatmap", "datasets", "latency", "evidence")
_SCALE = 2.0  # PNG pixels per plot pixel: sharp in a paper and on a dense screen


class Plot:
    """One picture of a result."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart  # the chart as data

    @property
    def name(self) -> str:
        """The name in file names, such as `pareto`."""
        return self.chart.name

    @property
    def title(self) -> str:
        """The sentence above the picture."""
        return self.chart.title

    def __repr__(self) -> str:
        return f"Plot({self.name}: {self.title})"

    def to_svg(self) -> str:
        """Draw the plot as SVG."""
        return draw_file(self.chart)

    def to_png(self, scale: float = _SCALE) -> bytes:
        """Draw the plot as PNG, with `scale` pixels per plot pixel (needs extra `plots`)."""
        check_png()
        return _render(self.to_svg(), zoom=scale)

    def to_text(self, width: int, *, color: bool = False) -> str:
        """Draw the plot for a terminal with this many columns."""
        return draw_text(self.chart, width, color=color)

    def save(self, path: str | Path) -> Path:
        """Write the plot to a file, as .svg or .png by the file's ending."""
        path = Path(path)
        ending = path.suffix.lower()
        if ending not in (".svg", ".png"):
            raise UsageError(f"a plot must be saved as .svg or .png (got {path.name!r})")
        data = self.to_png() if ending == ".png" else self.to_svg().encode()
        try:
            path.write_bytes(data)
        except OSError as error:
            raise UsageError(f"cannot write the plot to {path}: {error.strerror or error}") from error
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:  # noqa: ARG002
        """Return the notebook display."""
        return {"image/svg+xml": self.to_svg(), "text/plain": repr(self)}


def check_png() -> None:
    """Refuse PNG files if they cannot be made: the extra is missing, or the system has no font.

    Raises:
        MissingExtra: The extra `plots` is not installed.
        UsageError: A rendered text is blank, so no font was found.
    """
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
    text = '<text x="2" y="15" font-family="sans-serif">x</text>'
    if _render(picture.format(text)) == _render(picture.format("")):
        raise UsageError(
            "a plot as PNG needs a font, and this system has none: install one, such as DejaVu, or use SVG"
        )


def _render(svg: str, **options: Any) -> bytes:
    try:
        import resvg_py
    except ImportError as error:
        raise MissingExtra("a plot as PNG", "plots") from error
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, **options))


class ResultPlots:
    """Plots of one result, drawn on demand; a `UsageError` names the missing data.

    Args:
        result: The run.
        cells: Needles by depth and length, if they were gathered with their examples.
        latencies: Seconds by system, if the result keeps no rows.
        curves: The curves of its sweeps, if the result keeps no rows.
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
        return _check("Pareto plot", draw_pareto(self._result))

    def curve(self) -> Plot:
        """Draw quality against tokens for each sweep."""
        curves = self._result.curves() if self._curves is None else self._curves
        return _check("curve", draw_curve(self._result, curves))

    def heatmap(self) -> Plot:
        """Draw scores by depth and length of needles, and their difference from the baseline."""
        cells = NeedleGrid.of(self._result).cells if self._cells is None else self._cells
        return _check("heatmap", draw_heatmap(self._result, cells))

    def datasets(self) -> Plot:
        """Draw quality by dataset."""
        return _check("plot by dataset", draw_datasets(self._result))

    def latency(self) -> Plot:
        """Draw the distribution of latencies."""
        times = gather_latencies(self._result.rows) if self._latencies is None else self._latencies
        return _check("plot of latencies", draw_times(self._result, times, "latency"))

    def evidence(self) -> Plot:
        """Draw whether the evidence reached the model and whether the answer was right."""
        return _check("plot of evidence", draw_evidence(self._result))

    def draw_all(self) -> tuple[list[Plot], dict[str, str]]:
        """Draw every plot that the run has data for; give the reason for each missing one."""
        plots, missing = [], {}
        for kind in KINDS:
            try:
                plots.append(getattr(self, kind)())
            except UsageError as error:
                missing[kind] = str(error)
        return plots, missing


def _check(what: str, drawn: Drawn) -> Plot:
    if isinstance(drawn, str):
        raise UsageError(f"there is no {what} of this run: {drawn}")
    return Plot(drawn)


_CELL = "padding: 2px 10px; text-align: {}; white-space: nowrap"


def render_notebook(result: EvalResult, lines: Sequence[Sequence[str]]) -> str:
    """Make HTML of a table (titles first) and the Pareto plot, with all data escaped.

    The picture is an `<img>` with embedded data: it cannot run scripts or load anything.
    """
    head, *body = [_write_line(line, "th" if number == 0 else "td") for number, line in enumerate(lines)]
    table = f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
    chart = draw_pareto(result)
    if isinstance(chart, str):
        return f"{table}<p>There is no Pareto plot of this run: {escape(chart)}.</p>"
    picture = base64.b64encode(draw_file(chart).encode()).decode("ascii")
    return f'{table}<img alt="{escape(printable(chart.title))}" src="data:image/svg+xml;base64,{picture}">'


def _write_line(cells: Sequence[str], tag: str) -> str:
    styles = [_CELL.format("right" if place else "left") for place in range(len(cells))]
    written = (f'<{tag} style="{style}">{escape(printable(text))}</{tag}>' for text, style in zip(cells, styles))
    return f"<tr>{''.join(written)}</tr>"
