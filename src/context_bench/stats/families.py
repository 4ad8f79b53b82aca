"""Many comparisons at once: Holm's correction keeps the chance of any false alarm in the family at its level."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """Give the corrected p-values, in the order given; one that is NaN stays so and is not counted."""
    order = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected, largest = [math.nan] * len(p_values), 0.0
    for step, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - step)))
        corrected[place] = largest
    return corrected
