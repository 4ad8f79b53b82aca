"""A line on the terminal that tells how far a run is. Silent where nobody looks."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from context_bench.engine.limits import known_number
from context_bench.results import EvalRow

__all__ = ["Progress"]

_FIRST_AFTER = 1.0
_EVERY = 0.1


class Progress:
    """Counts rows and shows rate, time left, errors, retries, tokens and money on one line of stderr.

    Args:
        total: Rows to expect; None when the input does not tell.
        enabled: False keeps it silent; it is silent anyway when the stream is no terminal.
    """

    def __init__(
        self,
        total: int | None,
        enabled: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self.on = enabled and self._stream.isatty()
        self._clock = clock
        self._total = total
        self._started = clock()
        self._shown_at = self._started + _FIRST_AFTER - _EVERY
        self._drawn = False
        self.rows = self.errors = self.retries = self.tokens = 0
        self.spent = 0.0

    def add(self, row: EvalRow) -> None:
        """Count a row, and draw the line anew when it is time."""
        if not self.on:
            return
        self.rows += 1
        self.errors += row.error is not None
        self.retries += max(0, int(known_number(row.metadata.get("attempts")) or 1) - 1)
        self.tokens += int(known_number(row.metadata.get("total_tokens")) or row.input_tokens)
        self.spent += known_number(row.metadata.get("cost")) or 0.0
        now = self._clock()
        if now - self._shown_at >= _EVERY:
            self._shown_at = now
            self._draw(now)

    def _draw(self, now: float) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[2K" + self.line(now)[:width])
        self._stream.flush()
        self._drawn = True

    def line(self, now: float) -> str:
        """What is shown: a bar where the total is known, and the numbers."""
        seconds = max(now - self._started, 1e-9)
        rate = self.rows / seconds
        parts = []
        if self._total:
            share = min(1.0, self.rows / self._total)
            done = round(share * 20)
            parts.append(f"{'█' * done}{'░' * (20 - done)} {share:4.0%}  {self.rows:,}/{self._total:,}")
        else:
            parts.append(f"{self.rows:,} rows")
        parts.append(f"{rate:,.1f}/s")
        if self._total and rate:
            parts.append(f"{_duration((self._total - self.rows) / rate)} left")
        parts.append(f"{self.errors:,} errors" if self.errors != 1 else "1 error")
        if self.retries:
            parts.append(f"{self.retries:,} retries")
        parts.append(f"{_short(self.tokens)} tokens")
        if self.spent:
            parts.append(f"${self.spent:.2f}")
        return "  ".join(parts)

    def close(self) -> None:
        """Take the line away, so that the result stands alone."""
        if self._drawn:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._drawn = False


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
