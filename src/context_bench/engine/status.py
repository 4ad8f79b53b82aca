"""A line on stderr that tells how far something is, in the manner that fits whoever reads it.

On a terminal the line is drawn in place and taken away at the end. In a notebook it is replaced less often, and its
last state stays. In a log (stderr is neither) there is a plain line now and then, and none for what is short.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TextIO

__all__ = ["StatusLine"]

_CLEAR = "\r\x1b[2K"
_LOG_WIDTH = 200


class _Manner(NamedTuple):
    """When a line is due: `first` seconds after the start, then `every` so many, or `step` of the whole further."""

    kind: str
    first: float
    every: float
    step: float = 2.0
    """More than the whole: by time alone."""
    least: float = 0.0
    """Seconds between two lines, however far it got meanwhile."""


_TERMINAL = _Manner("terminal", first=1.0, every=0.1)
_NOTEBOOK = _Manner("notebook", first=1.5, every=1.0)
_LOG = _Manner("log", first=10.0, every=30.0, step=0.1, least=5.0)


class StatusLine:
    """Shows a text that changes, at a rate that does not disturb.

    Used as a context manager, or with `start` and `close`, it shows the text even when nothing calls `tick`.

    Args:
        text: Makes the line, no longer than so many columns.
        share: How much of the whole is done, if that is known.
        enabled: False keeps it silent.
    """

    def __init__(
        self,
        text: Callable[[int], str],
        share: Callable[[], float | None] = lambda: None,
        *,
        enabled: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._text, self._share, self._clock = text, share, clock
        self._stream = sys.stderr if stream is None else stream
        self.on = enabled and self._stream is not None
        self._manner = _manner_for(self._stream)
        self._due_at = clock() + self._manner.first
        self._drawn_at, self._drawn_share, self._drawn = float("-inf"), 0.0, ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None

    def __enter__(self) -> StatusLine:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ticking(self) -> bool:
        """Whether it draws by itself, so that nobody needs to call `tick`."""
        return self._ticker is not None

    def start(self) -> None:
        """Draw from now on whenever it is due, also while nothing happens."""
        if self.on and self._ticker is None:
            self._ended.clear()
            self._ticker = threading.Thread(target=self._tick_on, name="context-bench-status", daemon=True)
            self._ticker.start()

    def _tick_on(self) -> None:
        while not self._ended.wait(min(self._manner.every, 1.0)):
            self.tick()

    def tick(self) -> None:
        """Draw the line when it is time."""
        if not self.on:
            return
        now = self._clock()
        if not self._is_due(now):
            return
        with self._lock:
            if self._is_due(now):  # the other thread may have been quicker
                self._due_at = now + self._manner.every
                self._drawn_at, self._drawn_share = now, self._share() or 0.0
                self._draw()

    def _is_due(self, now: float) -> bool:
        """Whether time is up, or so much is done since the last line that the next need not wait."""
        if now >= self._due_at:
            return True
        if self._manner.step > 1 or self._drawn_at == float("-inf") or now - self._drawn_at < self._manner.least:
            return False
        return (self._share() or 0.0) - self._drawn_share >= self._manner.step

    def _draw(self) -> None:
        if self._manner.kind == "terminal":
            self._drawn = self._text(shutil.get_terminal_size().columns - 1)
            self._write(_CLEAR + self._drawn)
        elif self._manner.kind == "notebook":
            before, self._drawn = self._drawn, self._text(_LOG_WIDTH)
            self._write("\r" + self._drawn.ljust(len(before)))
        else:
            self._drawn = self._text(_LOG_WIDTH)
            self._write(f"context-bench: {self._drawn}\n")

    def hide(self) -> None:
        """Make room for other output; the line comes back when it is due again."""
        with self._lock:
            if self._drawn and self._manner.kind == "terminal":
                self._write(_CLEAR)
            elif self._drawn and self._manner.kind == "notebook":
                self._draw()
                self._write("\n")
            self._drawn = ""

    def close(self) -> None:
        """Stop drawing; the line of a terminal is erased, so that the result stands alone."""
        ticker, self._ticker = self._ticker, None
        self._ended.set()
        if ticker is not None and ticker is not threading.current_thread():
            ticker.join()
        self.hide()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # nobody reads it any more: what is shown must not end what is done
            self.on = False


def _manner_for(stream: TextIO) -> _Manner:
    if stream.isatty():
        return _TERMINAL
    # The kernel of a notebook hands out a stream of its own, which says that it is no terminal.
    return _NOTEBOOK if type(stream).__module__.partition(".")[0] == "ipykernel" else _LOG
