"""Every error that context-bench raises on purpose.

ContextBenchError
├── UsageError                  a wrong flag, name or parameter; the CLI exits with 2
│   ├── UnknownName             a name that no component has; carries the nearest ones
│   ├── MissingExtra            a feature whose optional dependency is not installed
│   ├── StartFailed             the proxy under test was started, and did not come up: the last that it said
│   └── DataError               a file or an example that cannot be used: where, and what is wrong
├── StoreError                  the store cannot be read or written: a full disk, a damaged file
├── ScoreClash                  two evaluators emitted one key, or a score is not a number
└── SystemFailure               a system did not answer; becomes `EvalRow.error`, the run goes on
    ├── BadOutput               it returned something that is no result
    └── RequestFailed           an HTTP request did not succeed; carries status and body
        ├── ConnectionFailed    no connection, or it was cut
        ├── LocalShortage       this machine had no file or port left for a connection
        └── TimedOut            no answer within the deadline

Interrupted                     Ctrl-C during a run; a KeyboardInterrupt that carries what was finished

All of them can be pickled, since workers in other processes raise them too: `args` is what the
constructor takes.
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

MAX_LISTED_NAMES = 20  # names beyond which a list is no help in a sentence


class ContextBenchError(Exception):
    """The root of the tree."""


class UsageError(ContextBenchError):
    """The user asked for something that cannot be; one sentence says what to do instead."""


class UnknownName(UsageError, KeyError):
    """No component has that name; `advice` says what is meant where that is known. Also a KeyError, as in a look-up."""

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str = "") -> None:
        self.kind, self.name, self.known, self.advice = kind, name, sorted(known), advice
        super().__init__(kind, name, self.known, advice)

    def __str__(self) -> str:
        hint = self.advice or suggest(self.name, self.known) or self._list()
        return f"unknown {self.kind.replace('_', ' ')} {self.name!r}: {hint}"

    def _list(self) -> str:
        if len(self.known) > MAX_LISTED_NAMES:
            return f"`context-bench {self.kind}s` lists all {len(self.known)}"
        return f"there are: {', '.join(self.known)}" if self.known else "none is registered"


class MissingExtra(UsageError):
    """An optional dependency is needed and not installed."""

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
    """The proxy under test was started, and did not come up."""


class StoreError(ContextBenchError):
    """The store cannot be used, or not any more; what was stored before stays readable."""


class ScoreClash(ContextBenchError):
    """Evaluators that cannot be combined: two of them emit one key."""


class SystemFailure(ContextBenchError):
    """A system failed on one example.

    `metadata` is kept on the row: attempts made, seconds waited.
    """

    def __init__(self, message: str, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.metadata = metadata or {}


class BadOutput(SystemFailure):
    """A system returned something that is no result.

    `wrong_form` says that a server's answer has nothing of the form that was asked for: it is another API.
    """

    wrong_form = False


class RequestFailed(SystemFailure):
    """An HTTP request did not succeed.

    `url` is what was asked, `said` the start of the server's answer; `tapped` is what a tap behind the server saw of
    it, if there is one; `held` are the seconds for which our own event loop was held up meanwhile.
    """

    def __init__(self, message: str, *, status: int | None = None, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message, metadata)
        self.status = status
        self.url: str | None = None
        self.said = ""
        self.tapped: list[dict[str, Any]] | None = None
        self.held = 0.0


class ConnectionFailed(RequestFailed):
    """No connection could be made, or it was cut before the reply was complete.

    `never_connected` tells the first from the second: nothing was sent. `reason` is the message without the place.
    """

    never_connected = False
    reason = ""


class LocalShortage(RequestFailed):
    """No file descriptor, port or buffer was left here for a connection; it says nothing of the server."""


class TimedOut(RequestFailed):
    """No complete answer arrived in time."""


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; `result` holds what was finished, `advice` says how to go on where that is known."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result
        self.advice = ""


def attach_result(error: Exception, result: Any) -> Exception:
    """Put what was finished before an error into its `result`, for whoever catches it."""
    error.result = result  # type: ignore[attr-defined]
    return error


def find_result(error: BaseException) -> Any:
    """Return what was finished before an error ended a run; None when nothing is known of that."""
    return getattr(error, "result", None)


def describe(error: BaseException) -> str:
    """One line for a row: the type and the message, with nothing that speaks to a terminal."""
    try:
        text = printable(str(error))
    except Exception:  # noqa: BLE001 - an exception of somebody else may fail at that too
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def suggest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Ask for the names that a mistyped one may stand for; "" where none is as like it as `cutoff`, from 0 to 1."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=cutoff)
    return f"did you mean {' or '.join(near)}?" if near else ""


def suggest_file(path: str | Path, cutoff: float = 0.75) -> str:
    """Ask, after a semicolon, for the files beside a missing one that it may stand for; "" where none is like it."""
    try:
        beside = [each.name for each in Path(path).parent.iterdir()]
    except OSError:
        return ""
    meant = suggest(Path(path).name, beside, cutoff)
    return f"; {meant}" if meant else ""


def printable(text: str) -> str:
    """One line that says nothing to a terminal, whatever was in the text."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


# --- warnings


_INNER_PACKAGES = {"context_bench", "asyncio", "concurrent", "threading"}
_caller: list[tuple[dict[str, Any], str, int]] = []  # the one that called last, for warnings from threads


def warn(message: str) -> None:
    """Warn at the line that called this package, which may be in another thread: it is what a user can change."""
    found = _find_caller(sys._getframe(1))
    for globals_, file, line in [found] if found is not None else _caller:
        registry = globals_.setdefault("__warningregistry__", {})
        warnings.warn_explicit(message, UserWarning, file, line, globals_.get("__name__"), registry)
        return
    warnings.warn(message, stacklevel=2)


def remember_caller() -> None:
    """Let warnings from threads point at the line that calls this package now."""
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


DISTRIBUTION = "ctxbench"  # the distribution that this package is installed as
_NAMESAKE = "context-bench"
"""Another project on the package index, which also installs `context_bench`. Two distributions with one import name
overwrite each other's files, so that what fails then fails for no visible reason."""


def describe_install(extra: str) -> str:
    """Say how an extra is installed, from the package index and in a checkout."""
    return f"pip install '{DISTRIBUTION}[{extra}]' (in a checkout: pip install '.[{extra}]')"


@cache
def find_namesake() -> str:
    """Return one sentence when the other distribution is in this environment, else an empty text."""
    if not any(map(_holds_namesake, sys.path)):
        return ""
    from importlib.metadata import PackageNotFoundError, version  # 17 ms, which hardly anybody needs

    try:
        found = version(_NAMESAKE)
    except PackageNotFoundError:
        return ""
    return (
        f"another project, {_NAMESAKE} {found}, is installed here under the same import name context_bench: "
        f"run pip uninstall {_NAMESAKE}, then install {DISTRIBUTION} again"
    )


def _holds_namesake(folder: str) -> bool:
    """Whether a folder of the import path has the metadata of the other distribution."""
    try:
        names = os.listdir(folder or ".")
    except OSError:  # an archive, or a folder that is gone
        return False
    wanted = _NAMESAKE.replace("-", "_")
    return any(
        name.endswith((".dist-info", ".egg-info")) and name.replace("-", "_").lower().startswith(wanted)
        for name in names
    )
