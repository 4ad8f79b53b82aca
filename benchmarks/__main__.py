"""Every benchmark, one after the other."""

from __future__ import annotations

from importlib import import_module

for name in (
    "fresh",
    "throughput",
    "instructions",
    "function",
    "store_size",
    "bundles",
    "client",
    "full_endpoint",
    "busy_api",
    "memory",
    "memory_systems",
    "resume",
    "compare",
    "blind_spots",
    "diff",
    "evaluators",
    "code_execution",
    "tap",
    "traffic",
    "replay",
    "view",
    "peers",
):
    print(f"\n== {name}", flush=True)
    import_module(f"benchmarks.{name}").main()
