"""The first code inside the sandbox: set limits, drop root, and close the job's file."""

from __future__ import annotations

import posix
import resource
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def confine(job: dict[str, Any]) -> None:
    """Confine this process and its children: hard limits, a CPU set, and a user id that owns nothing."""
    for name, value in job["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if job["cpus"] is not None:
        posix.sched_setaffinity(0, job["cpus"])
    user = job["user"]
    if user is not None:
        posix.setgroups([])
        posix.setresgid(user, user, user)
        posix.setresuid(user, user, user)
    null = posix.open("/dev/null", posix.O_RDWR)
    posix.dup2(null, 0)
    posix.close(null)
    if "" in sys.path:  # nothing may be imported from the working directory
        sys.path.remove("")


def linger() -> NoReturn:
    """Wait to be killed, because a sandbox that ends by itself is cleaned up more slowly; exit after a while."""
    time.sleep(5)
    posix._exit(0)


main = confine  # run alone, it shows whether a sandbox works
