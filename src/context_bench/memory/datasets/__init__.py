"""Datasets for memory systems: each is an iterable of conversations, made or read one at a time."""

from __future__ import annotations

_HOME = "context_bench.memory.datasets"

DATASETS: dict[str, str] = {
    "locomo": f"{_HOME}.locomo:load",
    "longmemeval": f"{_HOME}.longmemeval:load",
    "synthetic-memory": f"{_HOME}.synthetic_memory:load",
}
"""The function that loads each dataset, by the name that `--dataset` takes."""

__all__ = ["DATASETS"]
