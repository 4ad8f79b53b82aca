"""Does what process 1 of a container must do: collect orphans that have ended, and pass signals on.

Nobody else does it there. The command itself runs as a child, so that it collects its own children as anywhere else.
"""

from __future__ import annotations

import os
import signal

__all__ = ["stand_in_as_init"]

_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def stand_in_as_init() -> None:
    """Return in a child process; the caller itself becomes the init process, and ends as the child does."""
    if not hasattr(signal, "sigwaitinfo"):  # macOS and Windows have no containers of this kind
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
        elif told.si_code <= 0:  # sent by somebody; one from the terminal has reached the child already
            os.kill(child, told.si_signo)


def _collect(child: int) -> None:
    """Collect all that have ended, and end with the child's exit code if it is among them."""
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
