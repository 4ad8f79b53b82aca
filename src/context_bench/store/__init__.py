"""What was paid for is kept: answers, scores, rows and runs, in one SQLite file that many processes may share."""

from context_bench.store.store import RunInfo, Store

__all__ = ["RunInfo", "Store"]
