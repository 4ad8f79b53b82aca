"""Public datasets: raw records come from files or the hub, and the dataset's adapter turns them into examples.

A record that does not fit raises a DataError with dataset, file, record and column; it is never skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from context_bench.datasets.catalog import Card, Config, catalog, find_public_card
from context_bench.datasets.joined import SAMPLES, name_sample, sample
from context_bench.datasets.public.adapters import Adapter, Where
from context_bench.datasets.public.fetch import open_records
from context_bench.datasets.public.raw_files import LocalFiles, Records
from context_bench.errors import DataError, UsageError, printable
from context_bench.registry import import_object
from context_bench.traits import DatasetTraits
from context_bench.types import Example


def list_loaders() -> dict[str, Any]:
    """Return the registry's entry for each name of the catalog: an import path, or `load` with that name bound."""
    return {name: partial(load, name) if card.adapter else card.loader for name, card in catalog().items()}


def load(
    name: str,
    config: str | None = None,
    split: str | None = None,
    data_dir: str | Path | None = None,
    revision: str | None = None,
    sample: str = "first",
    seed: int = 0,
    n: int | None = None,
) -> PublicDataset:
    """Open a public dataset, whose examples are read lazily; `sample` applies only with `n`.

    The folder `data_dir` (CONTEXT_BENCH_DATA by default) holds the records in `<name>/`. Without that folder, the
    records come from the hub.
    """
    card = find_public_card(name)
    if sample not in SAMPLES:
        raise UsageError(f"a sample must be one of {', '.join(SAMPLES)} (got {sample!r})")
    chosen = card.config(config)
    parts = [card.config(part) for part in chosen.parts] or [chosen]
    opened = [(part, open_records(card, part, split, data_dir, revision)) for part in parts]
    return PublicDataset(card, opened, split, sample, seed, n)


class PublicDataset:
    """The examples of one dataset; can be iterated any number of times."""

    def __init__(
        self, card: Card, parts: list[tuple[Config, Records]], split: str | None, sample: str, seed: int, n: int | None
    ) -> None:
        self.card, self._parts, self._split = card, parts, split
        self._sample, self._seed, self._n = sample, seed, n
        self._find_adapter = _find_adapter(card.adapter)

    def __context_bench_traits__(self) -> DatasetTraits:
        local = all(isinstance(records, LocalFiles) for _, records in self._parts)
        return DatasetTraits(source=lambda: self.source, at_hand=local, name_samples=self._name_samples)

    def _name_samples(self, counts: Mapping[str, int]) -> dict[str, str]:
        tag = self.card.name
        return {tag: name_sample(self._sample, counts.get(tag, 0), self._n)}

    @property
    def source(self) -> Mapping[str, Any]:
        """The source of the records, for the record of a run: files with digests, or repository and revision."""
        facts = {part.name: dict(records.facts) for part, records in self._parts}
        return next(iter(facts.values())) if len(facts) == 1 else facts

    @property
    def revision(self) -> str | None:
        """The commit on the hub from which the records come, if any."""
        return next((records.facts.get("revision") for _, records in self._parts), None)

    def __iter__(self) -> Iterator[Example]:
        return sample(self._read_examples(), self._n, self._sample, self._seed)

    def _read_examples(self) -> Iterator[Example]:
        for config, records in self._parts:
            split = self._split or config.split
            for index, (place, record) in enumerate(records):
                yield from self._map_record(record, place, Where(config.name, split, index, self.card.name))

    def _map_record(self, record: Any, place: str, where: Where) -> Iterator[Example]:
        name = f"{self.card.name}:{where.config}"
        if not isinstance(record, Mapping):
            raise DataError(f"{name}: {place}: a record must be an object with columns (got {type(record).__name__})")
        try:
            for example in self._find_adapter(record, where):
                yield self._finish_example(example, where)
        except KeyError as error:
            column = error.args[0] if error.args else "?"
            raise DataError(f"{name}: {place}: no column {column!r}; {self._describe_schema(record)}") from error
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            detail = f"{type(error).__name__}: {printable(str(error))}"
            raise DataError(
                f"{name}: {place}: the layout is unknown ({detail}); {self._describe_schema(record)}"
            ) from error

    def _describe_schema(self, record: Mapping[str, Any]) -> str:
        known = " or ".join(", ".join(columns) for columns in self.card.columns.values())
        return f"it has {', '.join(map(str, record))}; the catalog expects {known or 'no schema'}"

    def _finish_example(self, example: Example, where: Where) -> Example:
        if self.card.instruction:
            example.setdefault("instruction", self.card.instruction)
        if self.card.aggregate == "mean-of-configs":
            example.setdefault("meta", {}).setdefault("group", where.config)
        elif self.card.aggregate == "ratio-of-sums" and self.card.aggregate_field:
            example.setdefault("meta", {}).setdefault("weight_field", self.card.aggregate_field)
        example["dataset"] = self.card.name
        return example


@cache
def _find_adapter(path: str) -> Adapter:
    found: Adapter = import_object(f"{__package__}.adapters.{path}")
    return found
