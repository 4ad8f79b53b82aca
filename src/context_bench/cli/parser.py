"""The flags of a run, and what argparse needs to answer with one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from context_bench._version import __version__
from context_bench.cli import COMMANDS
from context_bench.cli.help import HelpAll, short_help
from context_bench.cli.numbers import amount, count, error_limit, number, positive, temperature

__all__ = [
    "Parser",
    "add_data",
    "add_import",
    "add_judge",
    "add_quiet",
    "add_report",
    "add_store",
    "add_tap_host",
    "add_wide",
    "run_parser",
]

_EXAMPLE = """\
example:
  context-bench --proxy http://localhost:7878 --system truncate:ratio=0.5 --dataset needle:length=8000,n=50
"""

_EXIT_CODES = (
    "exit codes: 0 done, 1 a check of conformance failed, 2 wrong usage or input, "
    "3 too many errors, a limit reached, a system stopped or nothing scored, 130 interrupted"
)

STORE = ".context-bench"
MODELS = {"openai": "gpt-3.5-turbo", "anthropic": "claude-haiku-4-5"}
"""What is asked when the user names no model."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to read on."""

    on_help: ClassVar[Callable[[Parser], None] | None] = None
    """Called instead of printing help, so that completion learns the flags of every command from the command itself."""

    @property
    def flags(self) -> dict[str, argparse.Action]:
        """Every flag that says something of a run, by its long name."""
        flags = {name[2:]: action for name, action in self._option_string_actions.items() if name.startswith("--")}
        return {name: action for name, action in flags.items() if name not in ("help", "help-all", "version")}

    def print_help(self, file: Any = None) -> None:
        """Print the help, or hand the parser to whoever wants to know its flags."""
        hook = Parser.on_help
        if hook is None:
            super().print_help(file)
        else:
            hook(self)

    def error(self, message: str) -> NoReturn:
        from context_bench.errors import printable
        from context_bench.masking import mask_command

        self.exit(
            2, f"context-bench: {printable(mask_command(message))}{self._meant(message)} (see {self.prog} --help)\n"
        )

    def _meant(self, message: str) -> str:
        """The flag that a mistyped one is most like."""
        from difflib import get_close_matches

        unknown = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
        if not message.startswith("unrecognized arguments") or not unknown:
            return ""
        near = get_close_matches(unknown[0], self._option_string_actions, n=1)
        return f"; did you mean {near[0]}?" if near else ""


class _Version(argparse.Action):
    """Prints the version, and names a package that stands in the way of this one."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from context_bench.distribution import find_namesake

        print(f"context-bench {__version__}")
        other = find_namesake()
        parser.exit(0, f"context-bench: {other}\n" if other else None)


class RunParser(Parser):
    """The parser of a run: its help is one screen, and `--help-all` has every flag."""

    def format_help(self) -> str:
        return short_help(len(self.flags))

    def format_all(self) -> str:
        """Every flag, in its group."""
        return super().format_help()


def run_parser() -> RunParser:
    """All flags of a run: one that is added to a group is in --help-all, and in the completion of the shell."""
    commands = "\n".join(f"  {name:12}{text}" for name, text in COMMANDS.items())
    parser = RunParser(
        prog="context-bench",
        usage="context-bench (--proxy URL | --system REF)... --dataset REF... [options]\n"
        "       context-bench COMMAND [--help]",
        description=f"{_EXAMPLE}\nBenchmark any system that changes what a language model gets to read.",
        epilog=f"commands:\n{commands}\n\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument("--help-all", action=HelpAll)
    _add_what(parser)
    _add_requests(parser)
    add_tap(parser.add_argument_group("what really reaches the model"))
    add_judge(parser.add_argument_group("who judges"))
    _add_how(parser)
    _add_limits(parser)
    add_store(parser.add_argument_group("what is kept"), reuse=True)
    out = parser.add_argument_group("what comes out")
    add_report(out)
    out.add_argument(
        "--dry-run", action="store_true", help="say what would be sent and what it might cost, send nothing"
    )
    out.add_argument("--quiet", action="store_true", help="no progress and no notes")
    out.add_argument(
        "--verbose", action="store_true", help="show requests, replies and tracebacks on stderr, without secrets"
    )
    out.add_argument("--pdb", action="store_true", help="open the debugger where a system's own code raises")
    return parser


def _add_what(parser: Parser) -> None:
    group = parser.add_argument_group("what is measured")
    add = group.add_argument
    add(
        "--proxy",
        action="append",
        default=[],
        metavar="URL",
        help="a server that speaks OpenAI's chat completions (repeatable)",
    )
    add(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="the k-th name is for the k-th --proxy (default: host:port)",
    )
    add(
        "--system",
        action="append",
        default=[],
        metavar="REF",
        help="NAME[:key=value,...], module:object or file.py:object (repeatable)",
    )
    add(
        "--reader",
        metavar="URL",
        help="a model that answers from what each --system made, so that it compares with a proxy",
    )
    add(
        "--dataset",
        action="append",
        default=[],
        metavar="REF",
        help="NAME[:key=value,...], a file (.jsonl .json .csv .parquet) or module:object (repeatable)",
    )
    add("-n", "--max-examples", type=count, metavar="N", help="examples of each dataset (default: all)")
    add(
        "--sample",
        choices=("first", "random", "stratified"),
        default="first",
        help="which of them, by --seed; stratified takes as many of each category (default: %(default)s)",
    )
    add_data(group)
    add(
        "--map",
        metavar="FIELD=COLUMN,...",
        help="the fields of one's own files by the names that they have there: question=prompt,answer=gold",
    )
    add(
        "--evaluator",
        action="append",
        default=[],
        metavar="REF",
        help="one more evaluator, beside those wired for the dataset (repeatable)",
    )
    add("--metric", action="append", default=[], metavar="REF", help="one more metric (repeatable)")
    add_import(parser)


def _add_requests(parser: Parser) -> None:
    add = parser.add_argument_group("what is sent").add_argument
    models = " or ".join(f"{model} with --api {api}" for api, model in MODELS.items())
    add("--model", metavar="NAME", help=f"for every --proxy and --reader (default: {models})")
    add(
        "--api",
        choices=tuple(MODELS),
        default="openai",
        help="what every --proxy speaks (default: %(default)s)",
    )
    add(
        "--api-key-env",
        metavar="NAME",
        help="variable with the key (default: OPENAI_API_KEY or ANTHROPIC_API_KEY, over https or to this machine)",
    )
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="one more header; its value is never shown or kept (repeatable)",
    )
    add("--extra-body", metavar="JSON", help="more fields for each request")
    add("--system-prompt", metavar="TEXT", help="put before the context")
    add("--temperature", type=temperature, default=0.0, metavar="X", help="none leaves it to the server (default: 0)")
    add("--max-tokens", type=positive, metavar="N", help="the longest reply")
    add("--stream", action="store_true", help="receive replies as streams and time their tokens")
    add("--timeout", type=amount, metavar="S", help="seconds for one attempt (default: 30; 600 with --tap-model)")
    add("--max-retries", type=count, default=3, metavar="N", help="attempts after the first (default: %(default)s)")


def _add_how(parser: Parser) -> None:
    add = parser.add_argument_group("how it is measured").add_argument
    add(
        "--score-field",
        default="auto",
        metavar="FIELD",
        help="the score that counts (default: auto, each dataset's primary one)",
    )
    add("--threshold", type=number, metavar="X", help="a score from here on passes (default: 0.7)")
    add(
        "--repeats", type=positive, default=1, metavar="K", help="run each example so many times (default: %(default)s)"
    )
    add_unsafe_code(parser)
    add("--tokenizer", metavar="NAME", help="encoding for all token counts (default: cl100k_base)")
    add("--seed", type=int, default=0, metavar="N", help="for generated data and random systems (default: %(default)s)")


def _add_limits(parser: Parser) -> None:
    add = parser.add_argument_group("limits").add_argument
    add(
        "--max-workers",
        type=positive,
        metavar="N",
        help="examples in flight for each system (default: 8 for a proxy, 1 in process)",
    )
    add("--max-connections", type=positive, metavar="N", help="requests in flight for each proxy")
    add("--max-rpm", type=amount, metavar="N", help="requests in a minute for each proxy")
    add("--max-tpm", type=amount, metavar="N", help="tokens in a minute for each proxy, by its own count")
    add(
        "--max-errors",
        type=error_limit,
        metavar="N|P%",
        help="stop when one system has more errors (without it: go on, but exit code 3 above 10%%)",
    )
    add(
        "--prices",
        metavar="FILE",
        help="dollars per million tokens by model: input, output, cached_input (TOML or JSON)",
    )
    add("--max-cost", type=amount, metavar="USD", help="stop before more than that is spent; needs --prices")
    add("--max-total-tokens", type=positive, metavar="N", help="stop before more tokens than that are used")
    add(
        "--no-preflight",
        action="store_true",
        help="go on with a system whose first request says that all others will fail (wrong key, model or path)",
    )


def add_tap(group: Any) -> None:
    """The tap behind each proxy, who answers there, and the start of the proxies."""
    add = group.add_argument
    add(
        "--tap",
        metavar="[HOST]:PORT",
        help="a recording upstream for the first proxy, at the next port for the second, and so on "
        "(default with --start or --vendor: any free port)",
    )
    add_tap_host(group)
    add("--tap-forward", metavar="URL", help="the tap passes requests on to this server, key and all")
    add("--tap-model", metavar="local|FILE", help="the tap answers with a small model on this machine, or a GGUF file")
    add("--tap-reply", metavar="SCRIPT", help="the tap answers by a script: extract, echo, text:ANSWER or a file")
    add(
        "--start",
        action="append",
        default=[],
        metavar="COMMAND",
        help="start the k-th proxy, with its {port} and the address of its {tap} filled in, and stop it (repeatable)",
    )
    add(
        "--vendor",
        action="append",
        default=[],
        metavar="NAME",
        help="a proxy that we know how to start: kompact or headroom (repeatable)",
    )
    add(
        "--controls",
        action="store_true",
        help="also ask the model with no context (floor), the evidence only (ceiling) and everything (direct)",
    )


def add_tap_host(group: Any) -> None:
    """`--tap-host`, for every command that opens a tap."""
    group.add_argument(
        "--tap-host",
        action="append",
        default=[],
        metavar="NAME",
        help="also answer requests that call the tap by this name, as from a container: host.docker.internal "
        "(repeatable; addresses and localhost need none)",
    )


def add_data(parser: Any) -> None:
    """Where public datasets come from."""
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="DIR/NAME/ holds the records of a public dataset (default: CONTEXT_BENCH_DATA; without either, the hub)",
    )
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit of public datasets on the hub")


def add_unsafe_code(parser: Any) -> None:
    """`--unsafe-code`, for every command that scores."""
    parser.add_argument(
        "--unsafe-code",
        action="store_true",
        help="run model-written code without a sandbox (HumanEval, MBPP): at your own risk",
    )


def add_import(parser: Any) -> None:
    """`--import`, for every command that looks names up."""
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE|FILE",
        help="load code that registers components (repeatable)",
    )


def add_judge(group: Any, *, required: bool = False) -> None:
    """The model that judges answers, for every command that scores."""
    add = group.add_argument
    add("--judge-url", required=required, metavar="URL", help="a server whose model rates every answer: judge_score")
    add("--judge-model", metavar="NAME", help="the model that judges (default: gpt-4)")
    add(
        "--judge-key-env",
        metavar="NAME",
        help="variable with the judge's key (default: OPENAI_API_KEY, over https or to this machine)",
    )


def add_store(group: Any, *, reuse: bool) -> None:
    """Where the store is, and for a run what is done with it."""
    group.add_argument(
        "--cache-dir",
        metavar="DIR",
        help=f"the store{'; answers that are there are reused' if reuse else ''} (default: {STORE})",
    )
    if reuse:
        group.add_argument("--resume", action="store_true", help=f"reuse the answers in {STORE}")
        group.add_argument("--fresh", action="store_true", help="ask everything again, and keep the new answers")
        group.add_argument("--cache-tag", metavar="TAG", help="set answers apart: the same name, a new version")
        group.add_argument("--no-store", action="store_true", help="keep nothing")
        group.add_argument(
            "--no-rows",
            action="store_true",
            help="leave rows in the store: memory stays flat, json has the summary only",
        )


def add_report(group: Any) -> None:
    """The form of a report, and where it goes."""
    group.add_argument(
        "--output",
        metavar="REF",
        help="form of the result: table, json, csv, or a reporter of your own by NAME, module:object or file.py:object "
        "(default: what the ending of --out names, else table)",
    )
    group.add_argument("--out", metavar="FILE", help="write the result there instead of stdout: .json, .csv or .md")
    add_wide(group)


def add_quiet(group: Any) -> None:
    """`--quiet`, for commands that say nothing else on stderr."""
    group.add_argument("--quiet", action="store_true", help="no progress")


def add_wide(group: Any) -> None:
    """`--wide`, for every command that prints a table."""
    group.add_argument("--wide", action="store_true", help="tables with all their columns, however narrow the terminal")
