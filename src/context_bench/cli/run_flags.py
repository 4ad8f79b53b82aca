"""All flags of a run, in their groups. `--help` shows the ones that most people need, `--help-all` every one."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from context_bench._version import __version__
from context_bench.cli.commands import COMMANDS
from context_bench.cli.flag_types import (
    amount,
    count,
    error_limit,
    integer,
    number,
    page,
    positive,
    resources,
    temperature,
)
from context_bench.cli.flags import (
    add_answerers,
    add_data,
    add_gate,
    add_import,
    add_judge,
    add_keep_reasoning,
    add_plots,
    add_report,
    add_spending_limits,
    add_start_dir,
    add_store,
    add_tap_host,
    add_unsafe_code,
)
from context_bench.cli.help import HelpAll, list_commands, short_help
from context_bench.cli.parser import Parser
from context_bench.wire.forms import FORMS

__all__ = ["MODELS", "run_parser"]

_EXAMPLE = """\
example:
  context-bench --proxy http://localhost:7878 --system truncate:ratio=0.5 \\
      --dataset needle:length=8000,n=50
"""

_EXIT_CODES = """\
exit codes:
  0    done
  1    a condition of --fail-if is met, or a check of conformance failed
  2    wrong usage or input
  3    too many errors, a limit reached, a system stopped, or nothing scored
  4    too few examples to tell whether a condition of --fail-if is met
  130  interrupted
"""

MODELS = {form.name: form.default_model for form in FORMS}
"""The model that is asked for when --model is not given."""


class _Version(argparse.Action):
    """Prints the version, and names an installed package that hides this one."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from context_bench.errors import find_namesake

        print(f"context-bench {__version__}")
        other = find_namesake()
        parser.exit(0, f"context-bench: {other}\n" if other else None)


class RunParser(Parser):
    """The parser of a run: its help is one screen, and `--help-all` has every flag."""

    commands = COMMANDS

    def format_help(self) -> str:
        return short_help(len(self.flags))

    def format_all(self) -> str:
        """Format every flag, in its group."""
        return super().format_help()


def run_parser() -> RunParser:
    """Build the parser of a run; a flag that is added to a group is in --help-all, and in the shell's completion."""
    parser = RunParser(
        prog="context-bench",
        usage="context-bench (--proxy URL | --system REF)... --dataset REF... [options]\n"
        "       context-bench COMMAND [--help]",
        description=f"{_EXAMPLE}\nBenchmark any system that changes what a language model gets to read.",
        epilog=f"{list_commands()}\n{_EXIT_CODES}",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    parser.add_argument("--help-all", action=HelpAll)
    _add_what(parser.add_argument_group("what is measured"))
    _add_requests(parser.add_argument_group("what is sent"))
    _add_tap(parser.add_argument_group("what really reaches the model"))
    add_judge(parser.add_argument_group("who judges"))
    _add_scoring(parser.add_argument_group("how it is scored"))
    _add_limits(parser.add_argument_group("limits"))
    _add_engine(parser.add_argument_group("where it runs"))
    kept = parser.add_argument_group("what is kept")
    add_store(kept, reuse=True)
    kept.add_argument(
        "--no-rows",
        action="store_true",
        help="keep rows in the store only: memory stays flat, and json has the summary alone",
    )
    _add_output(parser.add_argument_group("what comes out"))
    add_gate(parser.add_argument_group("a gate for CI"))
    return parser


def _add_what(group: Any) -> None:
    add = group.add_argument
    add(
        "--proxy",
        action="append",
        default=[],
        metavar="URL",
        help="server that speaks OpenAI's chat completions (repeatable)",
    )
    add(
        "--name",
        action="append",
        default=[],
        metavar="NAME",
        help="name of a --proxy, in their order (default: host:port; repeatable)",
    )
    add(
        "--system",
        action="append",
        default=[],
        metavar="REF",
        help="compressor or reranker: NAME[:key=value,...], module:object or file.py:object (repeatable)",
    )
    add(
        "--reader",
        metavar="URL",
        help="server of a model that answers from what each --system returned, so that it compares with a proxy",
    )
    add(
        "--dataset",
        action="append",
        default=[],
        metavar="REF",
        help="data: NAME[:key=value,...], a file (.jsonl .json .csv .parquet) or module:object (repeatable)",
    )
    add("-n", "--max-examples", type=count, metavar="N", help="at most N examples of each dataset (default: all)")
    add(
        "--sample",
        choices=("first", "random", "stratified"),
        help="which examples -n takes, by --seed; stratified takes as many of each category (default: random from "
        "files, folders and generated data, first from the hub)",
    )
    add_data(group)
    add("--map", metavar="FIELD=COLUMN,...", help="rename columns of your files: question=prompt,answer=gold")
    add(
        "--evaluator",
        action="append",
        default=[],
        metavar="REF",
        help="one more evaluator, beside those of the dataset (repeatable)",
    )
    add("--metric", action="append", default=[], metavar="REF", help="one more metric (repeatable)")
    add_import(group)


def _add_requests(group: Any) -> None:
    add = group.add_argument
    models = " or ".join(f"{model} with --api {api}" for api, model in MODELS.items())
    variables = " or ".join(form.key_variable for form in FORMS)
    add("--model", metavar="NAME", help=f"model to ask for at every --proxy and --reader (default: {models})")
    add("--api", choices=tuple(MODELS), default="openai", help="API that every --proxy speaks (default: %(default)s)")
    add(
        "--api-key-env",
        metavar="NAME",
        help=f"environment variable with the key (default: {variables}, sent only over https or to this machine)",
    )
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME:VALUE",
        help="one more header of each request; its value is never shown or stored (repeatable)",
    )
    add("--extra-body", metavar="JSON", help="more fields for the body of each request")
    add("--system-prompt", metavar="TEXT", help="text to put before the context")
    add(
        "--temperature",
        type=temperature,
        default=0.0,
        metavar="X",
        help="sampling temperature; none leaves it to the server (default: 0)",
    )
    add("--max-tokens", type=positive, metavar="N", help="most tokens in a reply")
    add("--stream", action="store_true", help="receive replies as streams, and time their tokens")
    add("--timeout", type=amount, metavar="S", help="seconds for one attempt (default: 30; 600 with --tap-model)")
    add("--max-retries", type=count, default=3, metavar="N", help="attempts after the first (default: %(default)s)")


def _add_tap(group: Any) -> None:
    add = group.add_argument
    add(
        "--tap",
        metavar="[HOST]:PORT",
        help="where the tap, a recording upstream, listens for the first proxy; for the second at the next port, and "
        "so on (default with --start or --vendor: any free port)",
    )
    add_tap_host(group)
    add_answerers(group)
    add(
        "--start",
        action="append",
        default=[],
        metavar="COMMAND",
        help="command that starts a proxy, in the order of --proxy; {port} and {tap}, the address of its tap, are "
        "filled in (repeatable)",
    )
    add_start_dir(group)
    add(
        "--sweep",
        action="append",
        default=[],
        metavar="KEY=A|B",
        help="values for {KEY} in a --start: the proxy is started once for each, and the report draws their curve "
        "(repeatable)",
    )
    add(
        "--vendor",
        action="append",
        default=[],
        metavar="NAME",
        help="proxy that we know how to start: kompact or headroom (repeatable)",
    )
    add(
        "--controls",
        action="store_true",
        help="also ask the model with no context (floor), the evidence only (ceiling) and everything (direct)",
    )


def _add_scoring(group: Any) -> None:
    add = group.add_argument
    add(
        "--score-field",
        default="auto",
        metavar="FIELD",
        help="the score that counts (default: auto, the primary score of each dataset)",
    )
    add("--threshold", type=number, metavar="X", help="lowest score that passes (default: 0.7)")
    add_keep_reasoning(group)
    add(
        "--baseline",
        metavar="NAME",
        help="system that the others are compared with (default: direct, else passthrough, else the first)",
    )
    add(
        "--plan",
        metavar="FILE",
        help="file of `context-bench plan --lock`; the report says where the run deviates from it",
    )
    add("--margin", type=number, metavar="X", help="difference of scores that does not matter (default: 0.02)")
    add("--aa", action="store_true", help="run the baseline twice, and show the difference between the two as noise")
    add(
        "--stop-when-decided",
        action="store_true",
        help="end each system as soon as its verdict is settled: five looks, in a random order by --seed",
    )
    add(
        "--fixed-groups",
        action="store_true",
        help="these documents or conversations are all that matter: verdicts go by example, and speak of no others",
    )
    add("--repeats", type=positive, default=1, metavar="K", help="run each example K times (default: %(default)s)")
    add_unsafe_code(group)
    add("--tokenizer", metavar="NAME", help="encoding for all token counts (default: cl100k_base)")
    add(
        "--seed",
        type=integer,
        default=0,
        metavar="N",
        help="seed for generated data, samples and random systems (default: %(default)s)",
    )


def _add_limits(group: Any) -> None:
    add = group.add_argument
    add(
        "--max-workers",
        type=positive,
        metavar="N",
        help="examples at a time for each system (default: 8 for a proxy, 1 in process)",
    )
    add("--max-connections", type=positive, metavar="N", help="most requests in flight to each proxy")
    add("--max-rpm", type=amount, metavar="N", help="most requests a minute to each proxy")
    add("--max-tpm", type=amount, metavar="N", help="most tokens a minute for each proxy, by the count of its server")
    add(
        "--max-errors",
        type=error_limit,
        metavar="N|P%",
        help="stop when a system has more errors (default: go on, but exit with 3 above 10%%)",
    )
    add_spending_limits(group)
    add(
        "--no-preflight",
        action="store_true",
        help="keep sending to a system whose first request failed for a reason that all others share (wrong key, "
        "model or path)",
    )


def _add_engine(group: Any) -> None:
    add = group.add_argument
    add(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="run systems and slow evaluators here, or on the workers of a Ray cluster (default: %(default)s)",
    )
    add(
        "--ray-address",
        metavar="ADDRESS",
        help="the cluster of --engine ray (default: RAY_ADDRESS, else one is started on this machine for the run)",
    )
    add(
        "--system-resources",
        type=resources,
        metavar="NAME=N,...",
        help="what each worker of --engine ray needs, such as num_gpus=1,num_cpus=2 (default: what the system "
        "declares, else one CPU)",
    )


def _add_output(group: Any) -> None:
    add_report(group)
    add = group.add_argument
    add(
        "--report", type=page, metavar="FILE", help="also write the report to FILE (.html): one page that opens offline"
    )
    add_plots(group)
    add("--dry-run", action="store_true", help="show what would be sent and what it might cost; send nothing")
    add("--quiet", action="store_true", help="show no progress and no messages")
    add("--verbose", action="store_true", help="show requests, replies and tracebacks on stderr, without secrets")
    add("--pdb", action="store_true", help="open the debugger where a system's own code raises")
