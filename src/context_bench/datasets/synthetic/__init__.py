"""Seeded synthetic datasets: no download, any length, and the evidence for each answer is known exactly.

Every generator yields examples lazily, gives the same bytes for the same parameters in every process and on
every Python version, and checks its parameters when it is called. Lengths are in cl100k_base tokens.
`meta["depth"]` (or `depths`, one for each span of `evidence`) is the achieved depth by tokens: what stands before
the evidence, as a share of all the rest.
"""

from __future__ import annotations

from context_bench.datasets.synthetic.haystacks import aggregate, kv, multi_needle, needle, tracking
from context_bench.datasets.synthetic.json_logs import json_logs
from context_bench.datasets.synthetic.rerank import rerank

__all__ = ["aggregate", "json_logs", "kv", "multi_needle", "needle", "rerank", "tracking"]
