"""What a cluster costs and brings: a real one of two nodes on this machine, each with one worker.

    python -m benchmarks.scale [EXAMPLES]

Prints the cost of an example by stage, the speed of two workers over one, the overhead beside a system of one
millisecond, and the memory that EXAMPLES (200,000 by default) of `passthrough` take on the driver and on a worker.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from context_bench import EvalResult, RayEngine, evaluate

NODE = {"num_cpus": 1, "object_store_memory": 200 * 2**20}
EXAMPLES = 200_000
ROUNDS = 3


class Spin:
    """Keeps a processor busy for about so many milliseconds."""

    def __init__(self, milliseconds: float, rounds_a_millisecond: int) -> None:
        self.name = f"spin-{milliseconds:g}ms"
        self.rounds = int(milliseconds * rounds_a_millisecond)

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Hash the context over and over."""
        digest = example["context"].encode()
        for _ in range(self.rounds):
            digest = hashlib.sha256(digest).digest()
        return {"response": digest.hex()}


class Wait:
    """Does nothing for so many milliseconds: what is left of the speed is the engine's alone."""

    def __init__(self, milliseconds: float) -> None:
        self.name, self.seconds = f"wait-{milliseconds:g}ms", milliseconds / 1000

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Sleep."""
        time.sleep(self.seconds)
        return {"response": example["context"][:20]}


def examples(count: int) -> Iterator[dict[str, Any]]:
    """Make examples of about 100 tokens."""
    for k in range(count):
        yield {"id": k, "context": f"box {k} holds {k * 7919} coins. " * 10, "question": "how many?", "answer": str(k)}


def calibrate() -> int:
    """Count the rounds of hashing in a millisecond of this process."""
    started, digest, rounds = time.process_time(), b"", 200_000
    for _ in range(rounds):
        digest = hashlib.sha256(digest).digest()
    return max(1, int(rounds / (time.process_time() - started) / 1000))


def span(result: EvalResult) -> float:
    """Seconds from the first start to the last return."""
    return next(iter(result.timing.values()))


def overhead(result: EvalResult, workers: int) -> float:
    """Milliseconds of an example that are not its system's own."""
    own = sum(row.latency for row in result.rows)
    return 1000 * (span(result) * workers - own) / len(result.rows)


def peak(pid: int | str) -> float:
    """Megabytes that a process has had at most."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def worker_peaks() -> list[float]:
    """Megabytes of each worker that is there now."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().startswith(b"ray::Worker"):
                found.append(peak(folder.name))
        except (OSError, StopIteration):
            continue
    return found


def measure_stages(run: Callable[..., EvalResult]) -> None:
    """Print what an example of a system that does nothing costs, by stage."""
    count, data = 5_000, list(examples(5_000))
    started = time.perf_counter()
    packed = pickle.dumps([(0, (each,)) for each in data], protocol=5)
    pickle.loads(packed)
    wire = (time.perf_counter() - started) / count * 1e6
    for name, more in (("no store", {}), ("with its row in a store", {"cache_dir": ".context-bench/scale"})):
        here = evaluate("passthrough", data, progress=False, reuse=False, **more)
        print(f"driver alone, {name}: {span(here) / count * 1e6:.0f} µs an example (look-up, call, score, count, row)")
    there = run("passthrough", data, workers=2)
    print(f"pickle and unpickle of an example: {wire:.0f} µs, {len(packed) / count:.0f} bytes")
    print(f"on two workers: {span(there) / count * 1e6:.0f} µs an example, {count / span(there):,.0f} a second")


def measure_workers(run: Callable[..., EvalResult]) -> None:
    """Print how much faster two workers are than one, and what the engine adds to a millisecond."""
    rounds = calibrate()
    for system, count in ((Spin(20, rounds), 400), (Wait(20), 400)):
        # The best of several rounds, one after the other: a busy machine makes any of them slower, and none faster.
        spans = [
            [span(run(system, list(examples(count)), workers=workers)) for workers in (1, 2)] for _ in range(ROUNDS)
        ]
        one, two = map(min, zip(*spans))
        print(
            f"{system.name}: {count / one:.1f}/s on one worker, {count / two:.1f}/s on two: {one / two:.2f} times",
            flush=True,
        )
    for small in (Spin(1, rounds), Wait(1)):
        best = min(overhead(run(small, list(examples(5_000)), workers=1), 1) for _ in range(ROUNDS))
        print(f"{small.name}: {best:.3f} ms an example beside the system", flush=True)


def measure_memory(run: Callable[..., EvalResult], count: int) -> None:
    """Print the memory of a long run, at several moments of it."""
    workers: list[float] = []

    def watched() -> Iterator[dict[str, Any]]:
        for place, example in enumerate(examples(count)):
            if place and place % (count // 10) == 0:
                workers[:] = worker_peaks() or workers
                shown = f"{max(workers, default=float('nan')):.0f}"
                print(f"  {place:,} examples: driver {peak(os.getpid()):.0f} MB, worker {shown} MB", flush=True)
            yield example

    started = time.perf_counter()
    run("passthrough", watched(), workers=2, keep_rows=False, cache_dir=".context-bench/scale-memory")
    seconds = time.perf_counter() - started
    print(f"{count:,} examples in {seconds:.0f} s: {count / seconds:,.0f} a second, rows in the store alone")


def main() -> None:
    """Print every measurement."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # on Linux it keeps every node on loopback
    from ray.cluster_utils import Cluster

    count = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else EXAMPLES
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        cluster.add_node(**NODE)

        def run(system: Any, data: Any, workers: int, **more: Any) -> EvalResult:
            return evaluate(system, data, progress=False, engine=RayEngine(cluster.address, workers=workers), **more)

        measure_stages(run)
        measure_workers(run)
        measure_memory(run, count)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
