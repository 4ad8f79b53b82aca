"""Bundling and verifying 100,000 rows of 2 KB: CPU seconds and the most memory, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

ROWS, CHARS = 100_000, 2_000


def _record(folder: str) -> None:
    from context_bench import evaluate

    words = ["".join(letters) for letters in product("bdklmnrst", "aeiou", "dgklmnrt", "aeiou")]

    def make(number: int) -> dict[str, object]:
        filler = " ".join(random.Random(number).choices(words, k=CHARS // 5))
        context = f"Item {number} has the code c{number}. {filler}"[:CHARS]
        return {"id": number, "context": context, "question": f"code of item {number}?", "answer": f"c{number}"}

    evaluate(
        lambda example: {"response": f"c{example['id']}"},
        (make(number) for number in range(ROWS)),
        cache_dir=folder,
        keep_rows=False,
        progress=False,
    )


def _bundle(folder: str) -> None:
    from context_bench.claims.bundle import write_bundle
    from context_bench.store import Store

    with Store(folder, readonly=True, create=False) as store:
        write_bundle(store, store.run("last"), Path(folder, "run.ctxb"))


def _verify(folder: str) -> None:
    from context_bench.claims.verify import verify_bundle

    found = verify_bundle(Path(folder, "run.ctxb"))
    assert found.code == 0, found.render()


def _measure(work: Callable[[str], None], folder: str, sink: object) -> None:
    work(folder)
    used = resource.getrusage(resource.RUSAGE_SELF)
    sink.send((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))  # type: ignore[attr-defined]


def main() -> None:
    """Print CPU seconds and megabytes of each step."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for work in (_record, _bundle, _verify):
            ours, theirs = context.Pipe()
            process = context.Process(target=_measure, args=(work, folder, theirs))
            started = time.perf_counter()
            process.start()
            process.join()
            seconds, megabytes = ours.recv()
            wall = time.perf_counter() - started
            print(f"{work.__name__[1:]}: {seconds:.1f} s of CPU ({wall:.1f} s), at most {megabytes:.0f} MB")
        size = Path(folder, "run.ctxb").stat().st_size
        print(f"the bundle has {size / 1e6:.0f} MB for {ROWS:,} rows of {CHARS:,} characters")


if __name__ == "__main__":
    main()
