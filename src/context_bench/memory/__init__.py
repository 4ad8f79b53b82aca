"""Memory systems: each conversation is ingested once, and its questions are the examples of a run.

from context_bench import evaluate_memory

result = evaluate_memory([MyMemory(), "bm25", "naive"], "synthetic-memory")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import lazy_names

if TYPE_CHECKING:
    from context_bench.memory.evaluation import BUDGETS, aevaluate_memory, evaluate_memory

_HOMES = {"evaluation": ("BUDGETS", "aevaluate_memory", "evaluate_memory")}

__all__ = ["BUDGETS", "aevaluate_memory", "evaluate_memory"]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
