"""`traffic show` on 1,000 sessions and on one log of 100 MB: megabytes a second on one core, and memory.

The sessions are copies of the real ones in the folder `traffic/claude-code` of CONTEXT_BENCH_DATA, with ids of their
own; without it they are made up. The speed is that of processor time, beside the time that parsing alone takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SESSIONS = 1_000
LOG_MB = 100

_SHOW = """
import sys, time, resource
from context_bench.pricing import load_shipped_prices
from context_bench.traffic.overview import Overview
from context_bench.traffic.readers import Findings, read_sessions
overview, findings = Overview(load_shipped_prices()), Findings()
overview.count("warm up")
started = time.process_time()
for session in read_sessions(sys.argv[1:], findings):
    overview.add(session)
spent = time.process_time() - started
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
print(len(overview.sessions), overview.total.requests, findings.bytes_read, spent, peak)
"""


def make_sessions(folder: Path) -> None:
    """Write the sessions; every copy has ids of its own, so that none counts as a copy."""
    data = Path(os.environ.get("CONTEXT_BENCH_DATA", "/nowhere")) / "traffic" / "claude-code"
    real = [path.read_text(encoding="utf-8") for path in sorted(data.glob("*.jsonl"))] or [_make_up_session()]
    for number in range(SESSIONS):
        text = real[number % len(real)]
        first = json.loads(text.splitlines()[-1])["sessionId"]
        text = text.replace(first, f"{number:08d}-0000-0000-0000-000000000000").replace('"msg_', f'"msg_{number}_')
        (folder / f"{number:04d}.jsonl").write_text(text, encoding="utf-8")


def _make_up_session(turns: int = 60) -> str:
    rows, parent = [], None
    for turn in range(turns):
        for kind in ("user", "assistant"):
            message: dict[str, object] = {"role": kind, "content": [{"type": "text", "text": f"word{turn} " * 400}]}
            if kind == "assistant":
                usage = {"input_tokens": 5, "output_tokens": 400, "cache_read_input_tokens": 800 * turn}
                message |= {"id": f"msg_{turn}", "model": "claude-sonnet-4-5", "usage": usage}
            identity = f"{turn}-{kind}"
            rows.append({"type": kind, "uuid": identity, "parentUuid": parent, "sessionId": "made", "message": message})
            parent = identity
    return "".join(json.dumps(row) + "\n" for row in rows)


def make_log(path: Path) -> None:
    """Write a log of chat requests whose histories grow, of interleaved sessions."""
    with path.open("w", encoding="utf-8") as log:
        number = 0
        while log.tell() < LOG_MB * 1_000_000:
            session, turn = number % 50 + number // 1000 * 50, number // 50 % 20
            texts = (f"session{session} turn{place} " + "some words of a result " * 60 for place in range(2 * turn + 1))
            messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]
            log.write(json.dumps({"request": {"model": "gpt-4o", "messages": messages}}) + "\n")
            number += 1


def measure(path: Path) -> str:
    """Show a file or a folder in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _SHOW, str(path)], capture_output=True, text=True, check=True)
    sessions, requests, size, spent, peak = map(float, done.stdout.split())
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    import orjson

    started = time.process_time()
    for file in files:
        with file.open("rb") as lines:
            for line in lines:
                orjson.loads(line)
    alone = time.process_time() - started
    return (
        f"{sessions:,.0f} sessions, {requests:,.0f} requests, {size / 1e6:.0f} MB: {size / 1e6 / spent:.0f} MB/s, "
        f"{spent / alone:.1f} times parsing the JSON; at most {peak:.0f} MB of memory"
    )


def main() -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as folder:
        sessions = Path(folder) / "sessions"
        sessions.mkdir()
        make_sessions(sessions)
        print(f"traffic, Claude Code: {measure(sessions)}", flush=True)
        log = Path(folder) / "log.jsonl"
        make_log(log)
        print(f"traffic, one log: {measure(log)}")


if __name__ == "__main__":
    main()
