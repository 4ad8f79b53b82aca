"""Flags that several commands share: each is described once."""

from __future__ import annotations

from typing import Any

from context_bench.cli.flag_types import amount, condition, positive

__all__ = [
    "STORE",
    "add_answerers",
    "add_data",
    "add_gate",
    "add_import",
    "add_judge",
    "add_keep_reasoning",
    "add_plots",
    "add_quiet",
    "add_report",
    "add_spending_limits",
    "add_store",
    "add_tap_host",
    "add_unsafe_code",
    "add_wide",
]

STORE = ".context-bench"
"""Where runs are recorded unless --cache-dir says otherwise."""


def add_answerers(group: Any) -> None:
    """Add the flags that say who answers behind a tap, for a run and for `memory`."""
    add = group.add_argument
    add(
        *("--tap-forward", "--relay"),
        metavar="URL",
        help="the tap forwards requests to this server, with their key",
    )
    add("--tap-model", metavar="local|FILE", help="the tap answers with a small model on this machine, or a GGUF file")
    add("--tap-reply", metavar="SCRIPT", help="the tap answers from a script: extract, echo, text:ANSWER or a file")


def add_tap_host(group: Any) -> None:
    """Add `--tap-host`, for every command that opens a tap."""
    group.add_argument(
        "--tap-host",
        action="append",
        default=[],
        metavar="NAME",
        help="also accept requests that address the tap by this name, such as host.docker.internal from a container "
        "(repeatable; IP addresses and localhost always work)",
    )


def add_data(group: Any, *, revision: bool = True) -> None:
    """Add the flags that say where public datasets come from."""
    group.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with the records of public datasets, as DIR/NAME/ (default: CONTEXT_BENCH_DATA, else the hub)",
    )
    if revision:
        group.add_argument("--revision", metavar="REV", help="branch, tag or commit of a public dataset on the hub")


def add_gate(group: Any) -> None:
    """Add the flags of a gate, for a run and for `compare`."""
    add = group.add_argument
    add(
        "--fail-if",
        type=condition,
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit with 1 if the condition is met, with 4 if there are too few examples to tell: "score drops 0.02", '
        '"prompt_savings < 0.3", "error_rate > 0.01", "verdict is worse" (repeatable)',
    )
    add("--junit", metavar="FILE", help="write the outcome of each condition as JUnit XML")
    add(
        "--summary",
        metavar="FILE",
        help="write the table and the conditions in Markdown; with --fail-if also appended to $GITHUB_STEP_SUMMARY, "
        "if that is set",
    )


def add_keep_reasoning(group: Any) -> None:
    """Add the flag that leaves reasoning in the replies that are scored, for runs, `memory` and `score`."""
    group.add_argument(
        "--keep-reasoning",
        action="store_true",
        help="score whole replies, with their <think> blocks and the like (default: the answer alone)",
    )


def add_unsafe_code(group: Any) -> None:
    """Add `--unsafe-code`, for every command that scores."""
    group.add_argument(
        "--unsafe-code",
        action="store_true",
        help="run model-written code (HumanEval, MBPP) without a sandbox, at your own risk",
    )


def add_import(group: Any) -> None:
    """Add `--import`, for every command that looks names up."""
    group.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE|FILE",
        help="import a module or file that registers components (repeatable)",
    )


def add_judge(group: Any, *, score: str | None = "judge_score") -> None:
    """Add the flags of the model that judges answers, and name its score; None where the judge itself is checked."""
    add = group.add_argument
    rates = "server of a model that rates answers"
    add("--judge-url", required=score is None, metavar="URL", help=f"{rates}; adds {score}" if score else rates)
    add("--judge-model", metavar="NAME", help="the model that judges (default: gpt-4)")
    add(
        "--judge-key-env",
        metavar="NAME",
        help="environment variable with the judge's key (default: OPENAI_API_KEY, sent only over https or to this "
        "machine)",
    )


def add_spending_limits(group: Any) -> None:
    """Add the prices, and the limits on dollars and tokens, which systems and judges share."""
    add = group.add_argument
    add(
        "--prices",
        metavar="FILE",
        help="dollars per million tokens by model (TOML or JSON), instead of those of `context-bench prices`",
    )
    add("--max-cost", type=amount, metavar="USD", help="stop before systems and judge cost more")
    add("--max-total-tokens", type=positive, metavar="N", help="stop before systems and judge use more tokens")


def add_store(group: Any, *, reuse: bool) -> None:
    """Add the flags that say where the store is, and for a run what is done with it."""
    if not reuse:
        group.add_argument("--cache-dir", metavar="DIR", help=f"folder of the store (default: {STORE})")
        return
    add = group.add_argument
    add(
        "--cache-dir",
        metavar="DIR",
        help=f"folder of the store, whose answers are reused (default: {STORE}, and nothing is reused)",
    )
    add("--resume", action="store_true", help=f"reuse the answers in {STORE}")
    add("--fresh", action="store_true", help="ask everything again, and cache the new answers")
    add(
        "--cache-tag",
        metavar="TAG",
        help="label for cached answers; change it when a server changed behind the same URL",
    )
    add("--no-store", action="store_true", help="record nothing")


def add_report(group: Any) -> None:
    """Add the flags that say in which form a report is written, and where it goes."""
    group.add_argument(
        "--output",
        metavar="REF",
        help="form of the result: table, json, csv, html, or a reporter of your own by NAME, module:object or "
        "file.py:object (default: by the ending of --out, else table)",
    )
    group.add_argument(
        "--out", metavar="FILE", help="write the result to FILE (.json, .csv, .md or .html), not to stdout"
    )
    add_wide(group)


def add_plots(group: Any) -> None:
    """Add `--plots`, for every command that writes pictures of a run."""
    group.add_argument(
        "--plots", metavar="DIR", help="write the plots that the run has data for to DIR, as SVG and PNG"
    )


def add_quiet(group: Any) -> None:
    """Add `--quiet`, for commands that say nothing else on stderr."""
    group.add_argument("--quiet", action="store_true", help="show no progress")


def add_wide(group: Any) -> None:
    """Add `--wide`, for every command that prints a table."""
    group.add_argument("--wide", action="store_true", help="show all columns of a table, however narrow the terminal")
