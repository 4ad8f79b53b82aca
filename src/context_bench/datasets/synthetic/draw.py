"""Seeded choices that give the same result in every process and on every Python version.

Only `Random.random()` is used, seeded by a string: the standard library promises that its sequence
stays as it is, and makes no such promise for `choice`, `shuffle` or `sample`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A stream of random choices, named by the parts of its seed."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random("/".join(map(str, seed))).random

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random() < probability

    def fraction(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        return self._random()

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[int(self._random() * len(items))]

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """Return `size` different ones of `items`, in random order."""
        pool = list(items)
        for index in range(size):
            other = self.between(index, len(pool) - 1)
            pool[index], pool[other] = pool[other], pool[index]
        return pool[:size]

    def shuffle(self, items: Sequence[T]) -> list[T]:
        """Return all of `items` in random order."""
        return self.sample(items, len(items))

    def digits(self, size: int) -> str:
        """Return a number of exactly `size` digits, as text."""
        return str(self.between(10 ** (size - 1), 10**size - 1))

    def hexadecimal(self, size: int) -> str:
        """Return `size` (at most 12) hexadecimal digits, at least one of which is a letter."""
        while True:
            text = f"{int(self._random() * 16**size):0{size}x}"
            if not text.isdigit():
                return text

    def uuid(self) -> str:
        """Return a string of the form of a UUID."""
        a, b, c = self.hexadecimal(12), self.hexadecimal(8), self.hexadecimal(12)
        return f"{a[:8]}-{a[8:]}-{b[:4]}-{b[4:]}-{c}"
