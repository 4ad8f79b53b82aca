"""The user's own files: .jsonl, .json (a list), .csv, .tsv and .parquet files, plain or as .gz, and files or folders of
recorded traffic.

A file is checked once, in full and before anything is sent: the first problem is an error that names the file and the
line. Examples keep their own `dataset` tag, or get the file's name.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from context_bench.datasets.example_check import FIELDS, ExampleCheck
from context_bench.datasets.recordings import is_recording, read_examples
from context_bench.errors import DataError, UsageError, suggest, suggest_file, warn
from context_bench.text.formats import Numbered, read_csv, read_json, read_jsonl, read_parquet
from context_bench.text.golds import list_scoring_fields
from context_bench.traffic.readers import Findings
from context_bench.traits import DatasetTraits

_ADVICE = (
    "--map (mapping= in Python) names the columns to use, as in --map id=COLUMN,context=COLUMN; "
    "with it, a missing id is the record's number and a missing context is empty, so --map context=COLUMN is enough"
)
MIN_TYPO_LIKENESS = 0.75
"""Similarity from which a name counts as a typo: `contxt` is taken for `context`, `answer_text` not for `answer`."""
_TEXTS = {"id", "context", "question", "prompt", "answer", "test", "instruction", "dataset"}


def parse_mapping(text: str) -> dict[str, str]:
    """Parse `question=prompt,answer=gold`: the field of an example, and the column that it comes from.

    Other field names are allowed, but one that resembles a known field is an error, because that field would stay
    empty.
    """
    mapping: dict[str, str] = {}
    for item in text.split(","):
        field, equals, source = (part.strip() for part in item.partition("="))
        if not equals or not field or not source:
            raise UsageError(f"--map {text!r}: {item!r} is not FIELD=COLUMN, such as question=prompt")
        if field in mapping:
            raise UsageError(f"--map {text!r} gives {field!r} twice")
        if field not in FIELDS and (meant := suggest(field, FIELDS, cutoff=MIN_TYPO_LIKENESS)):
            raise UsageError(f"--map {text!r}: an example has no field {field!r}; {meant}")
        mapping[field] = source
    return mapping


def is_data_file(path: str | Path) -> bool:
    """Whether a file has a readable suffix."""
    return _strip_gz(Path(path)).suffix.lower() in SUFFIXES


def _strip_gz(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


class FileDataset:
    """The examples of one local file, or of a folder with recorded sessions; can be iterated any number of times.

    The suffix of the file decides how it is read; a `.gz` file is unpacked first. `dataset` is the tag of examples that
    have none. `mapping` gives the column of each field: `{"question": "prompt"}`. With a mapping, a record without an
    id gets its number as id, and a record without a context gets an empty one.
    """

    def __init__(self, path: str | Path, dataset: str | None = None, mapping: Mapping[str, str] | None = None) -> None:
        self.path = Path(path)
        self.dataset = dataset or _strip_gz(self.path).stem
        self.mapping = dict(mapping or {})
        self.checked = 0
        self._findings = Findings()
        self.fields: Counter[tuple[str, tuple[str, ...]]] = Counter()
        if (is_folder := self.path.is_dir()) and (self.mapping or not is_recording(self.path)):
            raise DataError(f"{self.path} is a directory without recorded sessions: pass a file in it")
        known = is_data_file(self.path)
        if not self.path.exists() and known:
            raise DataError(f"{self.path}: no such file{suggest_file(self.path)}")
        if not self.path.is_file() and not is_folder:
            raise DataError(f"{self.path} is not a regular file, so it cannot be read twice: save it to a file first")
        self._recorded = is_folder or (not self.mapping and is_recording(self.path))
        if not known and not self._recorded:
            use = f"use {', '.join(SUFFIXES)}, plain or as .gz, or recorded traffic"
            raise DataError(f"{self.path}: unknown kind of file; {use}")

    @property
    def files(self) -> list[Path]:
        """The file, or all files of the folder."""
        return sorted(filter(Path.is_file, self.path.rglob("*"))) if self.path.is_dir() else [self.path]

    def __context_bench_traits__(self) -> DatasetTraits:
        return DatasetTraits(
            check=self.check, count_checked=lambda: self.checked, at_hand=True, count_fields=lambda: self.fields
        )

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line, example in self._read_examples():
            if not isinstance(example, dict):
                raise DataError(f"{self.path}, line {line}: an example must be an object with fields")
            yield example if example.get("dataset") else {**example, "dataset": self.dataset}

    def check(self) -> int:
        """Read the whole file and return the number of examples; raise DataError on the first problem."""
        check, self.checked = ExampleCheck(), 0
        self.fields.clear()
        for line, example in self._read_examples():
            check(example, f"{self.path}, line {line}", self.dataset, _ADVICE)
            self.checked += 1
            self.fields[str(example.get("dataset") or self.dataset), list_scoring_fields(example)] += 1
        skipped = self._findings.describe_skipped()
        if not self.checked:
            raise DataError(f"{self.path}: no examples in this file{skipped and f': {skipped}'}")
        if skipped:
            warn(f"{self.path}: {skipped}")
        return self.checked

    def _read_examples(self) -> Numbered:
        if not self.mapping:
            yield from self._read()
            return
        for place, (line, record) in enumerate(self._read(), 1):
            yield line, self._map_fields(record, line, place) if isinstance(record, dict) else record

    def _map_fields(self, record: dict[str, Any], line: int, place: int) -> dict[str, Any]:
        used = set(self.mapping.values())
        example = {key: value for key, value in record.items() if key not in used}
        for field, source in self.mapping.items():
            if source not in record:
                there = ", ".join(map(str, record)) or "nothing"
                meant = suggest(source, map(str, record))
                raise DataError(
                    f"{self.path}, line {line}: no {source!r} (from --map {field}={source}); "
                    f"{meant and f'{meant} '}it has {there}"
                )
            example[field] = record[source]
        example.setdefault("id", place)
        example.setdefault("context", "")
        return example

    def _read(self) -> Numbered:
        try:
            if self._recorded:
                self._findings = Findings()  # new, because a request that was read before counts as a copy
                yield from read_examples([self.path], findings=self._findings)
                return
            with self._open() as source:
                yield from SUFFIXES[_strip_gz(self.path).suffix.lower()](source, str(self.path))
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        except (EOFError, zlib.error) as error:
            raise DataError(f"{self.path}: cannot be read: {error}") from error
        except RecursionError as error:
            raise DataError(f"{self.path}: broken JSON (nested too deeply)") from error

    def _open(self) -> BinaryIO:
        if self.path.suffix.lower() == ".gz":
            return cast(BinaryIO, gzip.open(self.path, "rb"))
        return self.path.open("rb")


def _read_cells(source: BinaryIO, where: str, delimiter: str = ",") -> Numbered:
    """Read the cells of a row; an empty cell is a missing value, except in the context, which may be empty."""
    for line, record in read_csv(source, where, delimiter=delimiter):
        yield line, {key: _read_cell(key, value) for key, value in record.items() if value or key == "context"}


def _read_cell(name: str, text: str) -> Any:
    """Read a cell: parse JSON lists and objects, except in fields that are always text."""
    if name not in _TEXTS and text[:1] in ("[", "{"):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def _read_rows(source: BinaryIO, where: str) -> Numbered:
    for number, record in read_parquet(source, where):
        yield number, {key: value for key, value in record.items() if value is not None}


SUFFIXES: dict[str, Callable[[BinaryIO, str], Numbered]] = {
    ".jsonl": read_jsonl,
    ".json": read_json,
    ".csv": _read_cells,
    ".tsv": partial(_read_cells, delimiter="\t"),
    ".parquet": _read_rows,
}
