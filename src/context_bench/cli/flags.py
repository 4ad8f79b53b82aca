"""Flags that several commands share: each is described once."""

from __future__ import annotations

from typing import Any

__all__ = [
    "STORE",
    "add_data",
    "add_import",
    "add_judge",
    "add_quiet",
    "add_report",
    "add_store",
    "add_tap_host",
    "add_unsafe_code",
    "add_wide",
]

STORE = ".context-bench"
"""Where runs are recorded unless --cache-dir says otherwise."""


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
