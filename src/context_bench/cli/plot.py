"""`context-bench plot [RUN] [--kind pareto|curve]`: a recorded run drawn in the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import STORE, add_store
from context_bench.cli.messages import show_warnings
from context_bench.cli.output import wants_color
from context_bench.cli.parser import Parser
from context_bench.cli.report import load_run

__all__ = ["main"]

_KINDS = ("pareto", "curve")


def main(arguments: Sequence[str]) -> int:
    """Draw the plots."""
    parser = Parser(prog="context-bench plot", description=COMMANDS["plot"])
    add = parser.add_argument
    add(
        "run",
        metavar="RUN",
        nargs="?",
        default="last",
        help="an id, the start of one, last (the default), or a result that was saved as .json",
    )
    add(
        "--kind",
        choices=_KINDS,
        help="quality against cost, or against tokens for each setting of a sweep (default: what the run has)",
    )
    add_store(parser, reuse=False)
    options = parser.parse_args(arguments[1:])
    with show_warnings():
        result = load_run(options.run, options.cache_dir or STORE, rows=True)
        kinds = [options.kind] if options.kind else ["pareto", *(["curve"] if result.curves() else [])]
        width = shutil.get_terminal_size().columns
        plots = [getattr(result.plot, kind)() for kind in kinds]
        sys.stdout.write("\n".join(plot.to_text(width, color=wants_color()) for plot in plots))
    return 0
