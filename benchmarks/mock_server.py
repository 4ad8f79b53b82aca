"""A chat-completions server that does nothing, fast: granian's Rust HTTP stack around one fixed reply.

On request it takes its time, and refuses some requests with 429 as a busy API does.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from context_bench.tap.address import free_port

REPLY = (
    b'{"id":"x","object":"chat.completion","model":"mock","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"The answer is Paris, the capital."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":500,"completion_tokens":8,"total_tokens":508}}'
)
_HEADERS = [("content-type", "application/json")]
_DELAY, _SPREAD, _REFUSED = (float(os.environ.get(f"MOCK_{name}", "0")) for name in ("DELAY", "SPREAD", "REFUSED"))
_REFUSAL = b'{"error":{"message":"Rate limit reached","type":"rate_limit_error"}}'


async def app(_scope: Any, protocol: Any) -> None:
    """Answer every request with the same completion, after MOCK_DELAY seconds, or refuse it at once."""
    await protocol()
    if random.random() < _REFUSED:
        protocol.response_bytes(429, [*_HEADERS, ("retry-after", "2")], _REFUSAL)
        return
    if _DELAY:
        await asyncio.sleep(_DELAY * random.uniform(1 - _SPREAD, 1 + _SPREAD))
    protocol.response_bytes(200, _HEADERS, REPLY)


@contextlib.contextmanager
def serving(delay: float = 0.0, core: int | None = None, spread: float = 0.0, refused: float = 0.0) -> Iterator[str]:
    """The server on a free port of loopback, on a core of its own; its URL.

    Args:
        delay: Seconds that an answer takes.
        core: The core that it is pinned to; None for none.
        spread: The share by which an answer may take less or more.
        refused: The share of requests that get 429 at once, with Retry-After 2.
    """
    _check_installed()
    port = free_port()
    command = [sys.executable, "-m", "granian", "--interface", "rsgi", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--no-ws", "--log-level", "error", "--backpressure", "4096", "benchmarks.mock_server:app"]
    behaviour = {"MOCK_DELAY": str(delay), "MOCK_SPREAD": str(spread), "MOCK_REFUSED": str(refused)}
    environment = {**os.environ, **behaviour, "PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen(command, env=environment)
    try:
        if core is not None and hasattr(os, "sched_setaffinity"):
            _pin(process.pid, core)
        _wait(port)
        if core is not None and hasattr(os, "sched_setaffinity"):
            _pin(process.pid, core)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _pin(pid: int, core: int) -> None:
    """Pin a process, its children and all their threads."""
    pids = [pid]
    with contextlib.suppress(OSError):
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
        pids += [int(text) for text in listed.stdout.split()]
    for each in pids:
        for thread in Path(f"/proc/{each}/task").iterdir():
            with contextlib.suppress(OSError):
                os.sched_setaffinity(int(thread.name), {core})


def _wait(port: int) -> None:
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise RuntimeError("the mock server did not start")


def _check_installed() -> None:
    if importlib.util.find_spec("granian") is None:
        sys.exit("the benchmarks need more packages: make .venv/bench.stamp installs them")
