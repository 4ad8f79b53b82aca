"""The command line: `context-bench [COMMAND] ...`. One file for each command; a run needs no command.

The result goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a gate failed, 2 wrong usage
or input, 3 too many errors or a limit reached, 130 interrupted. Nothing heavy is imported before it is
needed: `--help` costs little more than argparse itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "datasets": "list the datasets",
    "systems": "list the systems that ship with the package",
    "evaluators": "list the evaluators and their scores",
    "metrics": "list the metrics",
    "demo": "compare seven reference systems on generated data, with no key and no network",
}

_MODULES = {
    "datasets": "listings",
    "systems": "listings",
    "evaluators": "listings",
    "metrics": "listings",
    "demo": "demo",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is one sentence, never a traceback."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no UTF-8 must not end a run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return _dispatch(arguments)
    except SystemExit as done:  # argparse has said what there was to say
        return done.code if isinstance(done.code, int) else 2
    except KeyboardInterrupt:
        print("context-bench: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        sys.stderr.close()
        return 0
    except Exception as error:
        from context_bench.errors import ContextBenchError

        if not isinstance(error, ContextBenchError):
            raise
        print(f"context-bench: {error}", file=sys.stderr)
        return 2


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        from importlib import import_module

        command = import_module(f"context_bench.cli.{_MODULES[arguments[0]]}")
        code: int = command.main(arguments)
        return code
    from context_bench.cli import run

    return run.main(arguments)
