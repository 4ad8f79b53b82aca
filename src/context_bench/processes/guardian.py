"""A guardian process for a program that we start: the program never outlives us, however we end.

Usage: `guardian.py DIRECTORY PROGRAM ARGUMENT...`. The guardian starts the program in a new session. It ends the
program with all its descendants as soon as the guardian's stdin has input or is closed: by us at the end of the run, or
by the system when we are killed. Then it removes the directory. When the program and all its descendants have ended,
the guardian exits with the program's exit code. It needs only the standard library.
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

MARK = "CONTEXT_BENCH_STARTED"  # an environment variable of the whole family, with a unique value

TERM_GRACE = 5.0  # seconds between SIGTERM and SIGKILL

CANNOT_START = 127

_POLL_SECONDS, _ORPHAN_POLL_SECONDS = 0.1, 0.5
_PR_SET_CHILD_SUBREAPER = 36


class _EndRequested(BaseException):
    """A signal asks the guardian to end."""


def find_descendants(root: int) -> set[int]:
    """Find the living descendants of a process; none if the system has no /proc."""
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
    """Find the living processes with that mark in the environment, whatever their parent; none without /proc."""
    wanted = f"{MARK}={mark}".encode()
    return {pid for pid, _ in _list_processes() if wanted in _read(pid, "environ").split(b"\0")}


def _list_processes() -> Iterator[tuple[int, int]]:
    """List each living process with the number of its parent."""
    names = os.listdir("/proc") if os.path.isdir("/proc") else []
    for pid in (int(name) for name in names if name.isdigit()):
        fields = _read(pid, "stat").rpartition(b")")[2].split()  # the program's name may contain any character
        if fields and fields[0] not in (b"Z", b"X"):
            yield pid, int(fields[1])


def _read(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:  # it has ended, or belongs to another user
        return b""


def guard(command: list[str]) -> int:
    """Run a program until it and its descendants have ended, or until we are asked to end; return its exit code."""
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
    """Wait until we are asked to end, our parent is gone, or no process is left to guard."""
    asked_to_end = threading.Event()
    threading.Thread(target=_listen, args=(asked_to_end,), daemon=True).start()
    parent = os.getppid()
    while (
        not asked_to_end.wait(_POLL_SECONDS if program.returncode is None else _ORPHAN_POLL_SECONDS)
        and os.getppid() == parent
    ):
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
    """On Linux, become the parent of the family's orphans, so that we can still find them."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except (OSError, AttributeError):
            pass


def _reap(program: subprocess.Popen[bytes]) -> None:
    """Reap ended processes: the program, and adopted orphans."""
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
    """Find the living processes of the family; without /proc, only the leader, which represents its group."""
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
    """Ask all processes to end, and kill those that do not."""
    _on_signals(signal.SIG_IGN)
    for kind in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        deadline = time.monotonic() + TERM_GRACE
        asked: set[int] = set()
        while (left := _find_family(program)) and time.monotonic() < deadline:
            for pid in left - asked:
                _send(pid, kind, group=pid == program.pid)
            asked |= left
            time.sleep(_POLL_SECONDS / 4)
    if program.returncode is None:
        program.wait()


def _send(pid: int, kind: int, *, group: bool) -> None:
    try:
        if group and hasattr(os, "killpg"):
            os.killpg(pid, kind)
        else:
            os.kill(pid, kind)
    except OSError:  # it has just ended
        pass


if __name__ == "__main__":
    try:
        code = guard(sys.argv[2:])
    finally:
        shutil.rmtree(sys.argv[1], ignore_errors=True)
    sys.exit(code)
