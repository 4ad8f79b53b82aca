"""Imports a package when a test first uses it: to collect the tests, no process needs SciPy or an SDK."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

__all__ = ["Later"]


class Later:
    """A module that is imported by the first look-up; the tests of a file are skipped if its package is missing."""

    def __init__(self, name: str, reason: str | None = None) -> None:
        if find_spec(name.partition(".")[0]) is None:
            pytest.skip(reason or f"{name} is not installed", allow_module_level=True)
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.name), name)
