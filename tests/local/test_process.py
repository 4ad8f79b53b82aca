"""The process of a model: the real one, with real files, and with files that are broken."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.local import ModelProcess, Settings, default_threads
from context_bench.local.weights import Weights
from small_model import small_model

KEY = "a key that nobody else knows"


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(str(small_model()), "small", 512, 1, key=KEY)


@pytest.fixture(scope="module")
def running(settings: Settings) -> Iterator[ModelProcess]:
    process = ModelProcess(settings)
    process.start()
    yield process
    process.stop()


def ask(url: str, key: str | None = KEY, **more: Any) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2, **more}).encode()
    with urllib.request.urlopen(
        urllib.request.Request(url + "/v1/chat/completions", body, headers), timeout=30
    ) as reply:
        document: dict[str, Any] = json.load(reply)
    return document


def is_running(pid: int) -> bool:
    """Whether there is such a process, and not only what is left of one."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not is_running(pid)


def test_it_answers_under_its_name(running: ModelProcess) -> None:
    reply = ask(running.url)
    assert reply["model"] == "small"
    assert reply["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("key", [None, "another"])
def test_nobody_without_the_key_is_answered(running: ModelProcess, key: str | None) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(running.url, key=key)
    caught.value.close()
    assert caught.value.code == 401


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="what a process was started with is not known here")
def test_the_key_is_not_for_all_to_see(running: ModelProcess) -> None:
    for kind in ("cmdline", "environ"):
        assert KEY.encode() not in Path(f"/proc/{running.pid}/{kind}").read_bytes()


def test_it_listens_on_this_machine_alone(running: ModelProcess) -> None:
    assert running.url == f"http://127.0.0.1:{running.settings.port}"
    with socket.socket() as other, pytest.raises(OSError):
        other.connect(("127.0.0.2", running.settings.port))


def test_pages_in_a_browser_are_told_to_stay_away(running: ModelProcess) -> None:
    request = urllib.request.Request(running.url + "/health", headers={"Origin": "http://evil.example"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        assert not reply.headers.get("Access-Control-Allow-Origin")


def test_stopped_it_is_gone_and_can_be_started_again_where_it_was(settings: Settings) -> None:
    process = ModelProcess(settings)
    assert (process.alive, process.pid) == (False, None)
    process.start()
    before, url = process.pid, process.url
    assert before is not None
    process.stop()
    assert not is_running(before)
    process.start()
    try:
        assert process.pid != before
        assert process.url == url
        assert ask(url)["choices"]
    finally:
        process.stop()


def test_how_it_ended_is_told(settings: Settings) -> None:
    process = ModelProcess(settings)
    process.start()
    assert process.ending == "not ended"
    assert not process.wait(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSEGV)
    assert process.wait(10)
    assert process.ending == "ended by SIGSEGV"
    assert not process.alive
    process.stop()


def test_kill_9_of_its_parent_ends_it(settings: Settings) -> None:
    script = (
        "import sys, time\n"
        "from context_bench.local import ModelProcess, Settings\n"
        "process = ModelProcess(Settings(sys.argv[1], 'small', 512, 1))\n"
        "process.start()\n"
        "print(process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script, settings.model], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    assert is_running(pid)
    parent.kill()
    parent.wait()
    assert gone_within(pid, 5.0)


@pytest.mark.parametrize(
    ("start", "rest"),
    [(3000, b""), (50_000_000, b""), (24, os.urandom(200_000))],
    ids=["header only", "half of it", "noise after its start"],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, settings: Settings, start: int, rest: bytes) -> None:
    broken = tmp_path / "broken.gguf"
    with Path(settings.model).open("rb") as whole:
        broken.write_bytes(whole.read(start) + rest)
    process = ModelProcess(replace(settings, model=str(broken)))
    with pytest.raises(UsageError, match=r"^cannot serve broken.gguf: .+") as caught:
        process.start()
    assert "\n" not in str(caught.value)
    assert not process.alive


def test_a_port_that_is_taken(settings: Settings) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            ModelProcess(replace(settings, port=port)).start()


WEIGHTS = Weights("Small", Path("/models/small.gguf"), "0" * 64, most_context=1000)


def test_settings_with_what_was_left_open() -> None:
    settings = Settings.of(WEIGHTS, pytest.fail, context=500, threads=None, port=80)
    assert settings == Settings("/models/small.gguf", "Small", 500, default_threads(), port=80)


@pytest.mark.parametrize(
    ("context", "threads", "message"),
    [
        (1, None, "a context of 1 tokens is too small"),
        (1001, None, "context must be at most 1000 tokens for Small (got 1001)"),
        (None, None, "context must be at most 1000 tokens for Small (got 8192)"),
        (500, 100_000, "the number of usable cores (got 100000)"),
    ],
)
def test_settings_that_cannot_be(context: int | None, threads: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Settings.of(WEIGHTS, pytest.fail, context=context, threads=threads)


def test_threads_leave_cores_for_others() -> None:
    assert 1 <= default_threads() <= max(1, (os.cpu_count() or 1) // 2)
