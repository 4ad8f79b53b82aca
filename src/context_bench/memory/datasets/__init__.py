"""Datasets for memory systems: each is an iterable of conversations, made or read one at a time."""

from __future__ import annotations

_HOME = "context_bench.memory.datasets"

DATASETS: dict[str, str] = {
    "synthetic-memory": f"{_HOME}.synthetic_memory:load",
    "locomo": f"{_HOME}.long_conversations:load_locomo",
    "longmemeval": f"{_HOME}.question_histories:load_longmemeval",
    "beam": f"{_HOME}.long_conversations:load_beam",
    "convomem": f"{_HOME}.question_histories:load_convomem",
    "halumem": f"{_HOME}.long_conversations:load_halumem",
    "membench": f"{_HOME}.question_histories:load_membench",
}
"""The function that loads each dataset, by the name that `--dataset` takes."""
