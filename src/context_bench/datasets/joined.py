"""Datasets made of other datasets: joined datasets, a dataset that is loaded again for each pass, and samples.

A sample depends only on the seed and the ids, so it is the same on every machine, and a larger sample contains the
smaller one. Chosen examples keep the order of the source.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

from context_bench.errors import DataError, UsageError
from context_bench.text.golds import list_scoring_fields
from context_bench.traits import DatasetTraits, dataset_traits
from context_bench.types import Example

FieldCounts = Counter[tuple[str, tuple[str, ...]]]
"""Numbers of examples by dataset tag and by the fields that decide which score fits them."""


def count_fields(dataset: Iterable[Example]) -> FieldCounts:
    """Count the examples of a list or of a checked file; a source that is read during the run is not counted."""
    if not isinstance(dataset, list | tuple):
        return Counter(dataset_traits(dataset).count_fields())
    examples = (each for each in dataset if isinstance(each, (dict, Mapping)))
    return Counter((str(each.get("dataset") or ""), list_scoring_fields(each)) for each in examples)


class Joined:
    """One or several datasets, one after the other; `+` adds more. Other attributes are those of a single dataset."""

    def __init__(self, parts: Sequence[Iterable[Example]]) -> None:
        self.parts = list(parts)

    def __context_bench_traits__(self) -> DatasetTraits:
        source = dataset_traits(self.parts[0]).source if len(self.parts) == 1 else None
        return DatasetTraits(
            check=self.check,
            count_checked=lambda: self.checked,
            source=source,
            name_samples=self.name_samples,
            count_fields=self.count_fields,
        )

    def __iter__(self) -> Iterator[Example]:
        return chain.from_iterable(self.parts)

    def __len__(self) -> int:
        sized: list[Any] = self.parts
        return sum(map(len, sized))  # a part without a length says so

    def __add__(self, other: Iterable[Example]) -> Joined:
        return Joined([*self.parts, *(other.parts if isinstance(other, Joined) else [other])])

    def __radd__(self, other: Iterable[Example]) -> Joined:
        return Joined([other, *self.parts])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def check(self) -> None:
        """Check the parts that can check themselves."""
        for part in self.parts:
            check = dataset_traits(part).check
            if check is not None:
                check()

    def count_fields(self) -> FieldCounts:
        """Count the examples of the parts that know their number, by tag and by the fields that decide the score."""
        return sum(map(count_fields, self.parts), Counter())

    def name_samples(self, counts: Mapping[str, int]) -> dict[str, str]:
        """Name how the examples of each tag were chosen, for the parts that know."""
        told = (dataset_traits(part).name_samples for part in self.parts)
        return {tag: how for name in told if name is not None for tag, how in name(counts).items()}

    @property
    def checked(self) -> int:
        return sum(dataset_traits(part).count_checked() for part in self.parts)

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("parts", ())
        if name.startswith("__") or len(parts) != 1:
            raise AttributeError(name)
        return getattr(parts[0], name)


class Reread:
    """The examples of a loader, which is called again for each pass after the first."""

    def __init__(self, load: Callable[[], Iterable[Example]], first: Iterable[Example]) -> None:
        self._load = load
        self._first: Iterable[Example] | None = first

    def __iter__(self) -> Iterator[Example]:
        examples, self._first = self._first, None
        return iter(self._load() if examples is None else examples)


SAMPLES = ("first", "random", "stratified")

_STRATA = ("group", "category", "subject", "task", "domain", "type", "config")
"""The entries of `meta` that may name the category of an example; the first that exists counts."""

Ranked = tuple[int, int, Example | None]
"""(minus the draw, place in the source, example if it is kept); this order puts the worst draw first in a heap."""


def sample(
    examples: Iterable[Example], n: int | None, how: str = "first", seed: int = 0, *, reread: bool = False
) -> Iterator[Example]:
    """Return at most `n` of the examples, or all of them without `n`; `how` is one of `SAMPLES`.

    With `reread` the source can be read again at little cost, so a draw keeps only places in memory.
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
    """Name the sample of a dataset: `all` if it had no more examples than requested, else how it was drawn."""
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
    """Read the examples at these sorted places, and nothing after the last of them."""
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
    """Take the same number from each category, best draws first; larger categories make up for too small ones."""
    ordered = [sorted(stratum, reverse=True) for stratum in strata]
    # The best draw of a category decides its turn within a round, not its place in the source.
    ordered.sort(key=lambda stratum: stratum[0][:2], reverse=True)
    rounds = (stratum[turn] for turn in range(n) for stratum in ordered if turn < len(stratum))
    return islice(rounds, n)
