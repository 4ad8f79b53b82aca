"""Samples of a dataset: the first examples, a random choice, or as many of each category.

A choice depends on the seed and on the ids alone, so that it is the same on every machine, and that a
larger sample holds the smaller one. Chosen examples keep the order of the source.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from typing import Any

from context_bench.errors import DataError, UsageError
from context_bench.types import Example

SAMPLES = ("first", "random", "stratified")

_STRATA = ("group", "category", "subject", "task", "domain", "type", "config")
"""The entries of `meta` that can say which category an example belongs to, the first that is there."""

Ranked = tuple[int, int, Example | None]
"""(minus the draw, place in the source, example where it is kept): in a heap the worst draw comes first."""


def sample(
    examples: Iterable[Example], n: int | None, how: str = "first", seed: int = 0, *, reread: bool = False
) -> Iterator[Example]:
    """Return at most `n` of the examples, all without `n`.

    Args:
        examples: The source.
        n: How many.
        how: One of `SAMPLES`.
        seed: For a draw.
        reread: The source can be read again at little cost: a draw then keeps places, not examples, in memory.
    """
    if how not in SAMPLES:
        raise UsageError(f"a sample must be one of {', '.join(SAMPLES)} (got {how!r})")
    if how == "first" or not n:
        return islice(examples, n)
    chosen = _draw_sample(examples, n, seed, by_category=how == "stratified", keep=not reread)
    if reread:
        return _read_places(examples, [place for _, place, _ in chosen])
    return iter([example for _, _, example in chosen if example is not None])


def name_sample(how: str, count: int, limit: int | None) -> str:
    """Name what was read of a dataset: `all` where there were fewer examples than asked for, else how it was drawn."""
    return "all" if limit is None or count < limit else how


def _draw_sample(examples: Iterable[Example], n: int, seed: int, *, by_category: bool, keep: bool) -> list[Ranked]:
    """Draw examples and return them in the order of the source."""
    strata: dict[str, list[Ranked]] = {}
    for place, example in enumerate(examples):
        best = strata.setdefault(_find_category(example) if by_category else "", [])
        ranked = (-_draw(example, seed, place), place, example if keep else None)
        if len(best) < n:
            heapq.heappush(best, ranked)
        else:
            heapq.heappushpop(best, ranked)
    return sorted(_take_evenly(list(strata.values()), n), key=lambda ranked: ranked[1])


def _read_places(examples: Iterable[Example], places: list[int]) -> Iterator[Example]:
    """Read the examples at these places, which are in order, and nothing after the last."""
    source = iter(examples)
    reached = 0
    for place in places:
        yield from islice(source, place - reached, place - reached + 1)
        reached = place + 1


def _draw(example: Example, seed: int, place: int) -> int:
    identity = example.get("id", place) if isinstance(example, dict) else place
    text = f"{seed}\0{type(identity).__name__}\0{identity}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")


def _find_category(example: Example) -> str:
    meta: Any = example.get("meta")
    for key in _STRATA:
        if isinstance(meta, dict) and isinstance(meta.get(key), str | int):
            return f"{meta[key]}"
    raise DataError(
        f"example {example.get('id')!r} has no category to stratify by: "
        f"set one of {', '.join(_STRATA)} in `meta`, or use --sample random"
    )


def _take_evenly(strata: list[list[Ranked]], n: int) -> Iterator[Ranked]:
    """Take as many of each, best draws first; what a small category cannot give goes to the others."""
    ordered = [sorted(stratum, reverse=True) for stratum in strata]
    # The turn of a category within a round is decided by its best draw, not by where it comes in the source.
    ordered.sort(key=lambda stratum: stratum[0][:2], reverse=True)
    rounds = (stratum[turn] for turn in range(n) for stratum in ordered if turn < len(stratum))
    return islice(rounds, n)
