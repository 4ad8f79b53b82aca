"""Real records of memory datasets, where CONTEXT_BENCH_DATA has them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from context_bench.memory.conversations import Conversation


def find_locomo() -> Path:
    """Return the folder that holds LoCoMo, or skip the test."""
    folder = os.environ.get("CONTEXT_BENCH_DATA")
    if not folder or not (Path(folder) / "locomo" / "locomo10.json").is_file():
        pytest.skip("CONTEXT_BENCH_DATA does not say where LoCoMo is")
    return Path(folder)


@cache
def _read_locomo(folder: Path) -> list[Conversation]:
    from context_bench.memory.datasets.long_conversations import load_locomo as load

    return list(load(data_dir=folder))


def read_locomo() -> list[Conversation]:
    """Read LoCoMo once for all tests."""
    return _read_locomo(find_locomo())
