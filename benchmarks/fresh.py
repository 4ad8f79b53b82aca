"""The whole pipeline against a bare aiohttp loop, each measurement in a new process: what a first run costs a user.

Client and server have a core each for short contexts; long ones are not pinned, since what we do beside the requests
is meant to overlap with them. The clock runs from the call of `evaluate()` to its return, so imports are excluded.
The two sides alternate, and the ratio is the median over the pairs. Nothing else may run meanwhile; it takes two
minutes on a quiet machine:

    python -m benchmarks.fresh
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.instructions import find_environment, serving
from benchmarks.throughput import LONG, SHORT, bare, examples, ours

PAIRS = 5
MAX_LOAD = 0.5  # processes that may want to run when it begins
WAYS = ("bare", "no store", "store")
SIZES = {"2 KB": (SHORT, 5_000, True), "100 KB": (LONG, 1_000, False)}
"""Characters of a context, examples, and whether client and server are pinned."""


def run_once(way: str, url: str, size: int, count: int) -> float:
    """Return the seconds of one run in this process."""
    data = examples(count, size)
    if way == "bare":
        import aiohttp  # noqa: F401 - its import is no part of the time
    else:
        from context_bench import OpenAIProxy, evaluate  # noqa: F401
        from context_bench.evaluators import AnswerQuality  # noqa: F401
    began = time.perf_counter()
    if way == "bare":
        asyncio.run(bare(url, data))
    else:
        ours(url, data, store=way == "store")
    return time.perf_counter() - began


def measure(label: str) -> dict[str, list[float]]:
    """Run the ways in turns, each in a new process, and return their seconds."""
    size, count, pinned = SIZES[label]
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    pinned = pinned and len(cores) > 1
    with serving(core=cores[1] if pinned else None) as url:
        core = cores[0] if pinned else None
        for way in WAYS:
            _run_in_process(way, url, size, 20, core)  # modules are compiled before the clock runs
        for _ in range(PAIRS):
            for way in WAYS:
                taken[way].append(_run_in_process(way, url, size, count, core))
    return taken


def _run_in_process(way: str, url: str, size: int, count: int, core: int | None) -> float:
    """Return the seconds of one run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.fresh", way, url, str(size), str(count)]
    command += [] if core is None else [str(core)]
    folder = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=folder, env=find_environment(), stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print the ratios to a bare loop."""
    if hasattr(os, "getloadavg") and (load := os.getloadavg()[0]) > MAX_LOAD:
        print(f"the machine is not quiet (load {load:.1f}): these ratios say little", file=sys.stderr)
    for label in SIZES:
        taken = measure(label)
        for way in WAYS[1:]:
            ratios = [bare_seconds / own for bare_seconds, own in zip(taken["bare"], taken[way])]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            median = statistics.median(ratios)
            print(f"fresh, {label}, {way}: {median:.2f} times a bare aiohttp loop (median of {PAIRS} pairs, {spread})")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        if len(sys.argv) > 5:
            os.sched_setaffinity(0, {int(sys.argv[5])})
        print(run_once(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    else:
        main()
