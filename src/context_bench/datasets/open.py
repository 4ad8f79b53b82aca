"""Opens datasets by the references of `--dataset`: a name with parameters, a file, or the user's own loader."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from context_bench.datasets.catalog import card_for, label_dataset
from context_bench.datasets.files import FileDataset, is_data_file
from context_bench.datasets.joined import FieldCounts, Joined, count_fields, name_sample, sample
from context_bench.datasets.public.raw_files import digest
from context_bench.errors import DataError, UsageError
from context_bench.refs import Ref, call_with, parse, read_signature, resolve
from context_bench.registry import registry
from context_bench.traits import DatasetTraits, dataset_traits
from context_bench.types import Example


@dataclass(frozen=True)
class Choices:
    """The flags that apply to all datasets of a run."""

    seed: int | None = None  # for generated data and random samples; None leaves it to each loader
    limit: int | None = None  # at most this number of examples of each dataset
    # first, random or stratified; None draws at random if everything is at hand, else takes the first
    sample: str | None = "first"
    data_dir: str | None = None  # a folder with the records of public datasets
    revision: str | None = None  # the revision of public datasets that come from the hub
    mapping: Mapping[str, str] | None = None  # the columns of the fields in the user's own files


class Source:
    """One dataset of a run: its tag, its examples, and their number if known."""

    def __init__(
        self, tag: str, opened: Sequence[Iterable[Example]], length: int | None = None, *, generated: bool = False
    ) -> None:
        self.tag, self.length = tag, length
        self.generated = generated  # examples are made by seed: any number of them is a random draw
        self._opened = opened
        self._file: FileDataset | None = None
        self.seen: set[str] = set()  # the tags of the examples read so far; a file may have several

    @classmethod
    def from_file(cls, path: str, tag: str, mapping: Mapping[str, str] | None = None) -> Source:
        dataset = FileDataset(path, tag, mapping)
        source = cls(tag, [dataset])
        source._file = dataset
        return source

    def check(self) -> None:
        """Check all examples of a file before anything is sent; other sources are checked as they are read."""
        if self._file is not None and self.length is None:
            self.length = self._file.check()

    @property
    def from_own_file(self) -> bool:
        """Whether the source is a file of the user's, whose examples may name their datasets."""
        return self._file is not None

    @property
    def checked(self) -> int:
        return 0 if self._file is None else self._file.checked

    @property
    def facts(self) -> list[Any]:
        """Where the examples come from, as far as known: files with digests, repository and revision."""
        if self._file is not None:
            return [{"files": {str(path): digest(path) for path in self._file.files}}]
        sources = [dataset_traits(examples).source for examples in self._opened]
        return [dict(source()) for source in sources if source is not None]

    def count_fields(self) -> FieldCounts:
        """Count the examples by tag and by the fields that decide the score, as far as known."""
        counts: FieldCounts = Counter()
        for part in self._opened:
            for (tag, fields), count in count_fields(part).items():
                if not self.from_own_file:
                    label_dataset(self.tag, tag)
                counts[tag if self.from_own_file else self.tag, fields] += count
        return counts

    @property
    def at_hand(self) -> bool:
        """Whether all examples can be read, even twice, without a request or a wait: from files, folders or lists."""
        return all(dataset_traits(each).at_hand or isinstance(each, list | tuple) for each in self._opened)

    def __context_bench_traits__(self) -> DatasetTraits:
        return DatasetTraits(at_hand=self.at_hand, count_fields=self.count_fields)

    def read(self, choices: Choices) -> Iterator[Example]:
        """Read the requested number of examples, sampled as requested."""
        how, surplus = self._choose_sample(choices), self._count_surplus(choices.limit)
        rounded_up = self.generated and choices.sample is None and surplus < len(self._opened)
        if surplus <= 0 or rounded_up:
            how = "first"  # that is all of them, and a draw would have to wait for the last
        return sample(self, choices.limit, how, choices.seed or 0, reread=self.at_hand)

    def _count_surplus(self, limit: int | None) -> float:
        """Count the examples beyond the limit; infinite if the number of examples is unknown."""
        if limit is None:
            return 0
        return float("inf") if self.length is None else self.length - limit

    def _choose_sample(self, choices: Choices) -> str:
        return choices.sample or ("random" if self.at_hand or self.generated else "first")

    def name_samples(self, choices: Choices, counts: Mapping[str, int]) -> dict[str, str]:
        tags = [tag for tag in (self.tag, *sorted(self.seen)) if tag in counts]
        read = sum(counts[tag] for tag in tags)
        how = name_sample(self._choose_sample(choices), read, choices.limit)
        if self._count_surplus(choices.limit) <= 0:
            how = "all"
        inner = [name(counts) for each in self._opened if (name := dataset_traits(each).name_samples) is not None]
        chosen = {each for told in inner for each in told.values()} - {"all"}
        if how == "all" and chosen:
            how = "first" if "first" in chosen else chosen.pop()
        return dict.fromkeys(tags, "random" if self.generated else how)

    def __iter__(self) -> Iterator[Example]:
        own = self._file is not None
        for example in chain.from_iterable(self._opened):
            if isinstance(example, dict) and (tag := example.get("dataset")) != self.tag:
                if own:
                    self.seen.add(str(tag))
                else:
                    label_dataset(self.tag, str(tag or ""))
                    example = {**example, "dataset": self.tag}  # it may be the caller's own
            yield example


class Datasets:
    """Several datasets, one after the other, each with the requested number of examples."""

    def __init__(self, sources: Sequence[Source], choices: Choices | None = None) -> None:
        self.sources, self._choices = list(sources), choices or Choices()

    @property
    def tags(self) -> list[str]:
        return [source.tag for source in self.sources]

    @property
    def tags_known(self) -> bool:
        """Whether all tags are known; the examples of a file may have their own tags."""
        return not any(source.from_own_file for source in self.sources)

    def check(self) -> None:
        for source in self.sources:
            source.check()

    @property
    def checked(self) -> int:
        return sum(source.checked for source in self.sources)

    def __context_bench_traits__(self) -> DatasetTraits:
        return DatasetTraits(
            check=self.check,
            count_checked=lambda: self.checked,
            name_samples=self.name_samples,
            count_fields=lambda: sum((each.count_fields() for each in self.sources), Counter()),
        )

    def name_samples(self, counts: Mapping[str, int]) -> dict[str, str]:
        return {tag: how for each in self.sources for tag, how in each.name_samples(self._choices, counts).items()}

    def facts(self) -> dict[str, Any]:
        """Return the source of each dataset, for the record of a run; the hub is asked for its commits."""
        known = {source.tag: source.facts for source in self.sources}
        return {tag: facts[0] if len(facts) == 1 else facts for tag, facts in known.items() if facts}

    def __iter__(self) -> Iterator[Example]:
        return chain.from_iterable(source.read(self._choices) for source in self.sources)

    def list_lengths(self) -> list[int]:
        """List the number of examples of each dataset; raise TypeError if a number is unknown."""
        lengths, limit = [source.length for source in self.sources], self._choices.limit
        if limit is None and None in lengths:
            raise TypeError("the number of examples is not known in advance")
        return [min(value for value in (length, limit) if value is not None) for length in lengths]

    def __len__(self) -> int:
        return sum(self.list_lengths())


def open_datasets(texts: Sequence[str], choices: Choices | None = None) -> Datasets:
    """Open every reference; a wrong name, a wrong parameter or a missing file is an error at once."""
    choices = choices or Choices()
    for text in texts:
        if texts.count(text) > 1:
            raise UsageError(f"the dataset {text!r} is given twice")
    stems = [Path(text).stem for text in texts if _is_file(text)]
    if choices.mapping and not stems:
        raise UsageError("--map is for your own files, and no --dataset is a file")
    sources = []
    for text in texts:
        if _is_file(text):
            stem = Path(text).stem
            # A file that is called like a dataset is not that dataset.
            plain = stems.count(stem) == 1 and card_for(stem) is None
            sources.append(Source.from_file(text, stem if plain else text, choices.mapping))
        else:
            sources.append(_open_refs(text, parse("dataset", text), choices))
    return Datasets(sources, choices)


def gather_datasets(given: Any, max_examples: int | None = None) -> tuple[Iterable[Example], int]:
    """Return the examples of a caller's argument, and the number of their datasets.

    `given` is an iterable of examples, a reference (`needle:n=20`, or a file), a list of both, or a mapping from tags
    to either. A single generated dataset has exactly `max_examples` examples.
    """
    if isinstance(given, str):
        return open_datasets([given], Choices(limit=max_examples)), 1
    if _is_frame(given):
        return read_frame(given), 1
    if isinstance(given, Mapping):
        sources = [_open_tagged(str(tag), part) for tag, part in given.items()]
        return Datasets(sources), len(sources)
    if isinstance(given, list | tuple) and given and all(_is_dataset(part) for part in given):
        parts = [open_datasets([part]) if isinstance(part, str) else _unwrap_frame(part) for part in given]
        return Joined(parts), len(parts)
    if not isinstance(given, Iterable):
        raise UsageError(f"a dataset must be an iterable of examples, a name or a file (got {type(given).__name__})")
    return given, len(given.parts) if isinstance(given, Joined) else 1


def _is_dataset(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Iterable) and not isinstance(part, Mapping))


def _is_frame(given: Any) -> bool:
    """Whether this is a data frame of pandas or polars, whose iteration gives columns or series, not examples."""
    return hasattr(given, "columns") and (hasattr(given, "to_dicts") or hasattr(given, "to_dict"))


def _unwrap_frame(part: Any) -> Any:
    return read_frame(part) if _is_frame(part) else part


def read_frame(frame: Any) -> list[Example]:
    """Read the rows of a data frame as examples.

    An empty cell is a missing field, a column `meta.lang` is the field `lang` of `meta`, and without a column `id` the
    rows are numbered.
    """
    examples = []
    for number, record in enumerate(frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")):
        example: Example = {"id": number}
        for column, value in record.items():
            if _is_empty(value):
                continue
            plain = value.tolist() if hasattr(value, "tolist") else value  # an array, or a number of numpy
            outer, _, inner = str(column).partition(".")
            if outer == "meta" and inner:
                example.setdefault("meta", {})[inner] = plain
            else:
                example[str(column)] = plain
        examples.append(example)
    return examples


def _is_empty(value: Any) -> bool:
    missing = ("NAType", "NaTType")
    return value is None or type(value).__name__ in missing or (isinstance(value, float) and math.isnan(value))


def _open_tagged(tag: str, part: Any) -> Source:
    part = _unwrap_frame(part)
    if isinstance(part, str):
        (source,) = open_datasets([part]).sources
        return Source(tag, [source], source.length, generated=source.generated)
    if not isinstance(part, Iterable):
        raise UsageError(f"dataset {tag!r} must be an iterable of examples, a name or a file")
    return Source(tag, [part], _find_length(part))


def _is_file(text: str) -> bool:
    """Whether a text names a file; existing directories and other kinds of files count too, for a better error."""
    suffix = Path(text).suffix.lower()
    if is_data_file(text) or (suffix not in ("", ".py") and os.path.isfile(text)):
        return True
    return os.path.isdir(text) and ("dataset", text) not in registry


def _open_refs(text: str, refs: list[Ref], choices: Choices) -> Source:
    """Open one source for a reference; the cells of a sweep follow each other in this source."""
    opened: list[Iterable[Example]] = []
    lengths: list[int | None] = []
    generated = True
    for ref in refs:
        loader = resolve("dataset", ref)
        if not callable(loader):
            if ref.parameters or ref.argument:
                raise UsageError(f"{ref.text!r}: this dataset takes no parameters")
            opened.append(loader)
            lengths.append(_find_length(loader))
            generated = False
            continue
        generated = generated and _is_generator(loader)
        ref = _apply_choices(loader, ref, choices, len(refs))
        examples = call_with(loader, ref, argument_name="config")
        if not isinstance(examples, Iterable):
            raise DataError(f"{text!r}: a loader must return an iterable of examples (got {type(examples).__name__})")
        opened.append(examples)
        lengths.append(_find_declared_length(loader, ref, examples))
    known = [length for length in lengths if length is not None]
    return Source(text, opened, sum(known) if len(known) == len(lengths) else None, generated=generated)


def _apply_choices(loader: Callable[..., Any], ref: Ref, choices: Choices, cells: int) -> Ref:
    takes = read_signature(loader)
    said: dict[str, Any] = {"seed": choices.seed, "data_dir": choices.data_dir, "revision": choices.revision}
    if "n" in takes and isinstance(takes["n"].default, int):
        said["n"] = _choose_number_to_make(takes["n"].default, choices, cells)
    if choices.revision and "revision" not in takes:
        raise UsageError(f"--revision is for public datasets, and {ref.text!r} is not one")
    more = {key: value for key, value in said.items() if value is not None and key in takes}
    return Ref(ref.text, ref.target, ref.argument, {**more, **ref.parameters})


def _choose_number_to_make(usual: int, choices: Choices, cells: int) -> int | None:
    """Choose the number of examples that a loader generates: the limit, shared among the cells of a sweep."""
    if not choices.limit:
        return None
    wanted = -(-choices.limit // cells)
    return max(usual, wanted) if choices.sample in ("random", "stratified") else wanted


def _is_generator(loader: Callable[..., Any]) -> bool:
    """Whether a loader generates examples: it takes a seed, and a number of examples with a default."""
    takes = read_signature(loader)
    return "seed" in takes and "n" in takes and isinstance(takes["n"].default, int)


def _find_length(examples: Any) -> int | None:
    try:
        return len(examples)
    except TypeError:
        return None


def _find_declared_length(loader: Callable[..., Any], ref: Ref, examples: Any) -> int | None:
    """Find the number of examples: the length of the loaded object, or else the loader's parameter `n`."""
    declared = read_signature(loader).get("n")
    default = declared.default if declared is not None else None
    number = ref.parameters.get("n", default)
    return _find_length(examples) if not isinstance(number, int) else number
