"""The depth of the fact in each example, and how its id states it."""

from __future__ import annotations


def choose_depth(depth: float | None, index: int, n: int) -> float:
    """Return the asked depth of example `index` of `n`: the given one, or an even spread from 0 to 1."""
    if depth is not None:
        return float(depth)
    return index / (n - 1) if n > 1 else 0.5


def write_depth_tag(depth: float | None, index: int, n: int) -> str:
    """Return the depth as a part of an id; a spread also names `n`, as its depths depend on it."""
    asked = choose_depth(depth, index, n)
    if depth is None:
        return f"d{asked:.2f}-of{n}"
    return f"d{asked:.2f}" if round(asked, 2) == asked else f"d{asked!r}"
