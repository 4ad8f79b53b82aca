"""Processes as the kernel shows them under /proc: who descends from whom, and what one of them holds."""

from __future__ import annotations

import ctypes
import os
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Process", "Sample", "Watch", "adopt_orphans", "find_slope", "list_descendants", "measure_growth"]

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Process:
    """One process: its id, its parent's, and its state as one letter (Z is a zombie)."""

    pid: int
    parent: int
    state: str
    name: str


@dataclass(frozen=True)
class Sample:
    """What a run held at one moment."""

    seconds: float
    rss_mb: float
    fds: int
    threads: int
    children: int
    proxy_rss_mb: float
    proxy_fds: int


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that none can hide."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def _list_processes() -> list[Process]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                text = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
                name, _, rest = text.partition(" (")[2].rpartition(") ")
                state, parent = rest.split()[:2]
                found.append(Process(int(entry), int(parent), state, name))
    return found


def list_descendants(root: int) -> list[Process]:
    """List the processes below one, children before grandchildren."""
    below: dict[int, list[Process]] = {}
    for process in _list_processes():
        below.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [root]
    for pid in queue:
        children = below.get(pid, [])
        found += children
        queue += [child.pid for child in children]
    return found


def _read_size(pid: int) -> tuple[float, int]:
    """Read the resident memory in MB and the number of open files."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * _PAGE / 2**20, len(os.listdir(f"/proc/{pid}/fd"))


class Watch:
    """Samples one process and those below it, in a thread, until it ends.

    Args:
        pid: The process.
        every: Seconds between two samples.
        proxy: What the command line of the proxy below it contains.
    """

    def __init__(self, pid: int, every: float, proxy: str) -> None:
        self.samples: list[Sample] = []
        self.zombies: list[str] = []
        self._pid, self._every, self._proxy = pid, every, proxy.encode()
        self._dead: set[int] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_over, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no more samples."""
        self._over.set()
        self._thread.join()

    def _sample_until_over(self) -> None:
        started = time.monotonic()
        while not self._over.wait(self._every):
            with suppress(OSError):  # it has ended
                self._take(time.monotonic() - started)

    def _take(self, seconds: float) -> None:
        below = list_descendants(self._pid)
        dead = {process.pid: process.name for process in below if process.state == "Z"}
        # A child that has just ended is one until its parent looks; one that is still there at the next sample is left.
        self.zombies += [f"{name} ({pid}) at {seconds:.0f} s" for pid, name in dead.items() if pid in self._dead]
        self._dead = set(dead)
        rss, fds = _read_size(self._pid)
        threads = len(os.listdir(f"/proc/{self._pid}/task"))
        proxy = (0.0, 0)
        for process in below:
            with suppress(OSError):
                if self._proxy in Path(f"/proc/{process.pid}/cmdline").read_bytes() and not self._is_guardian(process):
                    proxy = _read_size(process.pid)
        self.samples.append(Sample(seconds, rss, fds, threads, len(below), *proxy))

    def _is_guardian(self, process: Process) -> bool:
        return process.parent == self._pid

    def to_dicts(self) -> list[dict[str, Any]]:
        """Give the samples as plain data."""
        return [asdict(sample) for sample in self.samples]


def find_slope(times: Sequence[float], values: Sequence[float]) -> float:
    """Find the slope in units a minute by the median of all pairs' slopes (Theil-Sen), which no single peak moves."""
    step = max(1, len(times) // 200)
    points = list(zip(times[::step], values[::step], strict=True))
    slopes = [
        (later[1] - earlier[1]) / (later[0] - earlier[0]) * 60
        for place, earlier in enumerate(points)
        for later in points[place + 1 :]
    ]
    return statistics.median(slopes) if slopes else 0.0


def measure_growth(values: Sequence[float]) -> float:
    """Give the median of the last quarter less that of the first."""
    quarter = max(1, len(values) // 4)
    return statistics.median(values[-quarter:]) - statistics.median(values[:quarter]) if values else 0.0
