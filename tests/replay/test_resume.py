"""A replay that is killed or interrupted goes on with the sessions that are left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from agent_logs import write_session
from command import environment, shell
from context_bench import Store

TURNS, SESSIONS = 4, 3
SLOW = """
import os, time

class Slow:
    name = "slow"
    fingerprint = "slow/1"
    reads_any_api = True

    def process(self, example):
        return example

    def edit(self, messages, tools):
        with open("sent.log", "a") as log:
            print(messages[0]["content"][0]["text"], file=log, flush=True)
        while os.path.exists("wait") and messages[0]["content"][0]["text"] == "Repair case 1.":
            time.sleep(0.05)
        return messages, tools
"""


def read_sent(folder: Path) -> Counter[str]:
    log = folder / "sent.log"
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


def count_kept(folder: Path) -> int:
    """Count the sessions that the store holds; it writes a moment after each of them ended."""
    with Store(folder / ".context-bench") as store:
        return len(store.load("last").rows)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_what_was_replayed_is_not_sent_again(tmp_path: Path, sign: signal.Signals) -> None:
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    for session in range(SESSIONS):
        write_session(recordings, session, TURNS)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "wait").touch()
    words = ["replay", "recordings", "--system", "slow.py:Slow", "--output", "json", "--out", "replay.json"]
    command = [sys.executable, "-m", "context_bench", *words]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not (read_sent(tmp_path)["Repair case 1."] and count_kept(tmp_path)) and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(sign)
    heard = ""
    while sign == signal.SIGINT and "finishing the requests in flight" not in heard:
        heard = process.stderr.readline()  # type: ignore[union-attr]
        assert heard
    (tmp_path / "wait").unlink()
    _, said = process.communicate(timeout=120)
    if sign == signal.SIGINT:
        assert process.returncode == 130
        assert "context-bench replay recordings --system slow.py:Slow" in said
        assert "--resume" in said
    assert read_sent(tmp_path)["Repair case 0."] == TURNS
    done = shell(*words, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    sent = read_sent(tmp_path)
    # Ctrl-C lets a session end. One that was killed begins anew, since a proxy may keep a state for each of them.
    again = 1 if sign == signal.SIGKILL else 0
    assert sent == {"Repair case 0.": TURNS, "Repair case 1.": TURNS + again, "Repair case 2.": TURNS}
    (system,) = json.loads((tmp_path / "replay.json").read_text())["systems"]
    assert (system["turns"], system["errors"], system["failed"]) == (SESSIONS * TURNS, 0, {})
