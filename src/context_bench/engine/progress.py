"""How far a run is, on one line: the rate, the time left, errors, tokens and money."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TextIO

from context_bench.engine.limits import read_number
from context_bench.engine.status import StatusLine
from context_bench.results import EvalRow
from context_bench.text.wording import count_things

__all__ = ["Progress"]

_BAR = 20


class _Part(NamedTuple):
    """A piece of the line; where it is narrow, those of the lowest weight are left out first."""

    weight: int
    text: str


class Progress:
    """Counts rows and shows rate, time left, errors, retries, tokens and money on one line of stderr.

    Rows that the store knew already are done, but say nothing about the time that the others take, and cost nothing.

    Args:
        total: Rows to expect; None when the input does not tell.
        enabled: False keeps it silent.
        doing: What is done while no row comes in, in words; empty for nothing.
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
        """Whether anything is shown."""
        return self._line.on

    def start(self) -> None:
        """Show the line from now on, also while no row comes in."""
        self._started = self._clock()
        self._line.start()

    def add(self, row: EvalRow, *, known: bool = False) -> None:
        """Count a row, and draw the line anew when it is time; `known` says that the store had it."""
        if not self._line.on:
            return
        self.rows += 1
        self.errors += row.error is not None
        if known:
            self.known += 1
            if self.known == self.rows:
                self._started = self._clock()  # the time of the others begins here
        else:
            self.retries += max(0, int(read_number(row.metadata.get("attempts")) or 1) - 1)
            self.tokens += int(read_number(row.metadata.get("total_tokens")) or row.input_tokens)
            self.spent += read_number(row.metadata.get("cost_usd")) or 0.0
        if not self._line.ticking:
            self._line.tick()

    def _share(self) -> float | None:
        return min(1.0, self.rows / self._total) if self._total else None

    def line(self, now: float, width: int | None = None) -> str:
        """Render a bar where the total is known, then the numbers; on a narrow line money and errors go last."""
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
            done = round(share * _BAR)
            parts.append(_Part(1, "█" * done + "░" * (_BAR - done)))
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
        """Erase the line, so that the result stands alone."""
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
