"""The store of everything that was paid for: answers, scores, rows and runs, in one SQLite file for many processes."""

from context_bench.store.backend import RunInfo, StoreBackend
from context_bench.store.store import Store

__all__ = ["RunInfo", "Store", "StoreBackend"]
