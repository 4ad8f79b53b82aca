"""What `context-bench --help` says: one screen of 80 x 24. `--help-all` has every flag."""

from __future__ import annotations

import argparse
import sys
from typing import Any

__all__ = ["HelpAll", "short_help"]

_EXAMPLES = (
    "context-bench demo",
    "context-bench --system bm25:ratio=0.3 --system minify --dataset json-logs:n=40",
    "context-bench --proxy http://localhost:7878 --dataset needle:length=8000,n=50",
)

_COMMANDS = {
    "measure": ("demo", "run", "score", "judge-check", "conformance"),
    "look": ("runs", "diff", "tap"),
    "list": ("datasets", "systems", "evaluators", "metrics", "reporters"),
    "set up": ("local", "completion"),
}

_FLAGS = {
    "--proxy URL": "a server that speaks OpenAI's chat completions (repeatable)",
    "--system REF": "a compressor: NAME[:key=value,...] or file.py:object",
    "--dataset REF": "NAME[:key=value,...] or a .jsonl, .json, .csv, .parquet file",
    "-n N": "so many examples of each dataset",
    "--model NAME": "the model to ask for",
    "--reader URL": "a model that answers from what each --system made",
    "--start COMMAND": "start a proxy and record what reaches the model behind it",
    "--output REF": "table, json, csv or your own; --out FILE writes it to a file",
    "--resume": "reuse the answers of earlier runs",
    "--dry-run": "say what would be sent and what it might cost",
}
"""What most people need."""


def short_help(flags: int) -> str:
    """What it is, three examples, the commands and ten flags; `flags` is how many there are in all."""
    lines = ["Benchmark any system that changes what a language model gets to read.", ""]
    lines += [f"  {example}" for example in _EXAMPLES]
    lines += ["", "Commands (context-bench COMMAND --help tells more):"]
    lines += [f"  {title:<9}{', '.join(names)}" for title, names in _COMMANDS.items()]
    lines += ["", f"The flags that most people need (--help-all: all {flags}, by group, and exit codes):"]
    lines += [f"  {flag:<17}{text}" for flag, text in _FLAGS.items()]
    return "\n".join(lines) + "\n"


class HelpAll(argparse.Action):
    """`--help-all`: every flag in its group."""

    def __init__(self, option_strings: Any, dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show every flag, by group, and exit")

    def __call__(self, parser: Any, *_: Any, **__: Any) -> None:
        parser._print_message(parser.format_all(), sys.stdout)
        parser.exit()
