"""Keeps a run going when its messages cannot be written: stderr may be closed, a broken pipe or a full disk."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

__all__ = ["keep_streams_usable"]


class _Tolerant:
    """A text stream that swallows what cannot be written; in all else the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop what cannot be written."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # a pipe without a reader, a full disk, a closed file
            return len(text)

    def flush(self) -> None:
        """Flush, or do nothing where that fails."""
        try:
            self._stream.flush()
        except (OSError, ValueError):
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def keep_streams_usable() -> None:
    """Open what was closed before we started, and make sure that a note which cannot be written ends nothing.

    A closed descriptor would be given to the next file that is opened, such as the store, and get our notes.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    if sys.stderr is sys.__stderr__ or sys.__stderr__ is None:
        sys.stderr = _Tolerant(sys.stderr)
