"""Datasets for memory systems: each is an iterable of conversations, made or read one at a time."""

from __future__ import annotations

_HOME = "context_bench.memory.datasets"

DATASETS: dict[str, str] = {
    "synthetic-memory": f"{_HOME}.synthetic_memory:load",
    "locomo": f"{_HOME}.locomo:load",
    "longmemeval": f"{_HOME}.longmemeval:load",
    "beam": f"{_HOME}.beam:load",
    "convomem": f"{_HOME}.convomem:load",
    "halumem": f"{_HOME}.halumem:load",
    "membench": f"{_HOME}.membench:load",
}
"""The function that loads each dataset, by the name that `--dataset` takes."""

FILE_LOADER = f"{_HOME}.conversation_files:load_file"
"""The function that loads a .jsonl or .json file of one's own, by its path."""

__all__ = ["DATASETS", "FILE_LOADER"]
