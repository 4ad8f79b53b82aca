"""What is said of records that are damaged: one sentence for each, and no more than a few."""

from __future__ import annotations

import warnings
from pathlib import Path

__all__ = ["Damage"]

_MOST = 10


class Damage:
    """Tells which records of a store are damaged, each once.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: set[str] = set()

    def tell(self, what: str, then: str) -> None:
        """Say what is damaged, and what becomes of it; after a few only that there are more."""
        if what in self._told or len(self._told) > _MOST:
            return
        self._told.add(what)
        text = f"{what} in {self._path} is damaged: {then}"
        if len(self._told) > _MOST:
            text = f"more records in {self._path} are damaged than are named here: use another --cache-dir"
        warnings.warn(text, stacklevel=3)
