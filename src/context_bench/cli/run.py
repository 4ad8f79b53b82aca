"""`context-bench run bench.toml`: run a benchmark from a file of flags.

    proxy = ["http://localhost:7878"]
    system = ["passthrough", "bm25:ratio=0.3"]
    dataset = ["needle:length=8000,n=50"]
    max-workers = 16

Keys are the long flags; a list repeats the flag, and true sets it. Flags after the file are added and take
precedence.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.cli import evaluate
from context_bench.cli.commands import COMMANDS, run_parser
from context_bench.cli.flags import Parser
from context_bench.cli.recorded_command import mask_run_file
from context_bench.config import RunOptions
from context_bench.errors import UnknownName, UsageError, suggest
from context_bench.text import read_small_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def main(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="context-bench run",
        usage="context-bench run FILE.toml [flags of a run]",
        description=f"{COMMANDS['run']}; flags after the file are added",
    )
    parser.add_argument("file", metavar="FILE.toml", help="keys are the long flags of a run, such as max-workers")
    options = parser.parse_args(arguments[1:2])
    path = Path(options.file)
    try:
        text = read_small_file(path)
        values = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise UsageError(f"{path}: broken TOML: its values are nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path}: broken TOML: {error}") from error
    masked = mask_run_file(text, values)
    return evaluate.main(arguments[2:], run_file=masked, typed=arguments, from_file=_read_flags(path, values))


def _read_flags(path: Path, values: dict[str, Any]) -> dict[str, list[str]]:
    """Read the keys of a file as flags by option name; a key with the value false gives no flag."""
    known = run_parser().flags
    flags: dict[str, list[str]] = {}
    for key, value in values.items():
        name = key.replace("_", "-")
        if name not in known:
            short = _find_short(known, name)
            advice = (
                f"the key of -{name} is {short}" if short else suggest(key, known) or "docs/options.md lists all keys"
            )
            raise UsageError(f"{path}: {UnknownName('key', key, known, advice)}")
        flags[known[name].dest] = _read_flag(f"{path}: {key}", name, known[name], value)
    return flags


def _find_short(known: Mapping[str, argparse.Action], letter: str) -> str:
    """Find the key of a short flag, such as `max-examples` for `n`; empty for none."""
    return next((name for name, action in known.items() if f"-{letter}" in action.option_strings), "")


def _read_flag(where: str, name: str, action: argparse.Action, value: Any) -> list[str]:
    if action.nargs == 0 or (action.nargs == "?" and isinstance(value, bool)):
        if not isinstance(value, bool):
            raise UsageError(f"{where} must be true or false (got {value!r})")
        return [f"--{name}"] if value else []
    if name == "extra-body" and isinstance(value, dict):
        value = json.dumps(value, default=str)
    repeatable = RunOptions.declared()[action.dest].repeatable
    items = value if repeatable and isinstance(value, list) else [value]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            form = "a text or a list of texts" if repeatable else "one text or number"
            raise UsageError(f"{where} must be {form} (got {item!r})")
    return [f"--{name}={item}" for item in items]
