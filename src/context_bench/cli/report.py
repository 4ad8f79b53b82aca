"""`context-bench report|plot|view`: recorded runs as one HTML page, drawn in the terminal, or live in a browser."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from getpass import getuser
from pathlib import Path
from urllib.parse import urlsplit

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store, page, port_number
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import open_destination, wants_color
from context_bench.cli.runs import load_run
from context_bench.config import STORE
from context_bench.output.page import HtmlReporter
from context_bench.output.page.html_page import write_plots
from context_bench.results import EvalResult


def main(arguments: Sequence[str]) -> int:
    return {"report": _report, "plot": _plot, "view": _view}[arguments[0]](arguments)


def _report(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench report", description=COMMANDS["report"])
    add = parser.add_argument
    add("run", metavar="RUN", nargs="+", help="a run's id, its beginning, last, or a result that was saved as .json")
    add(
        "--out",
        type=page,
        metavar="FILE",
        help="file of the page (default: report.html, unless --plots is given)",
    )
    add_flags(parser, "plots", "slice", "volume", "wide", "merge_seeds")
    add_store(parser)
    options = parser.parse_args(arguments[1:])
    folder = options.cache_dir or STORE
    with show_warnings():
        names = dict.fromkeys(options.run)
        views = {"slices": options.slice, "volume": options.volume, "merge_seeds": options.merge_seeds}
        results = [load_run(name, folder, **views) for name in names]
        _tell_files_apart(results)
        if options.plots is not None:
            _write_plots(results, options.plots, folder)
        if options.plots is None or options.out is not None:
            with open_destination(options.out or "report.html") as write:
                write(HtmlReporter(folder, wide=options.wide).write_runs(results))
    return 0


def _tell_files_apart(results: Sequence[EvalResult]) -> None:
    """Number results of files with equal names, as links to examples use the name."""
    names = [result.settings.file for result in results]
    for number, (name, result) in enumerate(zip(names, results), 1):
        if name is not None and names.count(name) > 1:
            result.config["file"] = f"{name} ({number})"


def _write_plots(results: Sequence[EvalResult], folder: str, store: str) -> None:
    """Write the plots of each run; several runs get separate folders."""
    for number, result in enumerate(results, 1):
        own = Path(folder) / str(result.settings.run or number) if len(results) > 1 else Path(folder)
        for sentence in write_plots(result, str(own), store):
            say(sentence)


_KINDS = ("pareto", "curve")


def _plot(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench plot", description=COMMANDS["plot"])
    add = parser.add_argument
    add(
        "run",
        metavar="RUN",
        nargs="?",
        default="last",
        help="a run's id, its beginning, last (the default), or a result that was saved as .json",
    )
    add(
        "--kind",
        choices=_KINDS,
        help="quality against cost, or against tokens for each setting of a sweep (default: depends on the run)",
    )
    add_store(parser)
    options = parser.parse_args(arguments[1:])
    with show_warnings():
        result = load_run(options.run, options.cache_dir or STORE, rows=True, merge_seeds=True)
        kinds = [options.kind] if options.kind else ["pareto", *(["curve"] if result.curves() else [])]
        width = shutil.get_terminal_size().columns
        plots = [getattr(result.plot, kind)() for kind in kinds]
        sys.stdout.write("\n".join(plot.to_text(width, color=wants_color()) for plot in plots))
    return 0


def _view(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench view", description=COMMANDS["view"])
    add = parser.add_argument
    add_store(parser, "--cache-dir --store")
    add("--port", metavar="P", type=port_number, default=0, help="port on 127.0.0.1 (default: a free one)")
    add("--no-open", action="store_true", help="do not open a browser")
    options = parser.parse_args(arguments[1:])
    store = options.cache_dir or STORE

    from context_bench.output.viewer import ViewServer

    with show_warnings(), ViewServer(store, options.port) as server:
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        with contextlib.suppress(OSError, AttributeError):  # not available on Windows
            os.nice(10)  # give runs on this machine priority
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        say(f"anyone with the address above can see the store in {store}; Ctrl-C stops the viewer")
        if os.environ.get("SSH_CONNECTION"):
            host, port = os.environ["SSH_CONNECTION"].split()[2], urlsplit(server.url).port
            tunnel = f"ssh -N -L {port}:127.0.0.1:{port} {getuser()}@{host}"
            say("on your own machine, this command opens a tunnel to the address:")
            print(f"  {tunnel}", file=sys.stderr, flush=True)  # a separate line, for copying
        if not options.no_open:
            _open_browser(server.url)
        while not stopped.wait(1.0):  # on Windows a signal is handled only between waits
            pass
    return 0


def _open_browser(url: str) -> None:
    """Open a browser, if there is a screen: a text browser would take over the terminal."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    import tempfile
    import webbrowser
    from html import escape

    # The token must not be in the browser's command line, which every user of the machine can read.
    with tempfile.NamedTemporaryFile("w", prefix="context-bench-", suffix=".html", delete=False) as file:
        file.write(f'<meta http-equiv="refresh" content="0; url={escape(url, quote=True)}">')
    atexit.register(Path(file.name).unlink, missing_ok=True)
    webbrowser.open(Path(file.name).as_uri())
