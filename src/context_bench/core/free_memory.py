"""Returns memory to the system after huge texts: the C library keeps much of what a text of many megabytes took.

What held the text (a row on its way to the store, a record of the tap) lets go of it at moments of its own, so that one
look is not enough.
"""

from __future__ import annotations

import asyncio
import ctypes
from concurrent.futures import Executor

__all__ = ["FreeMemory", "return_memory"]

HUGE_TEXT = 1_000_000
"""Characters of a text after which memory is returned, once nothing holds it any more."""

_LOOKS = (1.0, 4.0, 12.0, 30.0)
"""Seconds after a huge text at which memory is returned."""


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` by their numbers in malloc.h."""

_LARGE_BLOCK = 4 * 1024 * 1024
"""Bytes from which a block of memory goes back to the system as soon as it is free."""


def return_memory() -> None:
    """Return free memory to the system, and have large blocks returned at once from now on.

    The C library of GNU does so at first, but takes the first large block that is freed as a sign that more will be
    wanted: it then keeps up to 64 MB for each thread, which nobody can make it return.
    """
    try:
        library = ctypes.CDLL(None)
        trim, set_option = library.malloc_trim, library.mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    set_option(_MMAP_THRESHOLD, _LARGE_BLOCK)
    set_option(_TRIM_THRESHOLD, _LARGE_BLOCK)
    trim(0)


class FreeMemory:
    """Returns memory some time after the last huge text, and at the end.

    Args:
        threads: Where it is done, as it takes milliseconds.
    """

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._timers: list[asyncio.TimerHandle] = []

    def note_text(self, text: str) -> None:
        """Note a text that was worked on; of a huge one memory will be left."""
        if len(text) >= HUGE_TEXT:
            self._cancel()
            loop = asyncio.get_running_loop()
            self._timers = [loop.call_later(seconds, self._threads.submit, return_memory) for seconds in _LOOKS]

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def close(self) -> None:
        """Return what is left now; nothing is done later."""
        if self._timers:
            self._cancel()
            self._timers = []
            return_memory()
