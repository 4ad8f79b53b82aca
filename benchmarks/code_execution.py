"""What running one program costs, as a ratio to the bare start of an interpreter (`python -I -c pass`).

    python -m benchmarks.code_execution [--rounds 30]

Everything is measured in turns within one run, so that whatever else the machine does falls on all alike.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from context_bench.errors import UsageError
from context_bench.evaluators import CodeExecution
from context_bench.sandbox import find_isolation

EXAMPLE = {"context": "def add(a, b):\n", "test": "def check(c):\n    assert c(1, 2) == 3\n", "entry_point": "add"}
REPLY = {"response": "    return a + b\n"}


def _scoring(sandbox: str) -> Callable[[], None]:
    evaluator = CodeExecution(sandbox=sandbox)

    def score() -> None:
        if evaluator.score(EXAMPLE, REPLY) != {"pass_at_1": 1.0}:
            raise SystemExit("the program did not pass: nothing was measured")

    return score


def _contestants() -> dict[str, Callable[[], object]]:
    bare = [sys.executable, "-I", "-c", "pass"]
    found: dict[str, Callable[[], object]] = {"python -I -c pass": lambda: subprocess.run(bare, check=True)}
    try:
        find_isolation("auto")
        found["sandbox=bubblewrap"] = _scoring("bubblewrap")
    except UsageError as error:
        print(f"left out: {error}", file=sys.stderr)
    found["sandbox=none"] = _scoring("none")
    return found


def main() -> None:
    """Measure in turns, and print medians and ratios."""
    parser = argparse.ArgumentParser(description="Cost of one program, as a ratio to an interpreter's start.")
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    contestants = _contestants()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    base = statistics.median(seconds["python -I -c pass"])
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:20} {median * 1000:7.1f} ms   {median / base:5.2f} x")


if __name__ == "__main__":
    main()
