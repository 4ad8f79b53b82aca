"""Seeded choices that give the same result in every process and on every Python version.

Only `Random.random()` is used, seeded by a string: the standard library promises that its sequence
stays as it is, and makes no such promise for `choice`, `shuffle` or `sample`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from context_bench.errors import UsageError

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


def words(text: str) -> tuple[str, ...]:
    """Split `text` at white space."""
    return tuple(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """Split `text` at semicolons; line breaks inside a phrase count as one space."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))


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


ADJECTIVES = words(
    """cobalt saffron crimson ivory emerald amber violet scarlet indigo turquoise jasper velvet copperplate granite
    silver golden obsidian coral maroon teal lunar solar polar arctic tropical desert nomad royal imperial feral
    sunken hollow crooked rugged veiled frozen blazing twisted gilded masked"""
)
NOUNS = words(
    """falcon heron otter panther lynx jackal raven condor pelican walrus mammoth phoenix griffin dragon unicorn
    kraken lantern compass anchor hourglass pendulum prism sextant trident chalice sceptre gauntlet obelisk
    pyramid citadel bastion rampart cathedral labyrinth glacier volcano canyon lagoon monsoon avalanche"""
)
THINGS = words("vault locker safe depot hangar strongroom")
LABELS = phrases("access code; serial number; inventory number; licence number; clearance code")


class Names:
    """A source of names and six-digit values, no two of which are the same."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names: set[tuple[str, str]] = set()
        self._values: set[str] = set()

    def name(self) -> tuple[str, str]:
        """Return a new pair of words, such as ("cobalt", "falcon")."""
        while True:
            name = (self._draw.pick(ADJECTIVES), self._draw.pick(NOUNS))
            if name not in self._names:
                self._names.add(name)
                return name

    def other(self, name: tuple[str, str]) -> tuple[str, str]:
        """Return a pair that is not `name`, and in most cases shares one word with it."""
        adjective, noun = self._draw.pick(ADJECTIVES), self._draw.pick(NOUNS)
        near = self._draw.pick(((name[0], noun), (adjective, name[1]), (adjective, noun)))
        return near if near != name else self.other(name)

    def value(self) -> str:
        """Return a new number of six digits."""
        while True:
            value = self._draw.digits(6)
            if value not in self._values:
                self._values.add(value)
                return value


class PlantedSecret(NamedTuple):
    """One fact in prose: `sentence` says that the `label` for `subject` is `value`."""

    label: str
    subject: str
    value: str
    sentence: str


SENTENCES: tuple[str, ...] = (
    "The {label} for {subject} is {value}.",
    "According to the register, the {label} for {subject} is {value}.",
    "A note on the door says that the {label} for {subject} is {value}.",
    "Staff were reminded that the {label} for {subject} is {value}.",
    "As of the last inspection, the {label} for {subject} is {value}.",
)


def secret(draw: Draw, names: Names, label: str) -> PlantedSecret:
    """Make a new fact about `label`, in one natural sentence."""
    subject = f"the {' '.join(names.name())} {draw.pick(THINGS)}"
    value = names.value()
    return PlantedSecret(label, subject, value, draw.pick(SENTENCES).format(label=label, subject=subject, value=value))
