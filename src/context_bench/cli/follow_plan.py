"""`--plan FILE`: a run takes baseline and margin from a plan that was fixed in advance, and records it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_bench.cli.options import RunOptions

__all__ = ["Comparing", "choose_comparison"]


@dataclass(frozen=True)
class Comparing:
    """How the systems of a run are compared, and what is recorded of the plan behind that."""

    baseline: str | None
    margin: float | None
    record: dict[str, Any] = field(default_factory=dict)


def choose_comparison(options: RunOptions, systems: Sequence[str]) -> Comparing:
    """Choose baseline and margin: what the flags say, else the plan; a planned baseline that is not there deviates."""
    if options.plan is None:
        return Comparing(options.baseline, options.margin)
    from context_bench.compare.plans import count_earlier, read_lock
    from context_bench.store import Store

    lock = read_lock(Path(options.plan))
    earlier = None
    if options.store is not None:
        earlier = 0
        if Path(options.store).is_dir():
            with Store(options.store, readonly=True, create=False) as store:
                earlier = count_earlier(lock, (info.config for info in store.runs()))
    baseline = options.baseline or (lock.baseline if lock.baseline in systems else None)
    record = {"plan": {"file": options.plan, "lock": lock.to_dict(), "earlier_runs": earlier}}
    return Comparing(baseline, options.margin or lock.margin, record)
