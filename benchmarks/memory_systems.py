"""Histories of 100,000 and a million tokens in the memories that ship: writing, size of the index, time of a question.

Each measurement is a process of its own, so that its memory is that of one system; with `embedding` most of that is the
tokenizer's, whose caches are full after some 100,000 tokens. The questions are those of `synthetic-memory`, which
are the same at any length.
"""

from __future__ import annotations

import json
import subprocess
import sys

_CHILD = """
import json, re, sys, time
from itertools import groupby
from pathlib import Path
from context_bench.memory.datasets.synthetic_memory import load
from context_bench.memory.probes import MemoryProbes
from context_bench.memory.systems import SYSTEMS
from context_bench.registry import import_object
name, length = sys.argv[1], int(sys.argv[2])

def measure(what="VmRSS"):
    return int(re.search(what + r":\\\\s+(\\\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

system = import_object(SYSTEMS[name])()
conversation = next(iter(load(length=length, n=1)))
turns = conversation["turns"]
system.ingest(turns[:1], user="warm-up")
system.retrieve("warm-up?", k=10, user="warm-up")
system.reset()
before, began, done = measure(), time.perf_counter(), 0
for (session, user), group in groupby(turns, key=lambda turn: (turn["session"], turn["user"])):
    batch = list(group)
    system.ingest(batch, user=user)
    done += len(batch)
    if sys.stderr.isatty():
        sys.stderr.write(f"\\r{name}: {done:,} of {len(turns):,} turns")
wrote, after = time.perf_counter() - began, measure()
times, passed = [], []
for question in conversation["questions"]:
    start = time.perf_counter()
    found = system.retrieve(question["question"], k=10, user=question["user"])
    times.append(time.perf_counter() - start)
    example = {"memory": dict(question), **{key: question[key] for key in ("answer", "answers") if key in question}}
    scores = MemoryProbes().score(example, {"retrieved": found})
    if question["probe"]["kind"] in ("fact", "update", "as_of", "multi_hop", "aggregation", "temporal"):
        passed += scores.values()
times.sort()
print(json.dumps({"turns": len(turns), "wrote": wrote, "process": after - before, "peak": measure("VmHWM"),
                  "index": system.index_bytes / 2**20, "middle": times[len(times) // 2] * 1e3,
                  "slow": times[int(len(times) * 0.95)] * 1e3, "found": sum(passed) / len(passed),
                  "text": sum(len(turn["content"]) for turn in turns) / 2**20}))
"""

LENGTHS = (100_000, 1_000_000)
NAMES = ("bm25", "embedding", "hybrid")


def measure(name: str, length: int) -> dict[str, float]:
    """Write a history of that length into one system, and ask it."""
    command = [sys.executable, "-c", _CHILD.replace("\\\\", "\\"), name, str(length)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Print a line for each system and length."""
    for name in NAMES:
        for length in LENGTHS:
            made = measure(name, length)
            per_thousand = made["wrote"] / made["turns"] * 1e6
            print(
                f"{name}, {length:,} tokens ({made['turns']:,} turns, {made['text']:.1f} MB of text): "
                f"written in {made['wrote']:.1f} s ({per_thousand:.0f} ms for 1,000 turns), index "
                f"{made['index']:.1f} MB, process {made['process']:.0f} MB more, {made['peak']:.0f} MB at its peak, "
                f"a question {made['middle']:.1f} ms, 95% within {made['slow']:.1f} ms; "
                f"needed texts found {made['found']:.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
