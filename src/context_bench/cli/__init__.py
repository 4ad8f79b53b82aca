"""The command line: `context-bench [COMMAND] ...`. One file for each command; a run needs no command.

The result goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a gate failed, 2 wrong usage
or input, 3 too many errors or a limit reached, 130 interrupted. Nothing heavy is imported before it is
needed: `--help` costs little more than argparse itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["COMMANDS", "find_module", "main"]

COMMANDS = {
    "run": "run the benchmark that a TOML file describes",
    "report": "write recorded runs as one page that opens offline",
    "runs": "list, show, export or remove recorded runs",
    "diff": "show what a system did to the context of one example",
    "score": "score a recorded run again, without asking any system",
    "judge-check": "measure how often a judge accepts wrong or rejects right answers",
    "tap": "record what really reaches the model behind a proxy",
    "conformance": "check that a proxy keeps the protocol intact",
    "local": "serve a small model on this machine, with no key",
    "datasets": "list the datasets; show, fetch or import one",
    "systems": "list the systems that ship with the package",
    "evaluators": "list the evaluators and their scores",
    "metrics": "list the metrics",
    "prices": "list what tokens cost, by model: what a run is priced by",
    "reporters": "list the forms that --output can give a result",
    "demo": "compare seven reference systems, with no key and no network",
    "completion": "print a script that completes commands in bash, zsh or fish",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake is one sentence, never a traceback."""
    if argv is None and os.getpid() == 1:
        from context_bench.cli.init_process import stand_in_as_init

        stand_in_as_init()
    code = _run(list(sys.argv[1:] if argv is None else argv))
    if argv is None and "datasets" in sys.modules:
        # Its threads may still read a stream ahead, and would abort the interpreter on its way out.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: list[str]) -> int:
    from context_bench.cli.standard_streams import keep_streams_usable

    keep_streams_usable()
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no UTF-8 must not end a run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return _dispatch_and_flush(arguments)
    except KeyboardInterrupt as stop:
        advice = getattr(stop, "advice", "")
        from context_bench.cli.messages import wrap_message

        text = f"context-bench: interrupted; {advice}" if advice else "context-bench: interrupted"
        print(wrap_message(text), file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        _discard_output()
        return 0
    except Exception as error:
        from context_bench.cli.messages import say
        from context_bench.errors import ContextBenchError

        if not isinstance(error, ContextBenchError | OSError):
            raise
        if isinstance(error, OSError):  # a full disk, most likely
            _discard_output()
        say(error)
        return 2


def _dispatch_and_flush(arguments: list[str]) -> int:
    """Run the command and write everything out, while a full disk or a reader that has gone can be dealt with."""
    try:
        return _dispatch(arguments)
    except SystemExit as done:  # argparse has said what there was to say
        return done.code if isinstance(done.code, int) else 2
    finally:
        sys.stdout.flush()


def _discard_output() -> None:
    """Drop what is left in the buffer: Python would try to write it once more at its end, and complain."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def find_module(command: str) -> str:
    """Return the module whose `main` is the command: it has the command's name."""
    return f"context_bench.cli.{command.replace('-', '_')}"


def _dispatch(arguments: list[str]) -> int:
    sys.path.append(os.getcwd())  # so that `--system my_module:f` finds what `python -m` would find
    if arguments and arguments[0] in COMMANDS:
        from importlib import import_module

        command = import_module(find_module(arguments[0]))
        code: int = command.main(arguments)
        return code
    from context_bench.cli import evaluate

    return evaluate.main(arguments)
