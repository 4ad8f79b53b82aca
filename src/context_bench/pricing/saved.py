"""Dollars that one system saves against another on the same examples."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

__all__ = ["Saving", "find_saving"]


@dataclass(frozen=True)
class Saving:
    """The savings of a system. Whether they may be claimed is for a verdict on its quality to say.

    Attributes:
        dollars: In all, over the pairs; negative when the system costs more.
        per_1k: For a thousand examples; None without a pair.
        share: Of what the baseline costs; None when that is nothing.
        pairs: Examples whose cost is known on both sides.
        left_out: Examples whose cost is known on one side only, or on none.
    """

    dollars: float
    per_1k: float | None
    share: float | None
    pairs: int
    left_out: int


def find_saving(costs: Mapping[Hashable, float | None], baseline: Mapping[Hashable, float | None]) -> Saving:
    """Compare what a system and a baseline cost, example by example.

    Args:
        costs: Dollars by example (and repeat); None where they are not known.
        baseline: The same of the baseline.
    """
    pairs = [
        (cost, before) for key, cost in costs.items() if cost is not None and (before := baseline.get(key)) is not None
    ]
    saved = math.fsum(before - cost for cost, before in pairs)
    spent = math.fsum(before for _, before in pairs)
    return Saving(
        dollars=saved,
        per_1k=saved / len(pairs) * 1000 if pairs else None,
        share=saved / spent if spent else None,
        pairs=len(pairs),
        left_out=len(costs.keys() | baseline.keys()) - len(pairs),
    )
