"""Which members of the protocol a memory system has, looked up once and in one place.

`context_bench.types.MemorySystem` documents them; no other attribute of a memory system is looked at.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError

__all__ = ["Members", "is_factory", "read_members"]

_REQUIRED = ("reset", "ingest", "query")
_OPTIONAL = ("retrieve", "flush", "memories", "forget", "restore", "point_to")


class Members:
    """The methods of one memory system.

    Attributes:
        system: The memory system.
        is_control: It shows where others lie, and is not ranked.
        takes_dates: It reads the timestamps of turns itself; for others the date stands before the text.
        takes_user: Both `ingest` and `query` (and `retrieve`, where it is there) say whose memory is meant.
    """

    def __init__(self, system: Any) -> None:
        self.system = system
        self._methods = {name: found for name in (*_REQUIRED, *_OPTIONAL) if (found := _find_method(system, name))}
        self.is_control = getattr(system, "is_control", False) is True
        self.takes_dates = getattr(system, "takes_dates", False) is True
        asked = [name for name in ("ingest", "query", "retrieve") if name in self]
        self.takes_user = all(_accepts(self._methods[name], "user") for name in asked)

    def __contains__(self, name: str) -> bool:
        return name in self._methods

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._methods[name]

    def filter_arguments(self, name: str, **given: Any) -> dict[str, Any]:
        """Return those named arguments that a method accepts; what is None is left to the method."""
        method = self._methods[name]
        return {key: value for key, value in given.items() if value is not None and _accepts(method, key)}

    @property
    def storage(self) -> Path | None:
        """The file or folder that the system says it keeps its memory in."""
        path = getattr(self.system, "storage", None)
        return Path(path) if isinstance(path, str | Path) else None


def is_factory(found: Any) -> bool:
    """Whether it makes a memory system, and is none itself."""
    return isinstance(found, type) or (callable(found) and not hasattr(found, "ingest"))


def read_members(system: Any) -> Members:
    """Look up the members of a memory system; UsageError names what is missing."""
    if isinstance(system, type):
        raise UsageError(f"{system.__name__} is a class: pass an instance of it, {system.__name__}(...)")
    members = Members(system)
    missing = [f"{name}()" for name in _REQUIRED if name not in members]
    name = getattr(system, "name", None)
    if not isinstance(name, str) or not name:
        missing.insert(0, "name (a text)")
    if missing:
        raise UsageError(f"a {type(system).__name__} is not a memory system: it has no {', '.join(missing)}")
    return members


def _find_method(system: Any, name: str) -> Callable[..., Any] | None:
    """Find a method, in its asynchronous form where there is one: `aquery` before `query`."""
    for spelled in (f"a{name}", name):
        found = getattr(system, spelled, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def _accepts(method: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
