"""Every error that context-bench raises on purpose.

ContextBenchError
├── UsageError                  a wrong flag, name or parameter; the CLI exits with 2
│   ├── UnknownName             a name that no component has; carries the nearest ones
│   ├── MissingExtra            a feature whose optional dependency is not installed
│   ├── StartFailed             the proxy under test did not start; carries the end of its output
│   └── DataError               a file or an example that cannot be used: where, and why
├── StoreError                  the store cannot be read or written: a full disk, a damaged file
├── ScoreClash                  two evaluators emitted one key, or a score is not a number
└── SystemFailure               a system did not answer; becomes `EvalRow.error`, the run continues
    ├── BadOutput               it returned something that is not a result
    └── RequestFailed           an HTTP request failed; carries status and body
        ├── ConnectionFailed    no connection, or it was cut
        ├── LocalShortage       this machine ran out of files or ports for connections
        └── TimedOut            no answer within the deadline

Interrupted                     Ctrl-C during a run; a KeyboardInterrupt that carries the finished part

All of them can be pickled, because workers in other processes raise them too: `args` are the constructor's arguments.
"""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = [
    "BadOutput", "ConnectionFailed", "ContextBenchError", "DataError", "Interrupted", "LocalShortage", "MissingExtra",
    "RequestFailed", "ScoreClash", "StartFailed", "StoreError", "SystemFailure", "TimedOut", "UnknownName",
    "UsageError", "attach_result", "describe", "find_result", "printable", "remember_caller", "suggest",
    "suggest_file", "warn",
]  # fmt: skip

MAX_LISTED_NAMES = 20  # a sentence with more names does not help


class ContextBenchError(Exception):
    """Base class of all errors that context-bench raises on purpose."""


class UsageError(ContextBenchError):
    """The user asked for something impossible; the message says what to do instead."""


class UnknownName(UsageError, KeyError):
    """No component has that name; `advice` replaces the suggestion of similar names. Also a KeyError."""

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str = "") -> None:
        self.kind, self.name, self.known, self.advice = kind, name, sorted(known), advice
        super().__init__(kind, name, self.known, advice)

    def __str__(self) -> str:
        hint = self.advice or suggest(self.name, self.known) or self._list()
        return f"unknown {self.kind.replace('_', ' ')} {self.name!r}: {hint}"

    def _list(self) -> str:
        if len(self.known) > MAX_LISTED_NAMES:
            return f"`context-bench {self.kind}s` lists all {len(self.known)}"
        return f"choose from {', '.join(self.known)}" if self.known else "none is registered"


class MissingExtra(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(what, extra)

    def __str__(self) -> str:
        other = find_namesake()
        needs = f"{self.what} needs an optional dependency: {describe_install(self.extra)}"
        return f"{needs}; {other}" if other else needs


class DataError(UsageError):
    """A file or an example cannot be used."""


class StartFailed(UsageError):
    """The proxy under test did not start."""


class StoreError(ContextBenchError):
    """The store cannot be used, or can no longer be used; earlier results stay readable."""


class ScoreClash(ContextBenchError):
    """Evaluators cannot be combined, because two of them emit the same key."""


class SystemFailure(ContextBenchError):
    """A system failed on one example.

    The row keeps `metadata`, such as the number of attempts and the seconds waited.
    """

    def __init__(self, message: str, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.metadata = metadata or {}


class BadOutput(SystemFailure):
    """A system returned something that is not a result.

    `wrong_form` means that the server speaks another API: its answer has none of the expected fields.
    """

    wrong_form = False


class RequestFailed(SystemFailure):
    """An HTTP request failed.

    `said` is the start of the server's answer. `tapped` lists the calls that a tap behind the server recorded for it,
    if there is a tap. `held` is the number of seconds that our own event loop was blocked during the request.
    """

    def __init__(self, message: str, *, status: int | None = None, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message, metadata)
        self.status = status
        self.url: str | None = None
        self.said = ""
        self.tapped: list[dict[str, Any]] | None = None
        self.held = 0.0


class ConnectionFailed(RequestFailed):
    """No connection could be made, or it broke before the reply was complete.

    `never_connected` is set if no connection could be made, so nothing was sent. `reason` is the message without the
    server's address.
    """

    never_connected = False
    reason = ""


class LocalShortage(RequestFailed):
    """This machine had no file descriptor, port or buffer left for a connection; the server may be fine."""


class TimedOut(RequestFailed):
    """No complete answer arrived in time."""


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; `result` holds the finished part, `advice` says how to continue, if known."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result
        self.advice = ""


def attach_result(error: Exception, result: Any) -> Exception:
    """Attach the part of a run that was finished before an error to the error, as `result`."""
    error.result = result  # type: ignore[attr-defined]
    return error


def find_result(error: BaseException) -> Any:
    """Return the result that `attach_result` attached, or None."""
    return getattr(error, "result", None)


def describe(error: BaseException) -> str:
    """Return the error's type and message in one line, without control characters."""
    try:
        text = printable(str(error))
    except Exception:  # noqa: BLE001 - an exception's own __str__ may fail
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def suggest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return "did you mean ...?" with names similar to a mistyped one (`cutoff` from 0 to 1); "" for none."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}?" if near else ""


def suggest_file(path: str | Path, cutoff: float = 0.75) -> str:
    """Return "; did you mean ...?" with files in the folder of a missing file; "" if none is similar."""
    try:
        beside = [each.name for each in Path(path).parent.iterdir()]
    except OSError:
        return ""
    meant = suggest(Path(path).name, beside, cutoff)
    return f"; {meant}" if meant else ""


def printable(text: str) -> str:
    """Return the text in one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


# --- warnings


_INNER_PACKAGES = {"context_bench", "asyncio", "concurrent", "threading"}
_caller: list[tuple[dict[str, Any], str, int]] = []  # the last caller from outside, for warnings from threads


def warn(message: str) -> None:
    """Warn at the user's line that called this package, which may be in another thread."""
    found = _find_caller(sys._getframe(1))
    for globals_, file, line in [found] if found is not None else _caller:
        registry = globals_.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, UserWarning, file, line, globals_.get("__name__"), registry)
        return
    warnings.warn(message, stacklevel=2)


def remember_caller() -> None:
    """Remember the user's line that calls this package now: warnings from threads will point to it."""
    found = _find_caller(sys._getframe(1))
    if found is not None:
        _caller[:] = [found]


def _find_caller(frame: FrameType | None) -> tuple[dict[str, Any], str, int] | None:
    while frame is not None:
        package = frame.f_globals.get("__package__") or frame.f_globals.get("__name__") or ""
        if package.partition(".")[0] not in _INNER_PACKAGES:
            return frame.f_globals, frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


DISTRIBUTION = "ctxbench"  # its name on the package index
_NAMESAKE = "context-bench"
"""Another project on the package index that also installs `context_bench`. Two distributions with the same import name
overwrite each other's files, which causes errors without a visible reason."""


def describe_install(extra: str) -> str:
    """Say how to install an extra, from the package index and in a checkout."""
    return f"pip install '{DISTRIBUTION}[{extra}]' (in a checkout: pip install '.[{extra}]')"


@cache
def find_namesake() -> str:
    """Return a sentence if the other distribution is installed in this environment, else ""."""
    if not any(map(_holds_namesake, sys.path)):
        return ""
    from importlib.metadata import PackageNotFoundError, version  # takes 17 ms and is seldom needed

    try:
        found = version(_NAMESAKE)
    except PackageNotFoundError:
        return ""
    return (
        f"another project, {_NAMESAKE} {found}, is installed here under the same import name context_bench: "
        f"run pip uninstall {_NAMESAKE}, then install {DISTRIBUTION} again"
    )


def _holds_namesake(folder: str) -> bool:
    """Whether a folder of the import path contains the metadata of the other distribution."""
    try:
        names = os.listdir(folder or ".")
    except OSError:  # an archive, or a missing folder
        return False
    wanted = _NAMESAKE.replace("-", "_")
    return any(
        name.endswith((".dist-info", ".egg-info")) and name.replace("-", "_").lower().startswith(wanted)
        for name in names
    )
