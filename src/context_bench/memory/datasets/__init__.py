"""The memory datasets that ship, by name."""

from __future__ import annotations

__all__ = ["DATASETS"]

DATASETS: dict[str, str] = dict.fromkeys(("locomo", "longmemeval"), "context_bench.memory.datasets:DATASETS")
"""From names to `module:function`."""
