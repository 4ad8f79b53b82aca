"""Files of traffic for readers: unpacked, value by value, with every unusable line counted and named.

A file may be plain, gzip, zstd or zip, and contain JSON lines, a JSON list (pretty-printed or not) or one document.
From a damaged file, the values before and after the damage are read. Memory holds one session or one JSON document;
values that are needed twice are kept on disk.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

import orjson

from context_bench.text import dump_json
from context_bench.text.formats import MAX_RECORD, JsonWindow
from context_bench.traffic.readers.packed import Archive, limit_growth, open_member, open_packed, unpack

HEAD_BYTES = 64 << 10
LONG_HEAD_BYTES = 1 << 20  # for files with long first lines
HEAD_RECORDS = 20
MAX_NESTING = 150  # JSON levels; tools and calls have up to 20
WRONG_SHAPE = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""Errors that a reader raises if a field does not have the type that its format requires."""
ODD_FIELDS = "its fields do not match this format"
_TOO_DEEP = f"nested more than {MAX_NESTING} levels deep"
MAX_DAMAGES = 100  # per document; each costs a search in the rest of the file
MAX_NAMED_LINES = 5  # named unusable lines for each reason
_UNPACKED_IN_MEMORY = 1 << 20


class Record(NamedTuple):
    """A value in a file."""

    line: int
    place: int  # argument of `Source.read_again`
    value: Any


@dataclass(frozen=True)
class Head:
    """The start of a file, used to recognise its format."""

    name: str  # file name
    records: list[Any]  # first values; the last may be cut off
    members: tuple[str, ...] = ()  # members of an archive that is one recording

    def any(self, test: Callable[[Mapping[str, Any]], Any]) -> bool:
        """Whether a test is true for any record that is an object."""
        return any(_holds(test, each) for each in self.records if isinstance(each, Mapping))


def _holds(test: Callable[[Mapping[str, Any]], Any], record: Mapping[str, Any]) -> bool:
    try:
        return bool(test(record))
    except WRONG_SHAPE:
        return False


@dataclass
class FileReport:
    """Result of reading one file."""

    path: str
    format: str = ""  # name of the reader; empty if the file is no recording
    reason: str = ""  # why it is no recording, or cannot be read
    threads: int = 0
    requests: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # unusable lines by reason
    lines: dict[str, list[int]] = field(default_factory=dict)  # numbers of the first ones

    def skip(self, line: int, reason: str) -> None:
        """Count an unusable line."""
        self.skipped[reason] += 1
        named = self.lines.setdefault(reason, [])
        if len(named) < MAX_NAMED_LINES:
            named.append(line)

    def as_dict(self) -> dict[str, Any]:
        skipped = [
            {"reason": reason, "lines": count, "first": self.lines[reason]} for reason, count in self.skipped.items()
        ]
        return {
            "path": self.path,
            "format": self.format or None,
            "reason": self.reason or None,
            "threads": self.threads,
            "requests": self.requests,
            "skipped": skipped,
        }


class Source:
    """An open recording: a file, a member of an archive, or a bundle of files."""

    def __init__(
        self, path: Path, member: str = "", archive: Archive | None = None, bundle: Iterable[Path] = ()
    ) -> None:
        self.path, self.member, self.archive, self.bundle = path, member, archive, tuple(bundle)
        self.name = f"{path}:{member}" if member else str(path)
        self.report = FileReport(self.name)
        self._stack = ExitStack()
        self._spool: IO[bytes] | None = None
        self.replies: list[int] = []  # hashes of the replies read

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def skip(self, line: int, reason: str) -> None:
        """Count an unusable line."""
        self.report.skip(line, reason)

    @contextmanager
    def using(self, line: int) -> Iterator[None]:
        """Catch errors from a record whose fields do not match the format, and count it."""
        try:
            yield
        except WRONG_SHAPE:
            self.skip(line, ODD_FIELDS)

    @cached_property
    def stream(self) -> BinaryIO:
        """Unpacked bytes, with random access."""
        if self.archive is not None and not self.member:
            return io.BytesIO()
        if self.archive is not None:
            return self._unpack(self._stack.enter_context(open_member(self.archive, self.member)))
        file = self._stack.enter_context(self.path.open("rb"))
        packed = open_packed(file)
        return file if packed is None else self._unpack(packed)

    def _unpack(self, packed: Any) -> BinaryIO:
        unpacked = self._make_temporary()
        limit = limit_growth(self.path.stat().st_size)
        if problem := unpack(packed, unpacked, limit if self.archive is None else limit - self.archive.unpacked):
            self.skip(0, problem)
        if self.archive is not None:
            self.archive.unpacked += unpacked.tell()
        unpacked.seek(0)
        return cast(BinaryIO, unpacked)

    @cached_property
    def _start(self) -> bytes:
        self.stream.seek(0)
        start = self.stream.read(HEAD_BYTES)
        if start.count(b"\n") < 2 and start.lstrip()[:1] != b"[":
            start += self.stream.read(LONG_HEAD_BYTES - len(start))
        return start.removeprefix(b"\xef\xbb\xbf")

    @cached_property
    def _first_lines(self) -> list[tuple[bytes, Any]]:
        """First lines, each with its value; the last one may be cut off."""
        lines = [line for line in self._start.split(b"\n", HEAD_RECORDS)[:HEAD_RECORDS] if line.strip()]
        return [(line, _load(line)) for line in lines]

    @cached_property
    def in_lines(self) -> bool:
        """Whether each line is a separate JSON value."""
        lines = self._first_lines
        if len(lines) == 1:
            return lines[0][0].lstrip()[:1] == b"{"
        ends = self._start.endswith(b"\n") or len(self._start) < HEAD_BYTES or len(lines) == HEAD_RECORDS
        whole = lines if ends else lines[:-1]
        return 2 * sum(isinstance(value, dict) for _, value in whole) >= len(whole)

    @cached_property
    def head(self) -> Head:
        members = tuple(self.archive.namelist()) if self.archive is not None and not self.member else ()
        if not self.in_lines:
            begun = self._read_document(io.BytesIO(self._start), FileReport(""))
            records = [value for _, value in islice(begun, HEAD_RECORDS)] if self._start.lstrip()[:1] in b"[{" else []
            if not records:  # the first value of a list is longer than the start
                value = close_json(self._start.decode("utf-8", "replace"))
                records = value if isinstance(value, list) else [value]
        else:
            records = [value for _, value in self._first_lines]
            if records and records[-1] is None:
                records[-1] = close_json(self._first_lines[-1][0].decode("utf-8", "replace"))
        return Head(self.path.name, [each for each in records if each is not None], members)

    def records(self, expand: Callable[[Any], list[Any]] | None = None) -> Iterator[Record]:
        """Yield every value with its line, from JSON lines, a list or consecutive documents.

        `expand` returns the records inside a value, which then replace it.
        """
        if self.bundle:
            values: Iterator[tuple[int, int, Any]] = self._read_bundle()
        elif self.in_lines and not (expand and len(self._first_lines) == 1):
            values = self._read_lines()
        else:  # also one line that contains all records: of a damaged one, the intact records are read
            values = ((line, -1, each) for line, each in self._read_document(self.stream, self.report))
        for line, place, value in values:
            if expand is None and place >= 0:
                yield Record(line, place, value)
            else:
                for each in [value] if expand is None else self._expand(expand, line, value):
                    yield Record(line, -1 - self._keep(each), each)

    def _expand(self, expand: Callable[[Any], list[Any]], line: int, value: Any) -> list[Any]:
        try:
            return expand(value)
        except WRONG_SHAPE:
            self.skip(line, ODD_FIELDS)
            return []

    def document(self) -> Any:
        """Read a file that is one JSON value. If it is damaged, return all readable parts, or None.

        Objects after the damage are added to the list that contains similar objects.
        """
        values = [value for _, value in self._read_document(self.stream, self.report)]
        if self._start.lstrip()[:1] == b"[":
            return values or None
        if not values:
            return None
        whole, *loose = values
        for value in loose:
            if isinstance(value, dict) and (found := _find_list_of(whole, value)) is not None:
                found.append(value)
        return whole

    def read_again(self, place: int) -> Any:
        """Read the value of a record again."""
        if place < 0 and self._spool is not None:
            self._spool.seek(-1 - place)
            return _load(self._spool.readline())
        self.stream.seek(place)
        return _load(self.stream.readline())

    def _make_temporary(self) -> IO[bytes]:
        """Make a temporary file that is deleted with this source."""
        return self._stack.enter_context(tempfile.SpooledTemporaryFile(_UNPACKED_IN_MEMORY))

    def _keep(self, value: Any) -> int:
        """Store a value for `read_again`."""
        if self._spool is None:
            self._spool = self._make_temporary()
        place = self._spool.seek(0, io.SEEK_END)
        self._spool.write(dump_json(value).encode() + b"\n")
        return place

    def _read_lines(self) -> Iterator[tuple[int, int, Any]]:
        self.stream.seek(0)
        place = number = 0
        while line := self.stream.readline(MAX_RECORD + 1):
            number += 1
            start, place = place, place + len(line)
            if len(line) > MAX_RECORD:
                while line and not line.endswith(b"\n"):
                    line = self.stream.readline(HEAD_BYTES)
                    place += len(line)
                self.skip(number, f"longer than {MAX_RECORD >> 20} MB")
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            value = _load(line)
            if is_too_deep(value):
                self.skip(number, _TOO_DEEP)
            elif value is not None:
                yield number, start, value
                self.stream.seek(place)  # a reader may have moved the position
            elif line.strip():
                self.skip(number, "broken JSON" if line.endswith(b"\n") else "the file ends in the middle of a line")

    def _read_document(self, stream: BinaryIO, report: FileReport) -> Iterator[tuple[int, Any]]:
        """Yield the elements of a list, or consecutive values; continue after damaged ones."""
        stream.seek(0)
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")
        try:
            window = JsonWindow(text, self.name)
            in_list = window.skip() and window.peek() == "["
            window.advance(1 if in_list else 0)
            damages = 0
            while window.skip():
                line = window.line
                if window.peek() in ",]":
                    window.advance(1)
                    continue
                try:
                    value = window.decode()
                    if is_too_deep(value):
                        report.skip(line, _TOO_DEEP)
                    else:
                        yield line, value
                except RecursionError:  # its end is unknown
                    report.skip(line, f"{_TOO_DEEP}: the rest is not read")
                    return
                except json.JSONDecodeError as error:
                    rest, place = window.rest(), error.pos - (len(error.doc) - len(window.rest()))
                    if not damages:
                        report.skip(
                            window.find_line(error), f"broken JSON ({error.msg}): the values around it are used"
                        )
                    if not in_list and not damages and (begun := close_json(rest[:place])) not in (None, {}):
                        yield line, begun
                    damages += 1
                    if damages == MAX_DAMAGES:
                        report.skip(line, f"damaged in {MAX_DAMAGES} places: the rest is not read")
                        return
                    following = _NEXT_OBJECT.search(rest, max(place, 1))
                    window.advance(following.start() if following else len(rest))
        finally:
            text.detach()

    def _read_bundle(self) -> Iterator[tuple[int, int, Any]]:
        """Yield the documents of several files, each as `{"name", "modified", "document"}`."""
        for number, path in enumerate(self.bundle, 1):
            with Source(path) as part:
                document = part.document()
            self.report.skipped += part.report.skipped
            self.report.lines |= part.report.lines
            if isinstance(document, dict):
                yield number, -1, {"name": path.name, "modified": path.stat().st_mtime, "document": document}


_NEXT_OBJECT = re.compile(r"(?<=[\n,\[ ])\{(?=\s*[\"}])")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)


def close_json(text: str, *, again: bool = True) -> Any:
    """Read the complete parts of a JSON value whose end is missing; None if there are none.

    If the value is damaged before its end, read only the part before the damage.
    """
    closers: list[str] = []
    cut = 0
    for token in _TOKEN.finditer(text):
        sign = token[0][0]
        if sign in "[{":
            closers.append("]" if sign == "[" else "}")
        elif sign in "]}" and closers:
            closers.pop()
        if sign != '"':
            cut = token.start() if sign == "," else token.end()
        if sign in "]}" and not closers:
            break
    try:
        return json.loads(text[:cut].lstrip("\ufeff") + "".join(reversed(closers)))
    except json.JSONDecodeError as error:
        return close_json(text[: error.pos], again=False) if again and 0 < error.pos < cut else None
    except (RecursionError, ValueError):
        return None


def _find_list_of(whole: Any, value: dict[str, Any]) -> list[Any] | None:
    """Return the last list in a document whose elements have the keys of an object."""
    if isinstance(whole, dict):
        return next((found for each in reversed(whole.values()) if (found := _find_list_of(each, value))), None)
    if isinstance(whole, list) and whole:
        inner = _find_list_of(whole[-1], value)
        if inner is not None:
            return inner
        if isinstance(whole[0], dict) and whole[0].keys() == value.keys():
            return whole
    return None


def is_too_deep(value: Any) -> bool:
    """Whether a JSON value is nested more deeply than `MAX_NESTING`."""
    level = [value]
    for _ in range(MAX_NESTING):
        level = [
            each
            for held in level
            if isinstance(held, dict | list)
            for each in (held.values() if isinstance(held, dict) else held)
            if isinstance(each, dict | list)
        ]
        if not level:
            return False
    return True


def _load(line: bytes) -> Any:
    """Read a line as JSON; None if invalid."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            return json.loads(line.decode("utf-8-sig", "replace"))  # accepts lone surrogates, which occur in real data
        except (ValueError, RecursionError):
            return None
