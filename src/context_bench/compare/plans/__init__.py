"""Before a run is paid for: how many examples a question needs, and what was fixed in advance."""

from __future__ import annotations

from context_bench.compare.plans.lock import Lock, describe_lock, find_deviations, read_lock, write_lock
from context_bench.compare.plans.needs import Needs, Target, assume_needs, find_needs

__all__ = [
    "Lock",
    "Needs",
    "Target",
    "assume_needs",
    "describe_lock",
    "find_deviations",
    "find_needs",
    "read_lock",
    "write_lock",
]
