"""How many connections this process may hold: each is an open file, and the usual limit is low."""

from __future__ import annotations

import warnings

__all__ = ["allow_many_files"]

_ENOUGH = 4096
"""For a thousand streams that are passed on: two connections each, and what else is open."""
_PLENTY = 65_536
"""What we start inherits the limit, and some programs walk through all files that might be open."""


def allow_many_files() -> None:
    """Raise the limit of open files to what the system lets us have, and tell when that is little."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, most = (_PLENTY if limit == resource.RLIM_INFINITY else limit for limit in (soft, hard))
    wanted = max(soft, min(most, _PLENTY))
    if wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # the kernel's own limit is lower still
            wanted = soft
    if wanted < _ENOUGH:
        warnings.warn(
            f"only {wanted} files may be open at once: enough for some {wanted // 4} streams (see ulimit -n)",
            stacklevel=2,
        )
