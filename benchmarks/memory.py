"""Memory of a run of 50,000 examples from a file, for each further example, and without keeping rows.

Each measurement is a process of its own; its peak is what the operating system reports (on Linux by /proc: there
`getrusage` also counts what the process was started from).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.mock_server import serving
from benchmarks.throughput import examples

_CHILD = """
import re, resource, sys
from pathlib import Path
from context_bench import OpenAIProxy, evaluate
from context_bench.datasets import FileDataset
from context_bench.evaluators import AnswerQuality
url, file, folder, count, keep = sys.argv[1:]
evaluate(OpenAIProxy(url, model="mock"), FileDataset(file), evaluators=[AnswerQuality()], max_examples=int(count),
         max_workers=64, cache_dir=folder, keep_rows=keep == "keep", progress=False)
status = Path("/proc/self/status")
found = re.search(r"VmHWM:\\s+(\\d+)", status.read_text()) if status.exists() else None
print((int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024)
"""


def peak(url: str, file: Path, count: int, keep: str) -> float:
    """The peak of one run, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _CHILD, url, str(file), folder, str(count), keep]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print the peaks."""
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        file = Path(folder) / "data.jsonl"
        with file.open("w", encoding="utf-8") as out:
            for example in examples(50_000):
                out.write(json.dumps(example) + "\n")
        small, large = peak(url, file, 10_000, "keep"), peak(url, file, 50_000, "keep")
        flat_small, flat_large = peak(url, file, 10_000, "drop"), peak(url, file, 50_000, "drop")
    print(f"memory: {large:.0f} MB at 50,000 examples, {(large - small) * 1024 / 40_000:.2f} KB for each further one")
    print(f"memory without rows: {flat_small:.0f} MB at 10,000 examples, {flat_large:.0f} MB at 50,000")


if __name__ == "__main__":
    main()
