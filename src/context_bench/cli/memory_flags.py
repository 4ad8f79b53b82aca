"""The flags of `context-bench memory`, in their groups."""

from __future__ import annotations

import argparse
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flag_types import amount, number, positive
from context_bench.cli.flags import (
    add_answerers,
    add_data,
    add_import,
    add_judge,
    add_keep_reasoning,
    add_quiet,
    add_report,
    add_store,
)
from context_bench.cli.parser import Parser

__all__ = ["memory_parser"]

_EXAMPLE = """\
example:
  context-bench memory --system naive --system bm25 --system last:n=20 \\
      --dataset synthetic-memory
"""


def memory_parser() -> Parser:
    """Make the parser of the command's flags."""
    parser = Parser(
        prog="context-bench memory",
        description=f"{_EXAMPLE}\n{COMMANDS['memory']}",
        allow_abbrev=False,
    )
    _add_what(parser.add_argument_group("what is measured"))
    _add_protocol(parser.add_argument_group("how it is measured, the same for all"))
    _add_models(parser.add_argument_group("who answers"))
    judge = parser.add_argument_group("who judges")
    add_judge(judge, score="memory_judge")
    judge.add_argument("--judge-prompts", metavar="FILE", help="wordings of the judge's rules by type (TOML)")
    judge.add_argument("--judge-itself", action="store_true", help="let the model that answers judge its own answers")
    _add_scoring(parser.add_argument_group("how it is scored"))
    add_store(parser.add_argument_group("what is kept"), reuse=True)
    _add_output(parser.add_argument_group("what comes out"))
    return parser


def _add_what(group: Any) -> None:
    add = group.add_argument
    add(
        "--system",
        action="append",
        default=[],
        metavar="REF",
        help="memory system: NAME[:key=value,...] as `context-bench systems` lists them, module:object or "
        "file.py:object (repeatable)",
    )
    add(
        "--dataset",
        metavar="REF",
        help="conversations: NAME[:key=value,...] as `context-bench datasets` lists them, a .jsonl file or "
        "module:object",
    )
    add("-n", "--max-conversations", type=positive, metavar="N", help="at most N conversations (default: all)")
    add("--types", type=_list_words, metavar="A,B", help="only questions of these types (default: all)")
    add("--seed", type=int, default=0, metavar="N", help="seed for generated data and systems (default: %(default)s)")
    add_data(group, revision=False)
    add_import(group)


def _add_protocol(group: Any) -> None:
    add = group.add_argument
    add(
        "--granularity",
        type=_list_words,
        default=["session"],
        metavar="A,B",
        help="what one call of ingest() brings: turn, pair, session, or several of them (default: session)",
    )
    add(
        "--budget",
        type=_list_numbers,
        metavar="N,M",
        help="tokens that the reader gets of what was retrieved (default: 500,2000,8000)",
    )
    add(
        "--top-k",
        type=positive,
        metavar="K",
        help="most passages that are retrieved for a question (default: each system's own)",
    )
    add(
        "--answers",
        type=_list_words,
        default=["reader", "own"],
        metavar="A,B",
        help="who answers: reader (one model, from what was retrieved) or own (each system's query); default: both",
    )
    add("--timeout", type=amount, default=600.0, metavar="S", help="seconds for one call of a system (default: 600)")
    add(
        "--flush-quiet",
        type=amount,
        default=5.0,
        metavar="S",
        help="after writing, wait until a system made no call for S seconds (default: 5)",
    )
    add("--flush-limit", type=amount, default=120.0, metavar="S", help="but wait at most S seconds (default: 120)")


def _add_models(group: Any) -> None:
    add = group.add_argument
    add("--reader", metavar="URL", help="server of the model that answers from what was retrieved (default: a script)")
    add_answerers(group)
    add("--model", metavar="NAME", help="model of the reader, and of systems that ask one (default: gpt-4o-mini)")
    add(
        "--embedding-model",
        default="text-embedding-3-small",
        metavar="NAME",
        help="model that embeds for systems that ask one (default: %(default)s)",
    )
    add("--api-key-env", metavar="NAME", help="environment variable with the key (default: OPENAI_API_KEY)")


def _add_scoring(group: Any) -> None:
    add = group.add_argument
    add("--evaluator", action="append", default=[], metavar="REF", help="one more evaluator (repeatable)")
    add("--score-field", metavar="FIELD", help="the score that counts (default: that of the dataset)")
    add("--threshold", type=number, metavar="X", help="lowest score that passes (default: 0.7)")
    add_keep_reasoning(group)
    add("--baseline", metavar="NAME", help="system to hold the others against (default: naive, else the first)")
    add("--margin", type=number, metavar="X", help="difference of scores that does not matter (default: 0.02)")
    add("--tokenizer", metavar="NAME", help="encoding of the reader, for budgets and counts (default: cl100k_base)")
    add(
        "--prices",
        metavar="FILE",
        help="dollars per million tokens by model, instead of those of `context-bench prices`",
    )
    add("--max-workers", type=positive, metavar="N", help="questions at a time (default: 8 with a reader, else 1)")


def _add_output(group: Any) -> None:
    add_report(group)
    group.add_argument("--report", metavar="FILE", help="also write the report to FILE (.html)")
    add_quiet(group)


def _list_words(text: str) -> list[str]:
    """Read words between commas."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise argparse.ArgumentTypeError("must be one or several words, with commas between them")
    return words


def _list_numbers(text: str) -> list[int]:
    """Read integers between commas."""
    return [positive(word) for word in _list_words(text)]
