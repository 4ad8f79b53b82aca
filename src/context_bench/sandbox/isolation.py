"""Finds a sandbox that works on this machine, or says in one sentence what is missing."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache

from context_bench.errors import UsageError
from context_bench.sandbox.bubblewrap import Bubblewrap
from context_bench.sandbox.interpreter import Isolation
from context_bench.sandbox.plain import Plain
from context_bench.sandbox.seccomp import build_filter
from context_bench.sandbox.syscalls import MACHINES

__all__ = ["SANDBOXES", "find_isolation"]

SANDBOXES = ("auto", "bubblewrap", "none")

_OTHERWISE = "or accept the risk with CodeExecution(sandbox='none') or --unsafe-code"


def find_isolation(sandbox: str) -> Isolation:
    """Return the isolation of that name; "auto" is the best that there is, and never "none".

    Raises:
        UsageError: When there is no such isolation here.
    """
    if os.name != "posix":
        raise UsageError("model-written code cannot be run on this system: use Linux, a container or WSL")
    if sandbox == "none":
        return Plain()
    found = _bubblewrap()
    if isinstance(found, str):
        raise UsageError(f"model-written code needs a sandbox: {found}, {_OTHERWISE}")
    return found


@cache
def _bubblewrap() -> Bubblewrap | str:
    """Return the sandbox, tried out once; or what to do to get it."""
    if sys.platform != "linux":
        return "there is none for this system, so use Linux or a container"
    program = shutil.which("bwrap")
    if program is None:
        return "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
    machine = os.uname().machine
    if build_filter(machine) is None:
        return f"system calls are filtered on {' and '.join(MACHINES)} and this is {machine}, so use another machine"
    complaint = None
    for disables_userns in [True, False] if os.geteuid() else [False]:
        isolation = Bubblewrap(program, disables_userns=disables_userns)
        complaint = isolation.complaint()
        if complaint is None:
            return isolation
    return f"make bubblewrap 0.7 or newer work here, which says {complaint!r}"
