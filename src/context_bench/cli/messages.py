"""Messages to the user on stderr: one sentence each, wrapped if stderr is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

MIN_COLUMNS = 20  # a terminal that reports fewer columns is not believed


def say(message: object) -> None:
    from context_bench.errors import printable

    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""  # there may be a progress line
    text = wrap_message(f"context-bench: {printable(str(message))}")
    sys.stderr.write(f"{clear}{text}\n")  # one write call, as a progress line may be drawn at any moment
    sys.stderr.flush()


def wrap_message(text: str) -> str:
    """Wrap a text for a terminal on stderr; indented lines are commands to copy, and stay whole."""
    if not sys.stderr.isatty():
        return text
    from textwrap import fill

    width = _find_width()
    return "\n".join(
        line
        if line.startswith(" ")
        else fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )


def _find_width() -> int:
    """Return the width of the terminal on stderr, or 80 if unknown; stdout may be a file."""
    try:
        width = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        width = 0
    return width if width >= MIN_COLUMNS else 80


@contextmanager
def show_messages(*, quiet: bool = False, verbose: bool = False) -> Iterator[None]:
    """Show each warning once, and with `verbose` also requests and replies."""
    with show_warnings(quiet=quiet), _show_requests() if verbose else nullcontext():
        yield


@contextmanager
def show_warnings(*, quiet: bool = False) -> Iterator[None]:
    import warnings

    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            say(message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "default")
        warnings.showwarning = show
        yield


@contextmanager
def _show_requests() -> Iterator[None]:
    import logging

    logger, handler = logging.getLogger("context_bench"), logging.StreamHandler(sys.stderr)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
