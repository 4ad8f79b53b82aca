"""Scores of memory systems: what was retrieved, what was answered, and what is left in the store.

All are ordinary evaluators. They read `original["memory"]`, the record of the question, and of the answer `retrieved`
(before rendering), `context` (what the reader got), `response`, and `store` (see `probes`).
"""

from __future__ import annotations

from context_bench._lazy import lazy_names

__all__ = [
    "Abstention",
    "LocomoScore",
    "MemoryProbes",
    "MemoryRetrieval",
    "ProbeShares",
    "find_excess_obedience",
    "find_leftovers",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "answers": ("Abstention", "LocomoScore", "MemoryChoice"),
        "retrieval": ("LongMemEvalRetrieval", "MemoryRetrieval"),
        "probes": ("MemoryProbes", "ProbeShares", "find_excess_obedience", "find_leftovers"),
    },
)
