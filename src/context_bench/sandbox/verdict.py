"""Runs one program against its tests: two processes, one stream between them, one pipe for the verdict."""

from __future__ import annotations

import math
import os
import select
import socket
import time
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace

from context_bench.sandbox.interpreter import Isolation
from context_bench.sandbox.task import Task

__all__ = ["Verdict", "run"]

_READY = b"ready\n"
_WORDS = {"pass": True, "fail": False, "unusable": None}
_LONGEST = 4096
_PATIENCE = 10.0
"""Seconds that the processes get at least to start, which takes them less than a tenth of one on a quiet machine."""

_KNOWN_TASK = Task("add", "", "", ("assert add(1, 2) == 3\n",), False, ("add",), (), "")
_KNOWN_BLOCKS = ["def add(a, b):\n    return a + b\n"]
"""A program that is known to be good."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of a program.

    Attributes:
        passed: None when it is not known.
        reason: Why it did not pass; "" for a pass.
        explained: False as long as it is open whether the program or the sandbox is to blame.
    """

    passed: bool | None
    reason: str = ""
    explained: bool = True


def run(task: Task, blocks: list[str], isolation: Isolation, timeout: float) -> Verdict:
    """Run a program, given as the pieces of a reply, against the tests of a task.

    Where the tests' process fails or runs out of time, a program that is known to be good goes through a
    sandbox of the same kind. If that passes, the fault is the program's; if not, nothing is known of it.
    """
    verdict = _run_once(task, blocks, isolation, timeout)
    if verdict.explained:
        return verdict
    known = _run_once(_KNOWN_TASK, _KNOWN_BLOCKS, isolation, max(timeout, _PATIENCE))
    if known.passed:
        return replace(verdict, explained=True)
    return Verdict(None, f"{verdict.reason}, and a known-good program does not pass either: {known.reason}")


def _run_once(task: Task, blocks: list[str], isolation: Isolation, timeout: float) -> Verdict:
    """Run both processes once.

    The program's process gets its source and the stream; the tests' process gets the tests, the stream
    and the pipe. Only what comes out of the pipe counts, and it has to come in time, which is
    counted from when both are ready: a machine that is slow to start them is not the program's fault.
    """
    seconds = math.ceil(timeout) + 1
    facts = asdict(task)
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(closing(end)) for end in socket.socketpair())
        pipe, verdict = os.pipe()
        stack.callback(os.close, pipe)
        try:
            job = {key: facts[key] for key in ("entry", "prompt", "names")}
            job |= {"blocks": blocks, "stream": theirs.fileno()}
            candidate = isolation.start("candidate", job, [theirs.fileno()], seconds)
            stack.callback(candidate.end)
            job = {**facts, "stream": ours.fileno(), "verdict": verdict}
            tester = isolation.start("tester", job, [ours.fileno(), verdict], seconds)
            stack.callback(tester.end)
        except OSError as error:  # out of processes, memory or files, whoever has them
            return Verdict(None, f"the sandbox did not start: {error}")
        finally:
            os.close(verdict)
        ours.close()
        theirs.close()
        candidate.follow()
        tester.follow()
        patience = max(timeout, _PATIENCE)
        said, in_time = _listen(pipe, len(_READY), patience)
        if said != _READY:
            return Verdict(None, "the sandbox did not start" + ("" if in_time else f" within {patience:g} s"))
        said, in_time = _listen(pipe, _LONGEST, timeout)
    return _read_verdict(said) if in_time else Verdict(False, f"timed out after {timeout:g} s", explained=False)


def _listen(pipe: int, length: int, seconds: float) -> tuple[bytes, bool]:
    """Read a line of the tests' process, of that length at most, and whether it came in time."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    said = b""
    while not said.endswith(b"\n") and len(said) < length:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return said, False
        chunk = os.read(pipe, length - len(said))
        if not chunk:
            break
        said += chunk
    return said, True


def _read_verdict(said: bytes) -> Verdict:
    word, _, reason = said.decode("utf-8", "replace").rstrip("\n").partition(" ")
    if not said.endswith(b"\n") or word not in _WORDS:
        return Verdict(False, "the process of the tests ended without a verdict", explained=False)
    return Verdict(_WORDS[word], "".join(char if char.isprintable() else " " for char in reason))
