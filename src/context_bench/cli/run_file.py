"""`context-bench run bench.toml`: the flags of a run in a file, to be kept, shared and run again.

    proxy = ["http://localhost:7878"]
    system = ["passthrough", "bm25:ratio=0.3"]
    dataset = ["needle:length=8000,n=50"]
    max-workers = 16

Keys are the long flags; a list repeats its flag, true sets it. Flags after the file are added to those
in it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from context_bench.cli import COMMANDS, run
from context_bench.cli.parser import Parser
from context_bench.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run what a file says."""
    parser = Parser(prog="context-bench run", description=f"{COMMANDS['run']}; flags after the file are added to it")
    parser.add_argument("file", metavar="FILE.toml", help="keys are the long flags of a run, such as max-workers")
    options, more = parser.parse_known_args(arguments[1:])
    path = Path(options.file)
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{path}: broken TOML: {error}") from error
    return run.main([*_flags(path, values), *more], run_file=text)


def _flags(path: Path, values: dict[str, Any]) -> list[str]:
    flags: list[str] = []
    for key, value in values.items():
        flag = f"--{key.replace('_', '-')}"
        if isinstance(value, bool):
            flags += [flag] if value else []
        elif key in ("extra-body", "extra_body") and isinstance(value, dict):
            import json

            flags += [flag, json.dumps(value)]
        elif isinstance(value, dict):
            raise UsageError(f"{path}: {key!r} is a table; the keys of a run file are flags with values")
        else:
            for item in value if isinstance(value, list) else [value]:
                flags.append(f"{flag}={item}")
    return flags
