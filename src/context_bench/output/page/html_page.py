"""The HTML reporter: `--output html`, `--report FILE.html` and `context-bench report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from context_bench.numbers import NUM_EXAMPLES
from context_bench.output.page.row_values import Source, to_source, write_time
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.page.single_page import Run, make_page
from context_bench.results import EvalResult
from context_bench.store import Store

__all__ = ["HtmlReporter", "open_run"]


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
            runs = [open_run(result, self._store, number, open_stores) for number, result in enumerate(results, 1)]
            rows = sum(_count_rows(result) for result in results)
            yield from make_page(runs, rows)


def open_run(result: EvalResult, folder: str | None, number: int, open_stores: ExitStack) -> Run:
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
