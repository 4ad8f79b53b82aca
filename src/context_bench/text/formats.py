"""Records from the bytes of a file: JSON Lines, JSON, CSV, TSV and Parquet, each read as a stream.

A reader takes an open file and its name for errors, and yields (line or record number, record). A reader keeps one
record in memory, and limits its size, because a small compressed file may contain a line of gigabytes. Content that
cannot be parsed raises a DataError with the file and the line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any, AnyStr, BinaryIO, TextIO

import orjson

from context_bench.errors import DataError, MissingExtra, printable

Numbered = Iterator[tuple[int, Any]]

JSON_CHUNK_CHARS = 1 << 16
PARQUET_BUFFER_BYTES = 1 << 20
MAX_BATCH_ROWS = 256
MAX_RECORD = 128 << 20  # bytes of one line or record: a context of 30 million tokens
MAX_PARQUET = 1 << 30  # bytes of a Parquet file that must be read whole because its source cannot seek


def read_jsonl(source: BinaryIO, where: str) -> Numbered:
    """Yield one JSON value for each line; blank lines are skipped."""
    for number, line in enumerate(_read_lines(source, where), 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            try:
                value = json.loads(line)  # it accepts lone surrogates, which real data has
            except (ValueError, RecursionError):
                problem = f"broken JSON ({error.msg}, column {error.colno})"
                raise DataError(f"{where}, line {number}: {problem}") from error
        yield number, value


def _read_lines(source: IO[AnyStr], where: str) -> Iterator[AnyStr]:
    """Yield the lines of a file; raise DataError if a line is longer than a record may be."""
    number = 0
    while line := source.readline(MAX_RECORD + 1):
        number += 1
        if len(line) > MAX_RECORD:
            raise _explain_too_long(where, number)
        yield line


def _explain_too_long(where: str, line: int) -> DataError:
    return DataError(f"{where}, line {line}: a record is longer than {MAX_RECORD >> 20} MB; split it into smaller ones")


def read_json(source: BinaryIO, where: str, *, series: bool = False) -> Numbered:
    """Yield the elements of a JSON list; with `series` also consecutive objects, as in some `.json` files."""
    with io.TextIOWrapper(source, encoding="utf-8-sig") as lines:
        yield from _read_elements(JsonWindow(lines, where), where, series)


def _read_elements(text: JsonWindow, where: str, series: bool) -> Numbered:
    if not text.skip() or text.peek() != "[":
        if not series:
            raise DataError(f"{where}: a .json file must contain a list of examples; use .jsonl for one object a line")
        while text.skip():
            yield _read_element(text, where)
        return
    text.advance(1)
    while text.skip() and text.peek() != "]":
        yield _read_element(text, where)
        if text.skip() and text.peek() == ",":
            text.advance(1)
            if text.skip() and text.peek() == "]":
                raise DataError(f"{where}, line {text.line}: broken JSON (nothing after the last ',')")
        elif text.peek() != "]":
            raise DataError(f"{where}, line {text.line}: broken JSON (expected ',' or ']')")
    if text.peek() != "]":
        raise DataError(f"{where}, line {text.line}: broken JSON (the list has no end)")
    text.advance(1)
    if text.skip():
        raise DataError(f"{where}, line {text.line}: broken JSON (something comes after the end of the list)")


def _read_element(text: JsonWindow, where: str) -> tuple[int, Any]:
    line = text.line
    try:
        return line, text.decode()
    except json.JSONDecodeError as error:
        raise DataError(f"{where}, line {text.find_line(error)}: broken JSON ({error.msg})") from error


def _read_int(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return float(digits)


class JsonWindow:
    """The part of a JSON text file that is being parsed, value by value."""

    _decoder = json.JSONDecoder(parse_int=_read_int)
    _white = re.compile(r"[ \t\r\n]*")

    def __init__(self, source: TextIO, where: str) -> None:
        self._source, self._where, self._text, self._at, self.line = source, where, "", 0, 1

    def _read_more(self) -> bool:
        left = len(self._text) - self._at
        if left > MAX_RECORD:
            raise _explain_too_long(self._where, self.line)
        # Double the chunk each time, so that a long element is not parsed from its start too often.
        chunk = self._source.read(max(JSON_CHUNK_CHARS, left))
        if chunk:
            self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)

    def skip(self) -> bool:
        """Go to the next character that is not white space; return False at the end of the file."""
        while True:
            found = self._white.match(self._text, self._at)
            self.advance(found.end() - self._at if found else 0)
            if self._at < len(self._text):
                return True
            if not self._read_more():
                return False

    def peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def advance(self, count: int) -> None:
        """Skip `count` characters."""
        self.line += self._text.count("\n", self._at, self._at + count)
        self._at += count

    def decode(self) -> Any:
        """Return the JSON value that starts here, and move the window behind it."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                if end < len(self._text) or not self._read_more():  # a number may continue in the next chunk
                    self.advance(end - self._at)
                    return value
            except json.JSONDecodeError:
                if not self._read_more():
                    raise

    def find_line(self, error: json.JSONDecodeError) -> int:
        """Find the line of an error that `decode` raised."""
        return self.line + error.doc.count("\n", self._at, error.pos)

    def rest(self) -> str:
        """Return the text that was read and not parsed; after an error of `decode`, all of it."""
        return self._text[self._at :]


def read_csv(source: BinaryIO, where: str, *, delimiter: str = ",") -> Numbered:
    """Yield the rows under a header, every cell as text."""
    csv.field_size_limit(MAX_RECORD)
    with io.TextIOWrapper(source, encoding="utf-8-sig", newline="") as lines:
        yield from _read_rows(csv.DictReader(_read_lines(lines, where), strict=True, delimiter=delimiter), where)


def _read_rows(reader: csv.DictReader[str], where: str) -> Numbered:
    try:
        header = reader.fieldnames or ()
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise DataError(f"{where}, line 1: two columns are called {twice!r}")
        for record in reader:
            if None in record or None in record.values():
                raise DataError(f"{where}, line {reader.line_num}: a row must have as many cells as the header")
            yield reader.line_num, record
    except csv.Error as error:
        raise DataError(f"{where}, line {reader.reader.line_num}: broken CSV ({error})") from error


def read_parquet(source: BinaryIO, where: str) -> Numbered:
    """Yield the rows of a Parquet file, read in batches."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise MissingExtra(f"{where}: reading parquet", "parquet") from error
    try:
        seekable = source if source.seekable() else _read_whole(source, where)
        # By default, whole columns of all row groups are read before the first row is available.
        table = parquet.ParquetFile(seekable, buffer_size=PARQUET_BUFFER_BYTES, pre_buffer=False)
        number = 0
        for batch in table.iter_batches(batch_size=_choose_batch_size(table.metadata), use_threads=False):
            for record in batch.to_pylist():
                number += 1
                yield number, record
    except (OSError, ValueError) as error:
        raise DataError(f"{where}: broken parquet file ({printable(str(error))})") from error


def _read_whole(source: BinaryIO, where: str) -> BinaryIO:
    content = source.read(MAX_PARQUET + 1)
    if len(content) > MAX_PARQUET:
        raise DataError(f"{where}: larger than {MAX_PARQUET >> 30} GB; unpack it first")
    return io.BytesIO(content)


def _choose_batch_size(metadata: Any) -> int:
    """Choose a batch of about a megabyte, so that reading a few rows does not load many."""
    size: int = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    rows: int = metadata.num_rows * PARQUET_BUFFER_BYTES // max(1, size)
    return max(1, min(MAX_BATCH_ROWS, rows))


FORMATS: dict[str, Callable[[BinaryIO, str], Numbered]] = {
    ".jsonl": read_jsonl,
    ".json": partial(read_json, series=True),
    ".csv": read_csv,
    ".tsv": partial(read_csv, delimiter="\t"),
    ".parquet": read_parquet,
}
"""How the files of public datasets are read, by suffix."""
