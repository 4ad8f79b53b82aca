"""How long `context-bench compare` takes for two stored runs of 50,000 rows, and the memory that it needs.

    python -m benchmarks.compare [ROWS]

The runs are made first, by two systems that answer at once, in a store of their own. Measured is the command in a new
process, start-up included: under 5 s, and its memory must not grow with the rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROWS = 50_000


def _make_examples(rows: int) -> Iterator[dict[str, Any]]:
    for place in range(rows):
        yield {
            "id": f"example-{place}",
            "context": f"The value of {place} is v{place}. " + "Nothing more is known of it. " * 10,
            "question": f"What is the value of {place}?",
            "answer": f"v{place}",
        }


class Forgetful:
    """Answers right, but for every so many examples."""

    def __init__(self, name: str, every: int) -> None:
        self.name, self._every = name, every

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Answer with the gold, or with nothing."""
        place = int(str(example["id"]).rpartition("-")[2])
        return {"response": "unknown" if place % self._every == 0 else f"v{place}"}


def make_runs(folder: Path, rows: int) -> None:
    """Record two runs."""
    from context_bench import evaluate

    for every in (10, 9):
        system = Forgetful("forgetful", every)
        evaluate(system, _make_examples(rows), cache_dir=folder, reuse=False, keep_rows=False, progress=False)


def measure(folder: Path) -> tuple[float, float, float, str]:
    """Return the seconds, those of the processor and the megabytes of one comparison, and what it printed."""
    command = [sys.executable, "-m", "context_bench", "compare", "last~1", "last", "--cache-dir", str(folder)]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    processor = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - start, processor, usage.ru_maxrss / 1024, text


def main() -> None:
    """Print time and memory for a tenth of the rows, and for all of them."""
    rows = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else ROWS
    for count in (rows // 10, rows):
        with tempfile.TemporaryDirectory() as folder:
            # In a process of its own: Linux counts the memory of a parent as its child's, up to the child's start.
            code = f"import pathlib, benchmarks.compare as b; b.make_runs(pathlib.Path({folder!r}), {count})"
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds, processor, megabytes, text = min(measure(Path(folder)) for _ in range(3))
            assert f"{count:,} examples are paired by id and content" in text
            took = f"{seconds:.2f} s (bar: 5), {processor:.2f} s of CPU, {megabytes:.0f} MB"
            print(f"compare of two stored runs of {count:,} rows: {took}")


if __name__ == "__main__":
    main()
