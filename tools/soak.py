"""Soak: minutes of runs with a tap, a judge, code execution, kills and a hostile server, all on loopback.

    python tools/soak.py --minutes 30

One run lives the whole time: its memory, open files, threads and children are sampled. Beside it other runs are killed
(SIGKILL, SIGTERM) at random moments and resumed on the same store until they are done. Afterwards every row is
checked against its example and against what the servers saw. Prints a short report; exit code 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from soak_check import Death, check_asked_again, check_requests, check_rows
from soak_server import HostileModel, Judge, make_example, serve
from soak_watch import Watch, adopt_orphans, find_slope, list_descendants, measure_growth

_ROOT = Path(__file__).parents[1]
_PROXY = _ROOT / "tests" / "toy_proxies.py"

RATE, WORKERS = 8.0, 16
"""Of the long run: answers in a second, and requests in flight."""

KILLED_RATE, KILLED_WORKERS, KILLED_COUNT = 25.0, 8, 250
"""Of the runs that are killed, and how many examples they have."""

HUGE_REPLIES = 5
"""How many replies of 20 MB the long run gets, evenly over its time."""

WARM_UP = 0.25
"""Share of the time that does not count as flat or not: pools and caches fill, and the first huge reply comes."""

MAX_SLOPE_MB, MAX_GROWTH_MB, MAX_GROWTH_FDS = 0.5, 10.0, 8
"""Memory is flat when it grows by less than this slope a minute, or by less than this in all; open files likewise."""

TERM_GRACE, GRACE = 5.0, 15.0
"""Seconds for what is in flight after SIGTERM; then until a run has ended, and until its family has after its death."""


class Soak:
    """All of it, in one folder.

    Args:
        folder: For data, stores and reports.
        minutes: How long the long run is kept busy.
        seed: Of kills and faults.
        every: Seconds between two samples.
    """

    def __init__(self, folder: Path, minutes: float, seed: int, every: float) -> None:
        self.folder, self.minutes, self.seed, self.every = folder, minutes, seed, every
        self.until = time.monotonic() + minutes * 60
        self.figures: dict[str, Any] = {"minutes": minutes, "seed": seed}
        self.wrong: dict[str, list[str]] = {}
        self.chance = random.Random(seed)
        self.count = int(RATE * 60 * minutes)

    def run(self) -> None:
        """Start the long run, kill others beside it until the time is up, then check everything."""
        adopt_orphans()
        self._write_data("long.jsonl", self.count)
        self._write_data("killed.jsonl", KILLED_COUNT)
        huge_every = max(100, self.count // HUGE_REPLIES)
        model, judge = HostileModel(self.seed, RATE, self.until, huge_every=huge_every), Judge()
        with serve(model.converse) as model_url, serve(judge.converse) as judge_url:
            arguments = ["--dataset", "long.jsonl", "--max-workers", str(WORKERS), "--no-rows", "--cache-dir", "long"]
            long = self._start([*arguments, "--out", "long.json"], model_url, judge_url, "long")
            watch = Watch(long.pid, self.every, _PROXY.name)
            try:
                self._kill_others(long.pid)
                code = _wait(long, 600.0)
            finally:
                watch.stop()
                _end(long)
            self.figures["long run"] = {"exit code": code, "faults": dict(model.faults), "judge": dict(judge.faults)}
            self._check(
                "ends by itself", [] if code in (0, 3) else [f"the long run ended with {code}", *self._tail("long")]
            )
            self._check("no orphan", self._find_orphans("the long run", None))
            self._check_watch(watch)
            self._check_long_rows(model, judge)

    def _write_data(self, name: str, count: int) -> None:
        with (self.folder / name).open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(make_example(number)) + "\n" for number in range(count))

    def _start(self, arguments: list[str], model_url: str, judge_url: str, log: str) -> subprocess.Popen[bytes]:
        proxy = f"'{sys.executable}' '{_PROXY}' passes --port {{port}} --upstream {{tap}}"
        command = [sys.executable, "-m", "context_bench", "--start", proxy, "--name", "proxy", "--model", "soak"]
        command += ["--tap-forward", model_url, "--judge-url", judge_url, "--judge-model", "judge", "--timeout", "10"]
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        with (self.folder / f"{log}.log").open("ab") as errors:
            return subprocess.Popen(
                [*command, *arguments], cwd=self.folder, env=environment, stdout=errors, stderr=errors
            )

    def _tail(self, log: str) -> list[str]:
        return (self.folder / f"{log}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-5:]

    def _check(self, name: str, wrong: list[str]) -> None:
        self.wrong.setdefault(name, []).extend(wrong)

    # --- runs that are killed

    def _kill_others(self, long_pid: int) -> None:
        kills: Counter[str] = Counter()
        rounds = unfinished = 0
        while time.monotonic() < self.until:
            done, signals = self._kill_until_done(rounds, long_pid)
            kills += signals
            rounds, unfinished = rounds + done, unfinished + (not done)
        self.figures["killed runs"] = {"rounds": rounds, "unfinished": unfinished, "kills": dict(kills)}
        self._check("kills happened", [] if kills and rounds else ["no run was killed and resumed to its end"])

    def _kill_until_done(self, number: int, long_pid: int) -> tuple[bool, Counter[str]]:
        """Kill one run again and again on its store until it comes to its end; the last time it is left alone."""
        model, judge, kills = (
            HostileModel(self.seed + number + 1, KILLED_RATE, self.until + 3600),
            Judge(),
            Counter[str](),
        )
        deaths: list[Death] = []
        store, report = f"killed-{number}", self.folder / f"killed-{number}.json"
        arguments = ["--dataset", "killed.jsonl", "--max-workers", str(KILLED_WORKERS), "--cache-dir", store]
        with serve(model.converse) as model_url, serve(judge.converse) as judge_url:
            for attempt in range(1000):
                report.unlink(missing_ok=True)
                run = self._start([*arguments, "--out", report.name], model_url, judge_url, store)
                seen, left_alone = model.seen.total(), attempt >= 6
                with suppress(subprocess.TimeoutExpired):
                    run.wait(120.0 if left_alone else self.chance.uniform(1.0, 9.0))
                if run.poll() is None:
                    kills[self._kill(run, model.seen.total() > seen, deaths, report)] += 1
                    self._check("no orphan", self._find_orphans(f"{store}, attempt {attempt}", long_pid))
                    if time.monotonic() > self.until + 60:
                        return False, kills
                    continue
                self._check("no orphan", self._find_orphans(f"{store}, attempt {attempt}", long_pid))
                if run.returncode not in (0, 3):
                    self._check("ends by itself", [f"{store} ended with {run.returncode}", *self._tail(store)])
                break
        self._check_killed_rows(store, report, model, deaths)
        return True, kills

    def _kill(self, run: subprocess.Popen[bytes], begun: bool, deaths: list[Death], report: Path) -> str:
        """Kill a run in one way or the other, and look at what it leaves; the signal's name.

        Before its first request (`begun`) a run may die of SIGTERM at once, since it has nothing to report.
        """
        sent = self.chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        moment = time.monotonic()
        run.send_signal(sent)
        code = _wait(run, GRACE)
        gone = time.monotonic()
        deaths.append(Death(moment if sent == signal.SIGKILL else min(moment + TERM_GRACE, gone), gone))
        if sent == signal.SIGTERM:
            if code is None:
                _end(run)
                self._check("SIGTERM ends a run", [f"{report.stem}: still there after {GRACE} s"])
            elif code not in (130, 0, 3) and not (code == -signal.SIGTERM and not begun):
                self._check("SIGTERM ends a run", [f"{report.stem}: exit code {code}", *self._tail(report.stem)])
            elif report.exists():
                rows = json.loads(report.read_text(encoding="utf-8"))["rows"]
                self._check("no row lost or doubled", check_rows(rows, None, f"{report.stem} after SIGTERM"))
        return sent.name

    def _find_orphans(self, what: str, long_pid: int | None) -> list[str]:
        """Say which processes outlive a run. All orphans are ours: see `adopt_orphans`."""
        deadline = time.monotonic() + GRACE
        while True:
            spared = {process.pid for process in list_descendants(long_pid)} | {long_pid} if long_pid else set()
            left = [process for process in list_descendants(os.getpid()) if process.pid not in spared]
            for process in left:
                if process.state == "Z":
                    with suppress(ChildProcessError):  # whose parent is not us is reaped by its own
                        os.waitpid(process.pid, os.WNOHANG)
            left = [process for process in left if process.state != "Z"]
            if not left:
                return []
            if time.monotonic() > deadline:
                return [f"{what}: {process.name} ({process.pid}) is left" for process in left]
            time.sleep(0.1)

    # --- checks

    def _check_killed_rows(self, store: str, report: Path, model: HostileModel, deaths: list[Death]) -> None:
        told = json.loads(report.read_text(encoding="utf-8"))["rows"] if report.exists() else []
        kept = self._export(store)
        wrong = check_rows(told, KILLED_COUNT, f"{store}, report") + check_rows(kept, KILLED_COUNT, f"{store}, store")
        if [(row["example_id"], row["response"]) for row in told] != [
            (row["example_id"], row["response"]) for row in kept
        ]:
            wrong.append(f"{store}: the report and the store differ")
        self._check("no row lost or doubled", wrong)
        self._check("no answer paid twice", [f"{store}: {what}" for what in check_asked_again(model, deaths)])

    def _check_long_rows(self, model: HostileModel, judge: Judge) -> None:
        summary = json.loads((self.folder / "long.json").read_text(encoding="utf-8"))["summary"]["proxy"]
        rows = self._export("long")
        failed = sum(row["error"] is not None for row in rows)
        wrong = check_rows(rows, self.count, "the long run")
        for key, counted in (("num_examples", len(rows)), ("num_errors", failed)):
            if summary[key] != counted:
                wrong.append(f"the long run: {key} is {summary[key]}, and the store has {counted}")
        if failed > 0.1 * self.count:
            wrong.append(f"the long run: {failed} of {self.count} rows failed")
        self._check("no row lost or doubled", wrong)
        self._check("no answer paid twice", check_asked_again(model, []))
        self._check("requests are as recorded", check_requests(rows, model, judge))
        self.figures["long run"] |= {
            "examples": self.count,
            "rows": len(rows),
            "failed rows": failed,
            "requests": sum(model.seen.values()),
            "attempts": sum(row["metadata"].get("attempts", 0) for row in rows),
            "unscored by the judge": sum("llm-judge" in row["unscored"] for row in rows),
            "programs run": sum("pass_at_1" in row["scores"] for row in rows),
            "programs unscored": sum("code-execution" in row["unscored"] for row in rows),
            "store MB": round(sum(file.stat().st_size for file in (self.folder / "long").iterdir()) / 2**20, 1),
        }

    def _export(self, store: str) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "context_bench", "runs", "export", "last", "--cache-dir", store]
        done = subprocess.run(
            [*command, "--output", "json"], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            self._check("the store can be read", [f"{store}: {done.stderr.strip()}"])
            return []
        rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
        return rows

    def _check_watch(self, watch: Watch) -> None:
        whole = self.minutes * 60
        samples = [sample for sample in watch.samples if WARM_UP * whole < sample.seconds <= whole]
        self._check("no zombie", watch.zombies)
        self._check("samples were taken", [] if len(samples) >= 8 else [f"only {len(samples)} after the warm-up"])
        times = [sample.seconds for sample in samples]
        for what, unit, read, bound in (
            ("memory", "MB", lambda sample: sample.rss_mb, MAX_GROWTH_MB),
            ("open files", "", lambda sample: float(sample.fds), float(MAX_GROWTH_FDS)),
            ("threads", "", lambda sample: float(sample.threads), float(MAX_GROWTH_FDS)),
            ("children", "", lambda sample: float(sample.children), float(MAX_GROWTH_FDS)),
        ):
            self._check_flat(what, unit, times, [read(sample) for sample in samples], bound)
        self.figures["proxy"] = {
            "memory MB": round(statistics.median([each.proxy_rss_mb for each in samples] or [0.0]), 1),
            "open files": statistics.median([each.proxy_fds for each in samples] or [0]),
        }
        self.figures["samples"] = watch.to_dicts()

    def _check_flat(self, what: str, unit: str, times: list[float], values: list[float], bound: float) -> None:
        slope, growth = find_slope(times, values), measure_growth(values)
        middle = statistics.median(values or [0.0])
        self.figures[what] = {
            "median": round(middle, 1),
            "highest": round(max(values or [0.0]), 1),
            "slope a minute": round(slope, 3),
            "growth": round(growth, 1),
            "bound": bound,
        }
        grows = growth > bound and (what != "memory" or slope > MAX_SLOPE_MB)
        said = f"{what} grew by {growth:.1f} {unit} ({slope:.2f} a minute), more than {bound:g}"
        self._check(f"{what} flat", [said] if grows else [])


def _wait(run: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return run.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _end(run: subprocess.Popen[bytes]) -> None:
    if run.poll() is None:
        run.kill()
        run.wait()


def _print_report(soak: Soak, write: Callable[[str], Any]) -> bool:
    for name, value in soak.figures.items():
        if name != "samples":
            write(f"{name}: {json.dumps(value)}\n")
    good = True
    for name, wrong in soak.wrong.items():
        good = good and not wrong
        write(f"{'FAILED' if wrong else 'passed'}  {name}{f' ({len(wrong)} times)' if wrong else ''}\n")
        for line in wrong[:10]:
            write(f"        {line}\n")
    return good


def main() -> int:
    """Run it, print the report, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=2.0, metavar="S", help="seconds between two samples")
    parser.add_argument("--folder", type=Path, help="keep data, stores and logs there")
    parser.add_argument("--out", type=Path, default=Path("soak.json"), help="the report as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        soak = Soak(folder.resolve(), options.minutes, options.seed, options.every)
        soak.run()
    good = _print_report(soak, sys.stdout.write)
    options.out.write_text(
        json.dumps({"passed": good, "checks": soak.wrong, **soak.figures}, indent=1), encoding="utf-8"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
