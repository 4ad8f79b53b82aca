"""The progress of a run, and the status line on stderr that shows it.

On a terminal the line is drawn in place and erased at the end. In a notebook it is drawn less often, its last state
stays, and it goes to stdout, because notebooks show stderr in red. A log (stderr is neither a terminal nor a notebook)
gets a plain line now and then, or none if the work is short.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TextIO

from context_bench.monitors.limits import read_number
from context_bench.monitors.monitor import Monitor
from context_bench.results import EvalRow
from context_bench.text import count_things

if TYPE_CHECKING:
    from context_bench.core.call import Outcome
    from context_bench.core.row import Job


_CLEAR = "\r\x1b[2K"
_LOG_WIDTH = 200


class _Manner(NamedTuple):
    """When a line is due: `first` seconds after the start, then every `every` seconds or `step` of the total."""

    kind: str
    first: float
    every: float
    step: float = 2.0  # more than the total: by time alone
    least: float = 0.0  # minimum seconds between two lines


_TERMINAL = _Manner("terminal", first=1.0, every=0.1)
_NOTEBOOK = _Manner("notebook", first=1.5, every=1.0)
_LOG = _Manner("log", first=10.0, every=30.0, step=0.1, least=5.0)


class StatusLine:
    """Shows a changing text at a moderate rate.

    As a context manager, or between `start` and `close`, it draws even if nothing calls `tick`. `text` makes the line
    for a number of columns; `share` returns the finished share, if known.
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
        self._stream = choose_stream() if stream is None else stream
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
        """Whether it draws by itself, without calls of `tick`."""
        return self._ticker is not None

    def start(self) -> None:
        """Draw from now on whenever it is due, even if nothing calls `tick`."""
        if self.on and self._ticker is None:
            self._ended.clear()
            self._ticker = threading.Thread(target=self._tick_on, name="context-bench-status", daemon=True)
            self._ticker.start()

    def _tick_on(self) -> None:
        while not self._ended.wait(min(self._manner.every, 1.0)):
            self.tick()

    def tick(self) -> None:
        """Draw the line if it is due."""
        if not self.on:
            return
        now = self._clock()
        if not self._is_due(now):
            return
        with self._lock:
            if self._is_due(now):  # another thread may have drawn it
                self._due_at = now + self._manner.every
                self._drawn_at, self._drawn_share = now, self._share() or 0.0
                self._draw()

    def _is_due(self, now: float) -> bool:
        """Whether enough time has passed, or enough work was done, since the last line."""
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
        """Stop drawing, and erase the line on a terminal."""
        ticker, self._ticker = self._ticker, None
        self._ended.set()
        if ticker is not None and ticker is not threading.current_thread():
            ticker.join()
        self.hide()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the reader is gone: a failed status line must not end the run
            self.on = False


def choose_stream() -> TextIO:
    """Choose the stream for status: stderr, or stdout in a notebook, which shows stderr in red."""
    return sys.stdout if _manner_for(sys.stderr) is _NOTEBOOK else sys.stderr


def _manner_for(stream: TextIO) -> _Manner:
    if stream.isatty():
        return _TERMINAL
    # A notebook's kernel has its own stream, which says that it is not a terminal.
    return _NOTEBOOK if type(stream).__module__.partition(".")[0] == "ipykernel" else _LOG


_BAR_WIDTH = 20


class _Part(NamedTuple):
    """A part of the line; on narrow terminals, parts with the lowest weight are left out first."""

    weight: int
    text: str


class Progress(Monitor):
    """Counts rows and shows rate, time left, errors, retries, tokens and money on one line of stderr.

    Stored rows count as done, but affect neither the time estimate nor the spending. `total` is None if unknown;
    `doing` returns the text to show while no rows arrive.
    """

    def __init__(
        self,
        total: int | None,
        enabled: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        doing: Callable[[], str] = str,
    ) -> None:
        self._clock, self._total, self._doing = clock, total, doing
        self._started = clock()
        self._line = StatusLine(
            lambda width: self.line(clock(), width), self._share, enabled=enabled, stream=stream, clock=clock
        )
        self.rows = self.known = self.errors = self.retries = self.tokens = 0
        self.spent = 0.0

    @property
    def on(self) -> bool:
        return self._line.on

    def start(self) -> None:
        """Show the line from now on, even while no rows arrive."""
        self._started = self._clock()
        self._line.start()

    def add(self, row: EvalRow, *, known: bool = False) -> None:
        """Count a row, and draw the line if it is due; `known` means that the store had it."""
        if not self._line.on:
            return
        self.rows += 1
        self.errors += row.error is not None
        if known:
            self.known += 1
            if self.known == self.rows:
                self._started = self._clock()  # start measuring time here
        else:
            self.retries += max(0, int(read_number(row.metadata.get("attempts")) or 1) - 1)
            self.tokens += int(read_number(row.metadata.get("total_tokens")) or row.input_tokens)
            self.spent += read_number(row.metadata.get("cost_usd")) or 0.0
        if not self._line.ticking:
            self._line.tick()

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> None:  # noqa: ARG002
        self.add(row, known=outcome.known)

    def _share(self) -> float | None:
        return min(1.0, self.rows / self._total) if self._total else None

    def line(self, now: float, width: int | None = None) -> str:
        """Render a bar if the total is known, then the numbers; money and errors stay longest on a narrow line."""
        parts = self._parts(now)
        while width is not None and len(parts) > 1 and len(_join(parts)) > width:
            parts.remove(min(parts, key=lambda part: part.weight))
        return _join(parts)[:width]

    def _parts(self, now: float) -> list[_Part]:
        fresh = self.rows - self.known
        rate = fresh / max(now - self._started, 1e-9)
        parts = []
        share = self._share()
        if share is not None:
            done = round(share * _BAR_WIDTH)
            parts.append(_Part(1, "█" * done + "░" * (_BAR_WIDTH - done)))
            parts.append(_Part(5, f"{share:4.0%}"))
            parts.append(_Part(7, f"{self.rows:,}/{self._total:,}"))
        else:
            parts.append(_Part(7, count_things(self.rows, "row")))
        if self.known:
            parts.append(_Part(0, f"{self.known:,} known"))
        parts.append(_Part(2, f"{rate:,.1f}/s"))
        if self._total and fresh:
            parts.append(_Part(6, f"{_duration(max(0, self._total - self.rows) / rate)} left"))
        parts.append(_Part(8, f"{self.errors:,} errors" if self.errors != 1 else "1 error"))
        if self.retries:
            parts.append(_Part(3, f"{self.retries:,} retries" if self.retries != 1 else "1 retry"))
        parts.append(_Part(4, f"{_short(self.tokens)} tokens"))
        if self.spent:
            parts.append(_Part(9, f"${self.spent:,.2f}"))
        if doing := self._doing():
            parts.append(_Part(6, doing))
        return parts

    def close(self) -> None:
        self._line.close()


def _join(parts: list[_Part]) -> str:
    return "  ".join(part.text for part in parts)


def _short(number: float) -> str:
    for unit in ("", "k", "M"):
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}G"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
