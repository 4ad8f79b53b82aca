"""The HTML reporter (`--output html`, `--report FILE.html`, `context-bench report`), and plots as files (`--plots`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile

from context_bench.errors import MissingExtra, UsageError
from context_bench.numbers import NUM_EXAMPLES
from context_bench.output.page.row_values import Source, to_source, write_time
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.page.single_page import Run, make_page
from context_bench.output.plots import ResultPlots
from context_bench.output.plots.result_plots import is_png_supported
from context_bench.results import EvalResult
from context_bench.store import Store

__all__ = ["HtmlReporter", "check_plots", "write_plots"]


class HtmlReporter:
    """One self-contained page: numbers, plots and all examples.

    Args:
        store: The folder of the store that the run was recorded in, which has the contexts; without it, the page
            shows of each example what its row holds.
    """

    name = "html"

    def __init__(self, store: str | None = None) -> None:
        self._store = store

    def render(self, result: EvalResult) -> str:
        """Render the page."""
        return "".join(self.write_runs([result]))

    def render_parts(self, result: EvalResult) -> Iterator[str]:
        """Render the page piece by piece: the memory that this takes hardly grows with the rows."""
        return self.write_runs([result])

    def write_runs(self, results: Sequence[EvalResult]) -> Iterator[str]:
        """Write several runs as one page, piece by piece; in the list of examples they stand together."""
        with ExitStack() as open_stores:
            runs = [_open_run(result, self._store, number, open_stores) for number, result in enumerate(results, 1)]
            rows = sum(_count_rows(result) for result in results)
            yield from make_page(runs, rows)


def _open_run(result: EvalResult, folder: str | None, number: int, open_stores: ExitStack) -> Run:
    """Open a run for reading: its facts, and its rows with their examples where the store has them.

    Args:
        result: The run.
        folder: The folder of the store that it was recorded in.
        number: Its name, where it has neither an id nor a file.
        open_stores: Closes the store at last.
    """
    run = result.settings.run
    if folder is not None and run is not None and Path(folder).is_dir():
        store = open_stores.enter_context(Store(folder, readonly=True, create=False))
        info = store.run(run)
        return RunFacts(result, info.id, write_time(info)), map(to_source, store.run_records(info))
    name = str(run if run is not None else result.settings.file or number)
    return RunFacts(result, name), (Source(row) for row in result.rows)


def _count_rows(result: EvalResult) -> int:
    counted = sum(int(values.get(NUM_EXAMPLES) or 0) for values in result.summary.values())
    return max(len(result.rows), counted)


def check_plots(folder: str) -> None:
    """Refuse before any work a folder that cannot be written to."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix=".context-bench-"):  # a folder may be there, and closed
            pass
    except OSError as error:
        raise UsageError(f"cannot write to --plots {folder}: {error.strerror or error}") from error


def write_plots(result: EvalResult, folder: str, store: str | None = None) -> list[str]:
    """Write every plot that the run has data for, as SVG and, with the extra `plots`, as PNG.

    Args:
        result: The run.
        folder: Where the files go; it is made where it is not there.
        store: The folder of the store that the run was recorded in, which has the examples.

    Returns:
        Sentences on what was written and what is missing.
    """
    check_plots(folder)
    with ExitStack() as open_stores:
        facts, sources = _open_run(result, store, 1, open_stores)
        for source in sources:
            facts.add(source)
    plots, missing = ResultPlots(result, facts.cells, facts.latencies, facts.draw_curves()).draw_all()
    has_png = is_png_supported()
    endings = (".svg", ".png") if has_png else (".svg",)
    files = [plot.save(Path(folder) / f"{plot.name}{ending}") for plot in plots for ending in endings]
    told = [f"wrote {', '.join(map(str, files))}"] if files else []
    if files and not has_png:
        told.append(str(MissingExtra("PNG", "plots")))
    if missing:
        told.append(f"this run has no data for {' and '.join(', '.join(missing).rsplit(', ', 1))}")
    return told
