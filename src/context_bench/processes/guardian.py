"""Stands between us and a program that we start, so that nothing of it outlives us, however we end.

Run as a program of its own: `guardian.py DIRECTORY PROGRAM ARGUMENT...`. It starts the program in a session of its
own, and ends it, with everything that descends from it, as soon as its own stdin says something or is closed: by us
when the run is over, or by the system when we are killed. Then it removes the directory. It ends by itself once the
whole family has, with the program's exit code. It needs nothing but the standard library.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = "CONTEXT_BENCH_STARTED"
"""A variable that the whole family carries in its environment, with a value that no other has."""

GRACE = 5.0  # seconds between the polite signal and the other

CANNOT_START = 127

_LOOK, _LOOK_AGAIN = 0.1, 0.5
_PR_SET_CHILD_SUBREAPER = 36


class _EndRequested(BaseException):
    """A signal asks for the end."""


def find_descendants(root: int) -> set[int]:
    """Find the living processes below one; none where the system has no /proc."""
    children: dict[int, list[int]] = {}
    for pid, parent in _list_processes():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting += below
    return found


def find_carriers(mark: str) -> set[int]:
    """Find the living processes with that mark in their environment, wherever they went; none without /proc."""
    wanted = f"{MARK}={mark}".encode()
    return {pid for pid, _ in _list_processes() if wanted in _read(pid, "environ").split(b"\0")}


def _list_processes() -> Iterator[tuple[int, int]]:
    """List each living process with its parent."""
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    for pid in (int(name) for name in names if name.isdigit()):
        fields = _read(pid, "stat").rpartition(b")")[2].split()  # the program's name may hold anything
        if fields and fields[0] not in (b"Z", b"X"):
            yield pid, int(fields[1])


def _read(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:  # it has gone, or is somebody else's
        return b""


def guard(command: list[str]) -> int:
    """Run a program until it and its family have ended, or until we are asked to end them; its exit code."""
    _adopt_orphans()
    try:
        program = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"{command[0]} cannot be run: {error.strerror or error}", file=sys.stderr)
        return CANNOT_START
    try:
        _on_signals(_raise_end)
        _wait(program)
    except _EndRequested:
        pass
    _end(program)
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def _wait(program: subprocess.Popen[bytes]) -> None:
    """Wait until we are asked to end, whoever started us has gone, or nobody is left to guard."""
    asked_to_end = threading.Event()
    threading.Thread(target=_listen, args=(asked_to_end,), daemon=True).start()
    parent = os.getppid()
    while not asked_to_end.wait(_LOOK if program.returncode is None else _LOOK_AGAIN) and os.getppid() == parent:
        _reap(program)
        # A program may leave its work to a child and go, as daemons do.
        if program.returncode is not None and not _find_family(program):
            return


def _listen(asked_to_end: threading.Event) -> None:
    os.read(0, 1)
    asked_to_end.set()


def _raise_end(*_: object) -> None:
    raise _EndRequested


def _on_signals(handler: Callable[..., None] | signal.Handlers) -> None:
    for each in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(each, handler)


def _adopt_orphans() -> None:
    """On Linux: whoever loses its parent in the family becomes our child, and so stays in reach."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except (OSError, AttributeError):
            pass


def _reap(program: subprocess.Popen[bytes]) -> None:
    """Collect those that have ended: the program, and the orphans that became ours."""
    if not hasattr(os, "WNOHANG"):
        program.poll()
        return
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == program.pid:
                program.returncode = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        pass


def _find_family(program: subprocess.Popen[bytes]) -> set[int]:
    """Find who of it is alive. Without /proc it is one process or none: the leader, standing for its group."""
    _reap(program)
    if os.path.isdir("/proc/self"):
        marked = find_carriers(os.environ[MARK]) if MARK in os.environ else set()
        return (find_descendants(os.getpid()) | marked) - {os.getpid()}
    try:
        os.killpg(program.pid, 0)
    except (OSError, AttributeError):
        return {program.pid} if program.returncode is None else set()
    return {program.pid}


def _end(program: subprocess.Popen[bytes]) -> None:
    """Ask all of them to end, and make those end that do not."""
    _on_signals(signal.SIG_IGN)
    for kind in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        deadline = time.monotonic() + GRACE
        asked: set[int] = set()
        while (left := _find_family(program)) and time.monotonic() < deadline:
            for pid in left - asked:
                _send(pid, kind, group=pid == program.pid)
            asked |= left
            time.sleep(_LOOK / 4)
    if program.returncode is None:
        program.wait()


def _send(pid: int, kind: int, *, group: bool) -> None:
    try:
        if group and hasattr(os, "killpg"):
            os.killpg(pid, kind)
        else:
            os.kill(pid, kind)
    except OSError:  # it has just gone
        pass


if __name__ == "__main__":
    try:
        code = guard(sys.argv[2:])
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
    sys.exit(code)
