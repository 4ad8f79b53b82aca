"""Locks of runs that are under way: each ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows: nobody is kept from removing a run that is under way
    fcntl = None  # type: ignore[assignment]

__all__ = ["RunningMark", "is_running"]


def _find_file(directory: Path, number: int) -> Path:
    return directory / f"run-{number}.lock"


class RunningMark:
    """Shows other processes that a run is under way, until it is released.

    Args:
        directory: Of the store.
        number: Of the run.
    """

    def __init__(self, directory: Path, number: int) -> None:
        self._path = _find_file(directory, number)
        self._file: IO[bytes] | None = None
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks, or no room: the run goes on without
                self._file = self._path.open("wb")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Release the lock at the end of the run."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._file.close()
            self._file = None


def is_running(directory: Path, number: int, *, clear: bool = True) -> bool:
    """Whether a process is at work on a run; the mark of one that was killed is cleared away, unless told not to."""
    path = _find_file(directory, number)
    if fcntl is None or not path.exists():
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if clear:
                path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
