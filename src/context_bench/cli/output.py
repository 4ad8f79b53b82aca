"""Where reports and notes go: the result to stdout or a file, everything else to stderr."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["destination", "notes", "tell"]


@contextlib.contextmanager
def destination(path: str | None) -> Iterator[Callable[[str], Any]]:
    """Where the report goes. A file is tried before the run, and replaced only when the report is whole."""
    if path is None:
        yield _print
        return
    from context_bench.errors import UsageError

    target = Path(path).resolve()  # what a link points at is replaced, not the link
    if target.exists() and not target.is_file() and not target.is_dir():  # a pipe, a device: nothing to replace
        yield partial(target.write_text, encoding="utf-8", errors="replace")
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if target.exists():
            target.open("a").close()
        draft.touch()
    except OSError as error:
        raise UsageError(f"cannot write to --out {path}: {error.strerror or error}") from error
    try:
        yield partial(draft.write_text, encoding="utf-8", errors="replace")
        if draft.stat().st_size:
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextlib.contextmanager
def notes(options: argparse.Namespace) -> Iterator[None]:
    """Warnings as one line each, and the wire when it is asked for."""
    if options.verbose:
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        logging.getLogger("context_bench").setLevel(logging.DEBUG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if options.quiet else "default")
        warnings.showwarning = lambda message, *_, **__: _say(message)
        yield


def tell(result: Any) -> None:
    """What went wrong: examples that failed for each system and how, and why the run stopped."""
    first: dict[str, str] = {}
    for row in result.rows:
        if row.error:
            first.setdefault(row.system, row.error)
    for name, values in result.summary.items():
        if values.get("num_errors"):
            failed, total = int(values["num_errors"]), int(values["num_examples"])
            why = f", first: {first[name]}" if name in first else ""
            _say(f"{name}: {failed} of {total} failed{why}")
    if result.config.get("stopped"):
        _say(f"stopped early: {result.config['stopped']}")
    if result.config.get("run"):
        _say(f"recorded as run {result.config['run']}")


def _say(message: object) -> None:
    from context_bench.errors import printable

    print(f"context-bench: {printable(str(message))}", file=sys.stderr)
