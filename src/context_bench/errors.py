"""Every error that context-bench raises on purpose.

ContextBenchError
├── UsageError                  a wrong flag, name or parameter; the CLI exits with 2
│   ├── UnknownName             a name that no component has; carries the nearest ones
│   ├── MissingExtra            a feature whose optional dependency is not installed
│   └── DataError               a file or an example that cannot be used: where, and what is wrong
├── ScoreClash                  two evaluators emitted one key, or a score is no number
└── SystemFailure               a system did not answer; becomes `EvalRow.error`, the run goes on
    ├── BadOutput               it returned something that is no result
    └── RequestFailed           an HTTP request did not succeed; carries status and body
        ├── ConnectionFailed    no connection, or it was cut
        └── TimedOut            no answer within the deadline
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = [
    "BadOutput",
    "ConnectionFailed",
    "ContextBenchError",
    "DataError",
    "MissingExtra",
    "RequestFailed",
    "ScoreClash",
    "SystemFailure",
    "TimedOut",
    "UnknownName",
    "UsageError",
    "describe",
]


class ContextBenchError(Exception):
    """The root of the tree."""


class UsageError(ContextBenchError):
    """The user asked for something that cannot be; one sentence says what to do instead."""


class UnknownName(UsageError, KeyError):
    """No component has that name. Also a KeyError, as `registry.get` is a look-up."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        if near:
            hint = "did you mean " + " or ".join(near) + "?"
        elif known:
            hint = "there are: " + ", ".join(known)
        else:
            hint = "none is registered"
        self.kind, self.name = kind, name
        super().__init__(f"unknown {kind} {name!r}: {hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtra(UsageError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: pip install 'context-bench[{extra}]'")


class DataError(UsageError):
    """A file or an example cannot be used."""


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
    """A system returned something that is no result."""


class RequestFailed(SystemFailure):
    """An HTTP request did not succeed."""

    def __init__(self, message: str, *, status: int | None = None, metadata: dict[str, Any] | None = None) -> None:
        super().__init__(message, metadata)
        self.status = status


class ConnectionFailed(RequestFailed):
    """No connection could be made, or it was cut before the reply was complete."""


class TimedOut(RequestFailed):
    """No complete answer arrived in time."""


def describe(error: BaseException) -> str:
    """One line for a row: the type and the message, with nothing that speaks to a terminal."""
    text = "".join(char if char.isprintable() else " " for char in str(error))
    text = " ".join(text.split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
