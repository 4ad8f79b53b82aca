"""Exact tests of paired results, as a cross-check of the t form: they assume nothing but the pairing."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.stats.distributions import binomial_cdf

__all__ = ["mcnemar_p", "sign_flip_p"]

ENUMERATED = 16
"""Up to so many changes, all 2^n signs are gone through."""


def mcnemar_p(up: int, down: int) -> float:
    """Give the exact two-sided p-value of McNemar's test, from the examples that only one of the two passed."""
    return min(1.0, 2 * binomial_cdf(min(up, down), up + down, 0.5)) if up + down else 1.0


def sign_flip_p(differences: Sequence[float], *, draws: int = 10_000, seed: int = 0) -> float:
    """Give the two-sided p-value of the sign-flip permutation test; exact with at most 16 changes, else by draws.

    With `draws` random signs p cannot fall below 1 / (draws + 1), and so cannot survive Holm beyond draws / 20
    comparisons.
    """
    changes = [abs(change) for change in differences if change]
    seen = abs(sum(differences)) * (1 - 1e-12) - 1e-15
    if not changes:
        return 1.0
    if len(changes) <= ENUMERATED:
        sums = [0.0]
        for change in changes:
            sums = [total + sign for total in sums for sign in (change, -change)]
        return sum(abs(total) >= seen for total in sums) / len(sums)
    import random

    source, whole, hits = random.Random(seed), sum(changes), 0
    for _ in range(draws):
        bits = source.getrandbits(len(changes))
        flipped = sum([change for place, change in enumerate(changes) if bits >> place & 1])
        hits += abs(whole - 2 * flipped) >= seen
    return (hits + 1) / (draws + 1)
