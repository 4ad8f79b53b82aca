"""Datasets joined into one, in their order, and datasets that are read again by loading them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from context_bench.text.golds import list_scoring_fields
from context_bench.traits import DatasetTraits, dataset_traits
from context_bench.types import Example

FieldCounts = Counter[tuple[str, tuple[str, ...]]]
"""Examples by dataset tag and by the fields that decide which score fits them."""


def count_fields(dataset: Iterable[Example]) -> FieldCounts:
    """Count the examples of a list, or of a file that was checked; nothing of what is read as the run goes."""
    if not isinstance(dataset, list | tuple):
        return Counter(dataset_traits(dataset).count_fields())
    examples = (each for each in dataset if isinstance(each, Mapping))
    return Counter((str(each.get("dataset") or ""), list_scoring_fields(each)) for each in examples)


class Joined:
    """One or several datasets, one after the other; `+` joins more to it.

    Everything else is asked of the dataset itself, where there is one alone.
    """

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
        """Count the examples by tag and by the fields that decide which score fits, as far as the parts tell."""
        return sum(map(count_fields, self.parts), Counter())

    def name_samples(self, counts: Mapping[str, int]) -> dict[str, str]:
        """Say how the examples of each tag were chosen, as far as the parts tell."""
        told = (dataset_traits(part).name_samples for part in self.parts)
        return {tag: how for name in told if name is not None for tag, how in name(counts).items()}

    @property
    def checked(self) -> int:
        """How many examples have been checked so far."""
        return sum(dataset_traits(part).count_checked() for part in self.parts)

    def __getattr__(self, name: str) -> Any:
        parts = self.__dict__.get("parts", ())
        if name.startswith("__") or len(parts) != 1:
            raise AttributeError(name)
        return getattr(parts[0], name)


class Reread:
    """The examples of a loader, which is called again for each pass after the first.

    Args:
        load: Gives the examples, the same each time.
        first: What it gave already.
    """

    def __init__(self, load: Callable[[], Iterable[Example]], first: Iterable[Example]) -> None:
        self._load = load
        self._first: Iterable[Example] | None = first

    def __iter__(self) -> Iterator[Example]:
        examples, self._first = self._first, None
        return iter(self._load() if examples is None else examples)
