"""The number of connections that this process may have: each is an open file, and the usual limit is low."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import ExitStack

from context_bench.errors import warn

_WANTED_FILES = 4096  # for a thousand forwarded streams (two connections each) and other open files
_MAX_FILES = 65_536
"""The highest limit to set: child processes inherit it, and some programs loop over all possible open files."""
_RESERVED_FILES = 64  # open files other than connections: the store, pipes of started programs, sandboxes, data
_FILES_PER_REQUEST = 3
"""Connections of a request if the tap is in this process: to the proxy, from it to the tap, and to the model."""
_MIN_FREE_FILES = 8

SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
"""System errors about too few files, ports or buffers on this machine: not the server's fault."""


def allow_many_files() -> int:
    """Raise the limit of open files as far as the system allows; return the new limit."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return _MAX_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, most = (_MAX_FILES if limit == resource.RLIM_INFINITY else limit for limit in (soft, hard))
    wanted = max(soft, min(most, _MAX_FILES))
    if wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # the kernel's own limit is lower still
            wanted = soft
    return wanted


def connection_limit() -> int:
    """Raise the limit of open files, and return how many requests it allows in flight."""
    free = allow_many_files() - _count_open_files() - _RESERVED_FILES
    return max(4, free // _FILES_PER_REQUEST)


def warn_of_few_files() -> None:
    """Warn about a low limit; always with the same text, so that it is shown once."""
    files = allow_many_files()
    if files < _WANTED_FILES:
        warn(f"only {files} files may be open at once, so requests wait for each other: ulimit -n raises the limit")


def is_out_of_files() -> bool:
    """Whether this process can open almost no files now; a few may have become free since a request failed."""
    with ExitStack() as stack:
        try:
            for _ in range(_MIN_FREE_FILES):
                stack.enter_context(socket.socket())
        except OSError as error:
            return error.errno in SHORTAGES
    return False


def _count_open_files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return len(os.listdir(folder))
        except OSError:
            continue
    return _RESERVED_FILES
