"""`context-bench report RUN [RUN...] --out FILE`: recorded runs as one HTML page that opens offline, or as plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flag_types import page
from context_bench.cli.flags import STORE, add_plots, add_store
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import open_destination
from context_bench.cli.parser import Parser
from context_bench.cli.runs import load_result
from context_bench.errors import UsageError
from context_bench.output.page import HtmlReporter
from context_bench.output.page.html_page import write_plots
from context_bench.results import EvalResult
from context_bench.store import Store

__all__ = ["load_run", "main"]


def main(arguments: Sequence[str]) -> int:
    """Write the page."""
    parser = Parser(prog="context-bench report", description=COMMANDS["report"])
    add = parser.add_argument
    add("run", metavar="RUN", nargs="+", help="an id, the start of one, last, or a result that was saved as .json")
    add("--out", type=page, metavar="FILE", help="where the page goes (default: report.html, unless --plots is given)")
    add_plots(parser)
    add_store(parser, reuse=False)
    options = parser.parse_args(arguments[1:])
    folder = options.cache_dir or STORE
    with show_warnings():
        results = [load_run(name, folder) for name in dict.fromkeys(options.run)]
        _tell_files_apart(results)
        if options.plots is not None:
            _write_plots(results, options.plots, folder)
        if options.plots is None or options.out is not None:
            with open_destination(options.out or "report.html") as write:
                write(HtmlReporter(folder).write_runs(results))
    return 0


def _tell_files_apart(results: Sequence[EvalResult]) -> None:
    """Number results of files that have the same name: links to examples go by it."""
    names = [result.settings.file for result in results]
    for number, (name, result) in enumerate(zip(names, results), 1):
        if name is not None and names.count(name) > 1:
            result.config["file"] = f"{name} ({number})"


def _write_plots(results: Sequence[EvalResult], folder: str, store: str) -> None:
    """Write the plots of each run; those of several go to folders of their own."""
    for number, result in enumerate(results, 1):
        own = Path(folder) / str(result.settings.run or number) if len(results) > 1 else Path(folder)
        for sentence in write_plots(result, str(own), store):
            say(sentence)


def load_run(name: str, folder: str, *, rows: bool = False) -> EvalResult:
    """Load a run from the store, or from a file; without `rows`, those of the store stay there."""
    if name.endswith(".json"):
        try:
            result = EvalResult.from_json(Path(name).read_bytes())
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror or error}") from error
        result.config.pop("run", None)  # the store of this folder may be another one
        result.config["file"] = Path(name).name
        return result
    with Store(folder, readonly=True, create=False) as store:
        info = store.run(name)
        result = load_result(store, info, rows=rows)
        result.config["run"] = info.id
        return result
