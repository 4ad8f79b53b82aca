"""The flags of a run, and what argparse needs to answer with one sentence."""

from __future__ import annotations

import argparse
from typing import NoReturn

from context_bench._version import __version__
from context_bench.cli import COMMANDS

__all__ = ["Parser", "run_parser"]

_EXAMPLE = """\
example:
  context-bench --proxy http://localhost:7878 --system truncate:ratio=0.5 --dataset needle:length=8000,n=50
"""

_EXIT_CODES = "exit codes: 0 done, 2 wrong usage or input, 3 too many errors, 130 interrupted"


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to read on."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"context-bench: {message} (see {self.prog} --help)\n")


def count(text: str) -> int:
    """A whole number from 0 on."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return value


def positive(text: str) -> int:
    """A whole number from 1 on."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def error_limit(text: str) -> str:
    """`N` or `P%`."""
    try:
        if float(text.removesuffix("%")) < 0:
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of errors nor a percentage") from None
    return text


def run_parser() -> Parser:
    """All flags of a run."""
    commands = "\n".join(f"  {name:12}{text}" for name, text in COMMANDS.items())
    parser = Parser(
        prog="context-bench",
        usage="context-bench (--proxy URL | --system REF)... --dataset REF... [options]\n"
        "       context-bench COMMAND [--help]",
        description=f"{_EXAMPLE}\nBenchmark any system that changes what a language model gets to read.",
        epilog=f"commands:\n{commands}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"context-bench {__version__}")

    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--proxy",
        action="append",
        default=[],
        metavar="URL",
        help="a server that speaks OpenAI's chat completions (repeatable)",
    )
    what.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="the k-th name is for the k-th --proxy (default: host:port)",
    )
    what.add_argument(
        "--system",
        action="append",
        default=[],
        metavar="REF",
        help="NAME[:key=value,...], module:object or file.py:object (repeatable)",
    )
    what.add_argument(
        "--dataset",
        action="append",
        default=[],
        metavar="REF",
        help="NAME[:key=value,...], a file (.jsonl .json .csv .parquet) or module:object (repeatable)",
    )
    what.add_argument("-n", "--max-examples", type=count, metavar="N", help="examples of each dataset (default: all)")
    what.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="REF",
        help="one more evaluator, beside those wired for the dataset (repeatable)",
    )
    what.add_argument("--metric", action="append", default=[], metavar="REF", help="one more metric (repeatable)")
    what.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE|FILE",
        help="load code that registers components (repeatable)",
    )

    how = parser.add_argument_group("how it is measured")
    how.add_argument(
        "--model",
        default="gpt-3.5-turbo",
        metavar="NAME",
        help="sent to every --proxy (default: %(default)s)",
    )
    how.add_argument(
        "--api-key-env",
        metavar="NAME",
        help="environment variable with the key (default: OPENAI_API_KEY, over https or to this machine only)",
    )
    how.add_argument(
        "--score-field",
        default="auto",
        metavar="FIELD",
        help="the score that counts (default: auto, each dataset's primary one)",
    )
    how.add_argument(
        "--threshold",
        type=float,
        default=0.7,
        metavar="X",
        help="a score from here on passes (default: %(default)s)",
    )
    how.add_argument("--tokenizer", metavar="NAME", help="encoding for all token counts (default: cl100k_base)")
    how.add_argument(
        "--max-workers",
        type=positive,
        metavar="N",
        help="examples in flight for each system (default: 8 for a proxy, 1 in process)",
    )
    how.add_argument(
        "--max-errors",
        type=error_limit,
        default="10%",
        metavar="N|P%%",
        help="more errors of one system give exit code 3 (default: 10%%)",
    )
    how.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="for generated data and random systems (default: %(default)s)",
    )

    out = parser.add_argument_group("what comes out")
    out.add_argument(
        "--output",
        choices=("table", "json", "csv"),
        default="table",
        help="form of the result (default: %(default)s)",
    )
    out.add_argument("--out", metavar="FILE", help="write the result there instead of stdout")
    out.add_argument("--quiet", action="store_true", help="no progress and no notes")
    out.add_argument("--verbose", action="store_true", help="show requests and replies on stderr, without secrets")
    return parser
