"""The viewer and the page: how soon a store of a million rows is on the screen, how much memory it takes, what ten
viewers cost a run, how the memory of a report grows, and how fast 50,000 rows open in a browser.

`python -m benchmarks.view [ROWS]`; the browser is Chromium by Playwright, and without it that part is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from context_bench.results import EvalResult, EvalRow
from context_bench.store import Store
from context_bench.store.backend import Keys, StoredAnswer

CHROMIUM = Path(os.environ.get("CONTEXT_BENCH_CHROMIUM", "/usr/bin/chromium"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SYSTEMS = [f"system-{number}" for number in range(5)]


def make_store(folder: Path, rows: int, context: int) -> str:
    """Fill a store with one finished run of so many rows, each with a context of so many characters; its id."""
    config = {"systems": SYSTEMS, "metrics": [], "score_field": "score", "datasets": {"made": rows // 5}}
    words = ("the river runs past an old mill where nobody grinds corn any more " * (context // 60 + 1))[:context]
    with Store(folder) as store:
        run = store.start_run(config)
        for place in range(rows):
            number = place // len(SYSTEMS)
            example = {"id": f"e{number}", "context": words, "question": f"Which code has number {number}?"}
            text = words[: context // 2]
            row = EvalRow(
                SYSTEMS[place % 5], f"e{number}", {"score": float(place % 3 > 0)}, 100, 50, {"output": "context"},
                0.01 * (place % 97), "made", text,
            )  # fmt: skip
            answer = StoredAnswer({"response": text, "context": text}, {}, 0.1, "context")
            keys = Keys(f"{number:016d}".encode(), None, None)
            if place % 5:
                keys_example: int | None = run.number << 32 | number * 5
            else:
                keys_example = None
            store.put_result(run, place, keys, example, keys_example, answer, row, None)
            if place % 20_000 == 19_999:
                time.sleep(0.5)  # let the writer catch up, or all rows wait in memory
        counts = {"num_examples": rows / 5, "num_errors": 0.0, "mean_score": 2 / 3, "pass_rate": 2 / 3}
        store.end_run(run, "done", EvalResult([], {name: dict(counts) for name in SYSTEMS}, {}, config))
    return run.id


@contextmanager
def viewing(folder: Path) -> Iterator[tuple[str, int]]:
    """Run `context-bench view`; its address and its process."""
    command = [sys.executable, "-m", "context_bench", "view", "--store", str(folder), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def read_peak(process: int) -> float:
    """Read the most memory that a process has had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text(encoding="ascii"))
    return int(found[1]) / 1024 if found else float("nan")


def ask(address: str) -> Any:
    with urllib.request.urlopen(address) as reply:
        return json.load(reply) if "/api/" in address else reply.read()


def measure_viewer(rows: int) -> None:
    """Print how soon a large store is shown, and in how much memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = make_store(folder, rows, 200)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 1e6
        began = time.perf_counter()
        with viewing(folder) as (address, process):
            started = time.perf_counter() - began
            began = time.perf_counter()
            ask(address)
            ask(f"{address}api/runs")
            listed = time.perf_counter() - began
            began = time.perf_counter()
            ask(f"{address}run/{run}")
            ask(f"{address}api/state?runs={run}")
            while not ask(f"{address}api/rows?runs={run}&limit=50")["rows"]:
                time.sleep(0.02)
            shown = time.perf_counter() - began
            while ask(f"{address}api/state?runs={run}")["under_way"]:
                time.sleep(0.5)
            read = time.perf_counter() - began
            times = {}
            for what in ("words=999", "outcome=1", "sort=latency&down=1", "flip=-1", "offset=900000", "sort=id"):
                began = time.perf_counter()
                ask(f"{address}api/rows?runs={run}&limit=50&{what}")
                times[what] = time.perf_counter() - began
            peak = read_peak(process)
    print(f"viewer, {rows:,} rows ({size:,.0f} MB): started in {started:.2f} s, list of runs in {listed:.3f} s, first")
    print(f"  screen of the run in {shown:.2f} s, all rows read after {read:.1f} s, at most {peak:.0f} MB of memory")
    print("  " + ", ".join(f"{what} {seconds:.2f} s" for what, seconds in times.items()))


_RUN = """
import sys, time
from context_bench import evaluate
def system(example):
    time.sleep(0.002)
    return example["context"][:100]
examples = [{"id": f"e{n}", "context": "word " * 200, "question": "q", "answer": "a"} for n in range(int(sys.argv[2]))]
began = time.perf_counter()
evaluate([system], examples, cache_dir=sys.argv[1], progress=False, max_workers=4)
print(time.perf_counter() - began, time.process_time())
"""


def time_run(folder: Path, examples: int) -> tuple[float, float]:
    """Time a run: seconds by the clock, and of the processor."""
    command = [sys.executable, "-c", _RUN, str(folder), str(examples)]
    clock, processor = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(clock), float(processor)


def read_processor_time(process: int) -> float:
    """Read how long a process has had a processor, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_cost(examples: int = 6_000, viewers: int = 10) -> None:
    """Print how much longer a run takes while it is viewed: each viewer asks as an open page does.

    Time of the processor is shown too: on a machine with other work, the clock tells little.
    """
    alone, viewed, serving = [], [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as name:
            alone.append(time_run(Path(name), examples))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            Store(folder).close()
            with viewing(folder) as (address, process):
                ended = threading.Event()
                threads = [threading.Thread(target=_view, args=(address, ended)) for _ in range(viewers)]
                for thread in threads:
                    thread.start()
                before = read_processor_time(process)
                viewed.append(time_run(folder, examples))
                serving.append(read_processor_time(process) - before)
                ended.set()
                for thread in threads:
                    thread.join()
    for place, unit in enumerate(("s", "s of the processor")):
        best, slowed = (min(times[place] for times in found) for found in (alone, viewed))
        slower = f"{best:.2f} {unit} alone, {slowed:.2f} viewed ({slowed / best - 1:+.1%})"
        print(f"{viewers} viewers during a run of {examples:,}: {slower}")
    print(f"  the viewer itself takes {min(serving):.2f} s of the processor, at a lower priority than the run")


def _view(address: str, ended: threading.Event) -> None:
    version = ""
    while not ended.wait(2.0):
        runs = ask(f"{address}api/runs")["runs"]
        if runs:
            run = runs[0]["id"]
            state = ask(f"{address}api/state?runs={run}")
            if state["version"] != version:
                version = state["version"]
                ask(f"{address}api/sections?runs={run}")
                ask(f"{address}api/rows?runs={run}&limit=50")


_REPORT = """
import re, sys
from pathlib import Path
from context_bench.cli import main
main(["report", "last", "--cache-dir", sys.argv[1], "--out", sys.argv[2]])
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def measure_report(counts: tuple[int, ...] = (1_000, 10_000, 50_000)) -> None:
    """Print the memory of writing a report of rows with contexts of 4,000 characters, and how fast it opens."""
    for rows in counts:
        with tempfile.TemporaryDirectory() as name:
            folder, page = Path(name) / "store", Path(name) / "page.html"
            make_store(folder, rows, 4_000)
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", _REPORT, str(folder), str(page)], capture_output=True, text=True, check=True
            )
            took = time.perf_counter() - began
            size = page.stat().st_size / 1e6
            peak = float(done.stdout)
            print(f"report of {rows:,} rows: {peak:.0f} MB of memory, {size:.1f} MB, written in {took:.1f} s")
            _open_in_browser(page, rows)


def _open_in_browser(page: Path, rows: int) -> None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    if not CHROMIUM.exists():
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=120_000)
        opened = time.perf_counter() - began
        began = time.perf_counter()
        tab.fill("#search", f"number {rows // 5 - 1}?")
        tab.locator("#found", has_text="of 5 rows").wait_for(timeout=120_000)
        searched = time.perf_counter() - began
        began = time.perf_counter()
        tab.click("#rows tr")
        tab.wait_for_selector("dialog[open]", timeout=120_000)
        shown = time.perf_counter() - began
        print(f"  in Chromium: opened in {opened:.2f} s, searched in {searched:.2f} s, a row in {shown:.2f} s")
        browser.close()


def main(rows: int = 1_000_000) -> None:
    """Print everything."""
    measure_report()
    measure_viewer(rows)
    measure_cost()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
