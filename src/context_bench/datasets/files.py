"""One's own data: .jsonl, .json (a list), .csv and .parquet files, read as a stream.

A file is checked once, in full and before anything is sent: the first problem is an error that names
file and line. Examples keep their own `dataset` tag, or get the file's name.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import orjson

from context_bench.datasets.examples import ExampleCheck
from context_bench.errors import DataError, MissingExtra, printable

__all__ = ["SUFFIXES", "FileDataset"]

Numbered = Iterator[tuple[int, Any]]

_CHUNK = 1 << 16
_TEXTS = {"id", "context", "question", "prompt", "answer", "test", "instruction", "dataset"}


class FileDataset:
    """The examples of one local file; can be iterated any number of times.

    Args:
        path: The file; its suffix says how it is read.
        dataset: The tag for examples that carry none; the file's name without suffix by default.
    """

    def __init__(self, path: str | Path, dataset: str | None = None) -> None:
        self.path = Path(path)
        self.dataset = dataset or self.path.stem
        if self.path.suffix.lower() not in SUFFIXES:
            raise DataError(f"{self.path}: unknown kind of file; use {', '.join(SUFFIXES)}")
        if self.path.is_dir():
            raise DataError(f"{self.path} is a directory: name a file in it")
        if not self.path.is_file():
            raise DataError(f"{self.path}: no such file")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line, example in self._read():
            if not isinstance(example, dict):
                raise DataError(f"{self.path}, line {line}: an example is an object with fields")
            yield example if example.get("dataset") else {**example, "dataset": self.dataset}

    def check(self) -> int:
        """Read the whole file once and raise DataError on the first problem; the number of examples."""
        check, count = ExampleCheck(), 0
        for line, example in self._read():
            check(example, f"{self.path}, line {line}", self.dataset)
            count += 1
        if not count:
            raise DataError(f"{self.path}: no examples in this file")
        return count

    def _read(self) -> Numbered:
        try:
            yield from SUFFIXES[self.path.suffix.lower()](self.path)
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        except RecursionError as error:
            raise DataError(f"{self.path}: broken JSON (nested too deeply)") from error


def _read_jsonl(path: Path) -> Numbered:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                try:
                    value = json.loads(line)  # it takes the lone surrogates that real data has
                except (ValueError, RecursionError):
                    problem = f"broken JSON ({error.msg}, column {error.colno})"
                    raise DataError(f"{path}, line {number}: {problem}") from error
            yield number, value


def _read_json(path: Path) -> Numbered:
    """A JSON list, element by element, so that a large file is never in memory as a whole."""
    decoder = json.JSONDecoder()
    with path.open(encoding="utf-8-sig") as source:
        text = _Window(source)
        if not text.skip() or text.peek() != "[":
            raise DataError(f"{path}: a .json file holds a list of examples; use .jsonl for one object a line")
        text.advance(1)
        while text.skip() and text.peek() != "]":
            line = text.line
            try:
                value, end = text.decode(decoder)
            except json.JSONDecodeError as error:
                raise DataError(f"{path}, line {line + error.lineno - 1}: broken JSON ({error.msg})") from error
            text.advance(end)
            yield line, value
            if text.skip() and text.peek() == ",":
                text.advance(1)
                if text.skip() and text.peek() == "]":
                    raise DataError(f"{path}, line {text.line}: broken JSON (nothing after the last ',')")
            elif text.peek() != "]":
                raise DataError(f"{path}, line {text.line}: broken JSON (expected ',' or ']')")
        if text.peek() != "]":
            raise DataError(f"{path}, line {text.line}: broken JSON (the list has no end)")
        text.advance(1)
        if text.skip():
            raise DataError(f"{path}, line {text.line}: broken JSON (something comes after the end of the list)")


class _Window:
    """The part of a text file that is being parsed."""

    def __init__(self, source: TextIO) -> None:
        self._source, self._text, self.line = source, "", 1

    def _more(self) -> bool:
        # Twice as much each time: an element that spans many chunks is not parsed from its start too often.
        chunk = self._source.read(max(_CHUNK, len(self._text)))
        self._text += chunk
        return bool(chunk)

    def skip(self) -> bool:
        """Go to the next character that is no white space; False at the end of the file."""
        while True:
            rest = self._text.lstrip()
            if rest:
                self.advance(len(self._text) - len(rest))
                return True
            self.advance(len(self._text))
            if not self._more():
                return False

    def peek(self) -> str:
        return self._text[:1]

    def advance(self, count: int) -> None:
        self.line += self._text.count("\n", 0, count)
        self._text = self._text[count:]

    def decode(self, decoder: json.JSONDecoder) -> tuple[Any, int]:
        while True:
            try:
                value, end = decoder.raw_decode(self._text)
                if end < len(self._text) or not self._more():  # a number may go on in the next chunk
                    return value, end
            except json.JSONDecodeError:
                if not self._more():
                    raise


def _read_csv(path: Path) -> Numbered:
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as source:
        reader = csv.DictReader(source, strict=True)
        try:
            header = reader.fieldnames or ()
            if len(set(header)) < len(header):
                twice = next(name for name in header if header.count(name) > 1)
                raise DataError(f"{path}, line 1: two columns are called {twice!r}")
            for record in reader:
                if None in record or None in record.values():
                    raise DataError(f"{path}, line {reader.line_num}: as many cells as the header are needed")
                # An empty cell is a missing value, but for a context, which may be empty.
                yield (
                    reader.line_num,
                    {key: _cell(key, value) for key, value in record.items() if value or key == "context"},
                )
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.reader.line_num}: broken CSV ({error})") from error


def _cell(name: str, text: str) -> Any:
    """A cell that holds a JSON list or object stands for it, but for those that are text in any case."""
    if name not in _TEXTS and text[:1] in ("[", "{"):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return text
    return text


def _read_parquet(path: Path) -> Numbered:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra(f"{path}: reading parquet", "parquet") from error
    try:
        number = 0
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=256):
            for record in batch.to_pylist():
                number += 1
                yield number, {key: value for key, value in record.items() if value is not None}
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: broken parquet file ({printable(str(error))})") from error


SUFFIXES: dict[str, Callable[[Path], Numbered]] = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
