"""Plots of a run as files: SVG and PNG, for `--plots DIR` and `context-bench report RUN --plots DIR`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile

from context_bench.errors import MissingExtra, UsageError
from context_bench.output.page.html_page import open_run
from context_bench.output.plots import ResultPlots
from context_bench.output.plots.vega_plot import is_renderer_installed
from context_bench.results import EvalResult

__all__ = ["check_plots", "write_plots"]


def check_plots(folder: str) -> None:
    """Refuse before any work what cannot be written: pictures need an extra and a folder."""
    if not is_renderer_installed():
        raise MissingExtra("--plots", "plots")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".context-bench-"):  # a folder may be there, and closed
            pass
    except OSError as error:
        raise UsageError(f"cannot write to --plots {folder}: {error.strerror or error}") from error


def write_plots(result: EvalResult, folder: str, store: str | None = None) -> list[str]:
    """Write every plot that the run has data for, and return sentences on what was written and what is missing.

    Args:
        result: The run.
        folder: Where the files go; it is made where it is not there.
        store: The folder of the store that the run was recorded in, which has the examples.
    """
    check_plots(folder)
    with ExitStack() as open_stores:
        facts, sources = open_run(result, store, 1, open_stores)
        for source in sources:
            facts.add(source)
    plots, missing = ResultPlots(result, facts.cells, facts.latencies, facts.draw_curves()).draw_all()
    files = [plot.save(Path(folder) / f"{plot.name}{ending}") for plot in plots for ending in (".svg", ".png")]
    told = [f"wrote {', '.join(map(str, files))}"] if files else []
    if missing:
        told.append(f"this run has no data for {' and '.join(', '.join(missing).rsplit(', ', 1))}")
    return told
