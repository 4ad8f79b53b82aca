"""`context-bench view`: the store in a browser, while runs are under way too, until Ctrl-C."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flag_types import port_number
from context_bench.cli.flags import STORE
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.parser import Parser

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    parser = Parser(prog="context-bench view", description=COMMANDS["view"])
    add = parser.add_argument
    add("--store", "--cache-dir", metavar="DIR", default=STORE, help="folder of the store (default: %(default)s)")
    add("--port", metavar="P", type=port_number, default=0, help="port on 127.0.0.1 (default: a free one)")
    add("--no-open", action="store_true", help="do not open a browser")
    options = parser.parse_args(arguments[1:])

    from context_bench.output.viewer import ViewServer

    with show_warnings(), ViewServer(options.store, options.port) as server:
        stopped = _watch_signals()
        with contextlib.suppress(OSError, AttributeError):  # Windows has no such thing
            os.nice(10)  # a run on the same machine comes first
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        say(f"shows the store in {options.store} at the address above, to whoever has it; Ctrl-C ends it")
        if not options.no_open:
            _open_browser(server.url)
        while not stopped.wait(1.0):  # on Windows a signal is heard of only when something else happens
            pass
    return 0


def _watch_signals() -> threading.Event:
    """Return an event that SIGINT (Ctrl-C) and SIGTERM set."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    return stopped


def _open_browser(url: str) -> None:
    """Open a browser, where there is a screen: one in the terminal would take it over."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    import tempfile
    import webbrowser
    from html import escape

    # The token in the address must not be in the command line of the browser, which every user of the machine can read.
    with tempfile.NamedTemporaryFile("w", prefix="context-bench-", suffix=".html", delete=False) as page:
        page.write(f'<meta http-equiv="refresh" content="0; url={escape(url, quote=True)}">')
    atexit.register(Path(page.name).unlink, missing_ok=True)
    webbrowser.open(Path(page.name).as_uri())
