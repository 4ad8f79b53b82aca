"""Seeded synthetic datasets: no download, any length, and the evidence for each answer is known exactly.

Every generator yields examples lazily, gives the same bytes for the same parameters in every process and on every
Python version, and checks its parameters when it is called. All take `n`, the number of examples, and `seed`. `length`
is the length of each context in tokens (cl100k_base): it is never exceeded, and missed by at most 2%. `depth` is the
place of the fact, from 0 (start) to 1 (end); None spreads the examples evenly over 0 to 1. `meta["depth"]` (or
`depths`, one for each span of `evidence`) is the achieved depth by tokens: the tokens before the evidence, as a share
of all other tokens. `agent_trace` measures the length of its whole conversation, and places its fact by age in turns.
"""

from __future__ import annotations

from context_bench.datasets.synthetic.agent_trace import agent_trace
from context_bench.datasets.synthetic.haystacks import aggregate, kv, multi_needle, needle, rerank, tracking
from context_bench.datasets.synthetic.json_logs import json_logs

__all__ = ["agent_trace", "aggregate", "json_logs", "kv", "multi_needle", "needle", "rerank", "tracking"]
