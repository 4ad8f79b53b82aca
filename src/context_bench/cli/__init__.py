"""The command line: `context-bench [COMMAND] ...`. One file for each command; a run needs no command.

The result goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a gate failed, 2 wrong usage
or input, 3 too many errors or a limit reached, 4 too few examples for a gate to decide, 130 interrupted.
Heavy modules are imported only when needed, so `--help` is almost as fast as argparse itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from context_bench.cli.commands import COMMANDS, find_module

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; a user's mistake prints one sentence, not a traceback."""
    if argv is None and os.getpid() == 1:
        from context_bench.cli.process import stand_in_as_init

        stand_in_as_init()
    code = _run(list(sys.argv[1:] if argv is None else argv))
    if argv is None and "datasets" in sys.modules:
        # its read-ahead threads would abort the interpreter at exit
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: list[str]) -> int:
    from context_bench.cli.process import keep_streams_usable

    keep_streams_usable()
    for stream in (sys.stdout, sys.stderr):  # a terminal without UTF-8 must not end a run
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
    except BrokenPipeError:  # the reader of our output has closed it, as `| head` does
        _discard_output()
        return 0
    except Exception as error:
        from context_bench.cli.messages import say
        from context_bench.errors import ContextBenchError

        if not isinstance(error, ContextBenchError | OSError):
            raise
        if isinstance(error, OSError):  # probably a full disk
            _discard_output()
        say(error)
        return 2


def _dispatch_and_flush(arguments: list[str]) -> int:
    """Run the command and flush its output, while a full disk or a closed pipe can still be handled."""
    try:
        return _dispatch(arguments)
    except SystemExit as done:  # argparse has already printed the message
        return done.code if isinstance(done.code, int) else 2
    finally:
        sys.stdout.flush()


def _discard_output() -> None:
    """Drop the rest of the buffer; Python would try to write it again at exit and report an error."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _dispatch(arguments: list[str]) -> int:
    sys.path.append(os.getcwd())  # so that `--system my_module:f` finds the same modules as `python -m`
    if arguments[:1] == ["help"]:  # `help` and `help COMMAND`, as in other programs
        arguments = [*arguments[1:2], "--help"]
    if arguments and arguments[0] in COMMANDS:
        from importlib import import_module

        command = import_module(find_module(arguments[0]))
        code: int = command.main(arguments)
        return code
    from context_bench.cli import evaluate

    return evaluate.main(arguments)
