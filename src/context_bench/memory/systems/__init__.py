"""The built-in memory systems: baselines, controls, two systems that use a model, and vendors' systems in separate
environments.

A memory system under test should beat `bm25`; `oracle` is the upper bound.
"""

from __future__ import annotations

_HOME = "context_bench.memory.systems"

VENDORS: dict[str, str] = {
    "cognee": "context_bench.memory.vendor_memories:Cognee",
    "graphiti": "context_bench.memory.vendor_memories:Graphiti",
    "langmem": "context_bench.memory.vendor_memories:LangMem",
    "mem0": "context_bench.memory.vendor_memories:Mem0",
}
"""The class of each vendor's system, which needs a separate environment and a model."""

SYSTEMS: dict[str, str] = {
    "naive": f"{_HOME}.turn_store:Naive",
    "last": f"{_HOME}.turn_store:Last",
    "closed-book": f"{_HOME}.turn_store:ClosedBook",
    "oracle": f"{_HOME}.turn_store:Oracle",
    "bm25": f"{_HOME}.search:BM25Memory",
    "embedding": f"{_HOME}.search:EmbeddingMemory",
    "hybrid": f"{_HOME}.search:HybridMemory",
    "summary": f"{_HOME}.with_model:SummaryMemory",
    "rlm": f"{_HOME}.with_model:RecursiveMemory",
    **VENDORS,
}
"""The class of each system, by its name for `--system`."""
