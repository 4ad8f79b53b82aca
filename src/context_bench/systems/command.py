"""A system in any language: a program that reads one JSON object a line and answers with one."""

from __future__ import annotations

import queue
import shlex
import shutil
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

import orjson

from context_bench.errors import BadOutput, SystemFailure, TimedOut, UsageError
from context_bench.systems.sampling import settings_fingerprint
from context_bench.types import Example

__all__ = ["Command"]


class Command:
    """Keeps the program running and exchanges lines with it; one that dies or hangs is started anew.

    Args:
        command: The program and its arguments, as one line or as a list. Each example is one line of JSON on
            its stdin; the result (`response`, `context` or `documents`) is one line of JSON on its stdout.
        timeout: Seconds for one example.
        name: The program's name by default.
    """

    argument = "command"

    def __init__(self, command: str | Sequence[str], timeout: float = 60.0, name: str | None = None) -> None:
        self.command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self.command or shutil.which(self.command[0]) is None:
            shown = self.command[0] if self.command else ""
            raise UsageError(f"there is no program {shown!r} to run")
        self.timeout = timeout
        self.name = name or self.command[0]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._all: set[_Worker] = set()

    @property
    def fingerprint(self) -> str | None:
        """The command line; a changed program behind it needs another cache tag."""
        return settings_fingerprint("command/1", None, command=self.command)

    def process(self, example: Example) -> Example:
        """Send one example to a program that is free, started if need be."""
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = _Worker(self.command)
            self._all.add(worker)
        try:
            result = worker.ask(example, self.timeout)
        except SystemFailure:
            self._all.discard(worker)
            worker.kill()
            raise
        self._idle.put(worker)
        return result

    def close(self) -> None:
        """End every program."""
        while self._all:
            self._all.pop().kill()
        self._idle = queue.SimpleQueue()


class _Worker:
    """One running program, with a thread that reads what it says."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="context-bench-command", daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, example: Example, timeout: float) -> Example:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(orjson.dumps(example, default=str) + b"\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=timeout)
        except OSError:
            line = b""
        except queue.Empty:
            raise TimedOut(f"the program gave no answer within {timeout:g} s") from None
        if not line:
            code = self._process.wait()
            raise SystemFailure(f"the program ended (exit code {code}) without an answer")
        return _parsed(line)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue


def _parsed(line: bytes) -> Example:
    try:
        result: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        result = None
    if not isinstance(result, dict):
        raise BadOutput(f"the program answered with a line that is no JSON object: {line[:100]!r}")
    return result
