"""The short help, one screen of 80 x 24, and what a bare `context-bench` shows. `--help-all` has every flag."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from context_bench.cli.commands import COMMANDS

__all__ = ["HelpAll", "first_steps", "list_commands", "short_help"]

_ABOUT = "Benchmark any system that changes what a language model gets to read."

_EXAMPLES = {
    "context-bench demo": "compare seven reference systems, with no key and no network",
    "context-bench --system bm25:ratio=0.3 --system minify --dataset kv:n=200": (
        "measure compressors on generated data"
    ),
    "context-bench --proxy http://localhost:7878 --dataset needle:length=8000,n=50": (
        "measure a proxy, with your key in OPENAI_API_KEY"
    ),
}
"""Commands to try first, and what each does."""

_COMMAND_GROUPS = {
    "measure": ("demo", "memory", "plan", "run", "score", "judge-check", "conformance"),
    "look": ("report", "plot", "view", "runs", "compare", "diff", "tap"),
    "list": ("datasets", "systems", "evaluators", "metrics", "reporters", "prices"),
    "set up": ("local", "completion"),
}

_FLAGS = {
    "--proxy URL": "server that speaks OpenAI's chat completions (repeatable)",
    "--system REF": "compressor: NAME[:key=value,...] or file.py:object",
    "--dataset REF": "NAME[:key=value,...] or a .jsonl, .json, .csv, .parquet file",
    "-n N": "at most N examples of each dataset",
    "--model NAME": "model to ask for",
    "--reader URL": "server whose model answers from what each --system returned",
    "--start COMMAND": "start a proxy and record what reaches the model behind it",
    "--output REF": "table, json, csv, html or your own (--out FILE saves it)",
    "--resume": "reuse the answers of earlier runs",
    "--dry-run": "show what would be sent and what it might cost",
}
"""The flags that most people need."""


def short_help(flags: int) -> str:
    """Say what it is, with three examples, the commands and ten flags; `flags` is how many there are in all."""
    lines = [_ABOUT, ""]
    lines += [f"  {example}" for example in _EXAMPLES]
    lines += ["", "Commands (see context-bench COMMAND --help):"]
    lines += [f"  {title:<9}{', '.join(names)}" for title, names in _COMMAND_GROUPS.items()]
    lines += ["", f"The flags that most people need (--help-all: all {flags}, by group, and exit codes):"]
    lines += [f"  {flag:<17}{text}" for flag, text in _FLAGS.items()]
    return "\n".join(lines) + "\n"


def first_steps() -> str:
    """Say what to try first, for a command line without anything."""
    lines = [_ABOUT, "", "To begin:"]
    for example, text in _EXAMPLES.items():
        lines += [f"  {example}", f"      {text}"]
    lines += ["", "context-bench --help shows the commands, and the flags that most people need."]
    return "\n".join(lines) + "\n"


def list_commands() -> str:
    """List all commands with what they do."""
    width = max(map(len, COMMANDS)) + 2
    return "commands:\n" + "".join(f"  {name:{width}}{text}\n" for name, text in COMMANDS.items())


class HelpAll(argparse.Action):
    """`--help-all`: shows every flag in its group."""

    def __init__(self, option_strings: Any, dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show every flag, by group, and exit")

    def __call__(self, parser: Any, *_: Any, **__: Any) -> None:
        parser._print_message(parser.format_all(), sys.stdout)
        parser.exit()
