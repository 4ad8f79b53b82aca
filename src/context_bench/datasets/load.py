"""From what a user types after `--dataset` to examples: a name with parameters, a file, or one's own loader."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from context_bench.datasets.files import SUFFIXES, FileDataset
from context_bench.errors import DataError, UsageError
from context_bench.refs import Ref, call_with, parse, resolve
from context_bench.types import Example

__all__ = ["Datasets", "Source", "open_datasets"]


class Source:
    """One dataset of a run: its tag, its examples, and how many there are where that is known."""

    def __init__(self, tag: str, open_examples: Callable[[], Iterable[Example]], length: int | None = None) -> None:
        self.tag, self.length = tag, length
        self._open = open_examples
        self._check: Callable[[], int] | None = None

    @classmethod
    def from_file(cls, path: str, tag: str) -> Source:
        """The examples of a local file."""
        dataset = FileDataset(path, tag)
        source = cls(tag, lambda: dataset)
        source._check = dataset.check
        return source

    def check(self) -> None:
        """Look through a file before anything is sent; other sources are checked as they are read."""
        if self._check is not None:
            self.length = self._check()

    def __iter__(self) -> Iterator[Example]:
        for example in self._open():
            if self._check is None and isinstance(example, dict):
                example["dataset"] = self.tag
            yield example


class Datasets:
    """Several datasets one after the other, each cut to `limit` examples."""

    def __init__(self, sources: Sequence[Source], limit: int | None = None) -> None:
        self.sources, self.limit = list(sources), limit

    @property
    def tags(self) -> list[str]:
        """The tags, in order."""
        return [source.tag for source in self.sources]

    def check(self) -> None:
        """Check every file in full."""
        for source in self.sources:
            source.check()

    def __iter__(self) -> Iterator[Example]:
        return chain.from_iterable(islice(source, self.limit) for source in self.sources)

    def __len__(self) -> int:
        lengths = [source.length for source in self.sources]
        if self.limit is None and None in lengths:
            raise TypeError("the number of examples is not known in advance")
        return sum(_smaller(length, self.limit) for length in lengths)


def _smaller(length: int | None, limit: int | None) -> int:
    return min(value for value in (length, limit) if value is not None)


def open_datasets(texts: Sequence[str], seed: int | None = None, limit: int | None = None) -> Datasets:
    """Open every reference; wrong names, parameters and missing files are errors at once."""
    for text in texts:
        if texts.count(text) > 1:
            raise UsageError(f"the dataset {text!r} is given twice")
    stems = [Path(text).stem for text in texts if _is_file(text)]
    sources = []
    for text in texts:
        if _is_file(text):
            stem = Path(text).stem
            sources.append(Source.from_file(text, stem if stems.count(stem) == 1 else text))
        else:
            sources.append(_from_refs(text, parse("dataset", text), seed))
    return Datasets(sources, limit)


def _is_file(text: str) -> bool:
    return Path(text).suffix.lower() in SUFFIXES


def _from_refs(text: str, refs: list[Ref], seed: int | None) -> Source:
    """One source for a reference; the cells of a sweep follow each other in it."""
    opened, lengths = [], []
    for ref in refs:
        loader = resolve("dataset", ref)
        if not callable(loader):
            if ref.parameters or ref.argument:
                raise UsageError(f"{ref.text!r}: this dataset takes no parameters")
            opened.append(loader)
            lengths.append(_length(loader))
            continue
        ref = _seeded(loader, ref, seed)
        examples = call_with(loader, ref, argument_name="config")
        if not isinstance(examples, Iterable):
            raise DataError(f"{text!r}: the loader returned {type(examples).__name__}, which has no examples")
        opened.append(examples)
        lengths.append(_declared_length(loader, ref, examples))
    known = [length for length in lengths if length is not None]
    return Source(text, lambda: chain.from_iterable(opened), sum(known) if len(known) == len(lengths) else None)


def _seeded(loader: Callable[..., Any], ref: Ref, seed: int | None) -> Ref:
    if seed is None or "seed" in ref.parameters or "seed" not in _signature(loader):
        return ref
    return Ref(ref.text, ref.target, ref.argument, {**ref.parameters, "seed": seed})


def _signature(loader: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(loader).parameters)
    except (TypeError, ValueError):
        return {}


def _length(examples: Any) -> int | None:
    return len(examples) if hasattr(examples, "__len__") else None


def _declared_length(loader: Callable[..., Any], ref: Ref, examples: Any) -> int | None:
    """How many examples there will be: those there are, or the loader's parameter `n`."""
    declared = _signature(loader).get("n")
    default = declared.default if declared is not None else None
    number = ref.parameters.get("n", default)
    return _length(examples) if not isinstance(number, int) else number
