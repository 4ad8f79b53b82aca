"""Checks of the generators' parameters, made when a generator is called and not when it is first read."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.errors import UsageError


def check_whole(name: str, value: int, low: int, high: int | None = None) -> None:
    """Refuse a `value` that is not a whole number from `low` to `high`."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high):
        return
    allowed = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise UsageError(f"{name} must be a whole number {allowed} (got {value!r})")


def check_share(name: str, value: float | None) -> None:
    """Refuse a `value` that is neither None nor a number from 0 to 1."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or (number and 0 <= value <= 1):
        return
    raise UsageError(f"{name} must be a number from 0 (start) to 1 (end), or None to spread it (got {value!r})")


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a `value` that is not `allowed`."""
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")


def check_cell(length: int, floor: int, n: int, seed: int, *, what: str) -> None:
    """Check what every generator takes; `floor` is the shortest context that holds `what`."""
    check_whole("length", length, 1)
    if length < floor:
        raise UsageError(f"length={length} is too short to hold {what}: use at least {floor} tokens")
    check_whole("n", n, 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed must be a whole number (got {seed!r})")
