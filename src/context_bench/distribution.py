"""The distribution that this package is installed as, and the other one that has the same import name.

The package index has a project called `context-bench` that also installs `context_bench`. Two distributions with one
import name overwrite each other's files, so that what fails then fails for no visible reason.
"""

from __future__ import annotations

from functools import cache

__all__ = ["DISTRIBUTION", "describe_install", "find_namesake"]

DISTRIBUTION = "ctxbench"
_NAMESAKE = "context-bench"


def describe_install(extra: str) -> str:
    """Say how an extra is installed, from the package index and in a checkout."""
    return f"pip install '{DISTRIBUTION}[{extra}]' (in a checkout: pip install '.[{extra}]')"


@cache
def find_namesake() -> str:
    """Return one sentence when the other distribution is in this environment, else an empty text."""
    from importlib.metadata import PackageNotFoundError, version  # not at the top: `--help` does without it

    try:
        found = version(_NAMESAKE)
    except PackageNotFoundError:
        return ""
    return (
        f"another project, {_NAMESAKE} {found}, is installed here under the same import name context_bench: "
        f"run pip uninstall {_NAMESAKE}, then install {DISTRIBUTION} again"
    )
