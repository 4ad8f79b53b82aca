"""The process of a command: act as process 1 of a container, and handle closed standard streams."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, TextIO

_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def stand_in_as_init() -> None:
    """Return in a child process; the parent becomes the container's init process, and exits with the child's code.

    The init process collects ended orphans and forwards signals. The command runs as its child, so it collects its own
    children as usual.
    """
    if not hasattr(signal, "sigwaitinfo"):  # no such containers on macOS and Windows
        return
    watched = {signal.SIGCHLD, *(getattr(signal, name) for name in _PASSED_ON)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    child = os.fork()
    if not child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        told = signal.sigwaitinfo(watched)
        if told.si_signo == signal.SIGCHLD:
            _collect(child)
        elif told.si_code <= 0:  # sent by a process; a signal of the terminal has already reached the child
            os.kill(child, told.si_signo)


def _collect(child: int) -> None:
    """Collect ended processes; exit with the child's exit code if it is among them."""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == 0:
            return
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


class _Tolerant:
    """A text stream that ignores write errors and otherwise behaves like the stream it wraps."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError):  # a pipe without a reader, a full disk, a closed file
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError):
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def keep_streams_usable() -> None:
    """Open standard streams that were closed at the start, and ignore errors of writing messages.

    Otherwise the next opened file, such as the store, would get the closed stream's number and receive our messages.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    if sys.stderr is sys.__stderr__ or sys.__stderr__ is None:
        sys.stderr = _Tolerant(sys.stderr)
