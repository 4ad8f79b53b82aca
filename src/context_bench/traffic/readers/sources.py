"""Files of traffic as readers see them: unpacked, value by value, with every unusable line counted and named.

Plain, gzip, zstd and zip; JSON lines, JSON lists, pretty-printed or not, and single documents. A damaged file gives
what stands before and after the damage. Memory is bounded by the longest record: what has to be read twice is on disk.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

import orjson
import zstandard

from context_bench.errors import DataError
from context_bench.text import dump_json
from context_bench.text.formats import MAX_RECORD, JsonWindow

HEAD_BYTES = 64 << 10
LONG_HEAD_BYTES = 1 << 20  # where the first lines are long
HEAD_RECORDS = 20
MAX_UNPACKED = 16 << 30  # bytes that a packed file may grow to
MAX_NAMED_LINES = 5  # unusable lines that are named, of each reason
_UNPACKED_IN_MEMORY = 1 << 20
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, zipfile.BadZipFile)


class Record(NamedTuple):
    """A value in a file."""

    line: int
    place: int  # for `Source.read_again`
    value: Any


@dataclass(frozen=True)
class Head:
    """The start of a file, by which its format is recognised."""

    name: str  # of the file
    records: list[Any]  # the first values; the last may lack its end
    members: tuple[str, ...] = ()  # of an archive that is one recording

    def any(self, test: Callable[[Mapping[str, Any]], Any]) -> bool:
        """Tell whether a test holds for one of the records that are objects."""
        return any(test(each) for each in self.records if isinstance(each, Mapping))


@dataclass
class FileReport:
    """What became of one file."""

    path: str
    format: str = ""  # the reader's name; empty for a file that is no recording
    reason: str = ""  # why it is none, or why it could not be read
    threads: int = 0
    requests: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # lines that could not be used, by reason
    lines: dict[str, list[int]] = field(default_factory=dict)  # the first of them

    def skip(self, line: int, reason: str) -> None:
        """Count a line that cannot be used."""
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
    """A recording that is being read: a file, a member of an archive, or several files that belong together."""

    def __init__(
        self, path: Path, member: str = "", archive: zipfile.ZipFile | None = None, bundle: Iterable[Path] = ()
    ) -> None:
        self.path, self.member, self.archive, self.bundle = path, member, archive, tuple(bundle)
        self.name = f"{path}:{member}" if member else str(path)
        self.report = FileReport(self.name)
        self._stack = ExitStack()
        self._spool: IO[bytes] | None = None
        self.replies: list[int] = []  # the hashes of the replies that were read

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def skip(self, line: int, reason: str) -> None:
        """Count a line that cannot be used."""
        self.report.skip(line, reason)

    @cached_property
    def stream(self) -> BinaryIO:
        """The unpacked bytes, which can be sought in."""
        if self.archive is not None and not self.member:
            return io.BytesIO()
        if self.archive is not None:
            return self._unpack(self._stack.enter_context(self.archive.open(self.member)))
        packed = self._stack.enter_context(self.path.open("rb"))
        magic = packed.read(4)
        packed.seek(0)
        if magic[:2] == b"\x1f\x8b":
            return self._unpack(gzip.GzipFile(fileobj=packed))
        if magic == b"\x28\xb5\x2f\xfd":
            return self._unpack(zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True))
        return packed

    def _unpack(self, packed: Any) -> BinaryIO:
        unpacked = self._make_temporary()
        size = 0
        try:
            while chunk := packed.read1(1 << 16):  # so that nothing before the damage is lost
                size += len(chunk)
                if size > MAX_UNPACKED:
                    raise DataError(f"{self.name}: it unpacks to more than {MAX_UNPACKED >> 30} GB")
                unpacked.write(chunk)
        except _DAMAGE as error:
            self.skip(0, f"the compressed file is damaged: {error}")
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
        """The first lines, each with its value; the last one may be cut."""
        lines = [line for line in self._start.split(b"\n", HEAD_RECORDS)[:HEAD_RECORDS] if line.strip()]
        return [(line, _load(line)) for line in lines]

    @cached_property
    def in_lines(self) -> bool:
        """Whether each line is a JSON value of its own."""
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
            value = close_json(self._start.decode("utf-8", "replace"))
            records = value[:HEAD_RECORDS] if isinstance(value, list) else [value]
        else:
            records = [value for _, value in self._first_lines]
            if records and records[-1] is None:
                records[-1] = close_json(self._first_lines[-1][0].decode("utf-8", "replace"))
        return Head(self.path.name, [each for each in records if each is not None], members)

    def records(self, expand: Callable[[Any], list[Any]] | None = None) -> Iterator[Record]:
        """Yield every value with its line: of JSON lines, of a list, or one document after the other.

        `expand` gives the records within a value, which then stand for it.
        """
        if self.bundle:
            values: Iterator[tuple[int, int, Any]] = self._read_bundle()
        else:
            values = self._read_lines() if self.in_lines else ((line, -1, each) for line, each in self._read_document())
        for line, place, value in values:
            if expand is None and place >= 0:
                yield Record(line, place, value)
            else:
                for each in [value] if expand is None else expand(value):
                    yield Record(line, -1 - self._keep(each), each)

    def document(self) -> Any:
        """Read a file that is one JSON value; of a damaged one all that can be read, None for nothing.

        Objects after the damage are put into the list in which others like them stand.
        """
        values = [record.value for record in self.records()] if self.in_lines else self._read_whole()
        if not values:
            return None
        whole, *loose = values
        for value in loose:
            if isinstance(value, dict) and (found := _find_list_of(whole, value)) is not None:
                found.append(value)
        return whole

    def _read_whole(self) -> list[Any]:
        values = [value for _, value in self._read_document()]
        return [values] if self._start.lstrip()[:1] == b"[" else values

    def read_again(self, place: int) -> Any:
        """Read the value of a record once more."""
        if place < 0 and self._spool is not None:
            self._spool.seek(-1 - place)
            return _load(self._spool.readline())
        self.stream.seek(place)
        return _load(self.stream.readline())

    def _make_temporary(self) -> IO[bytes]:
        """Make a file that is gone when this one is closed."""
        return self._stack.enter_context(tempfile.SpooledTemporaryFile(_UNPACKED_IN_MEMORY))

    def _keep(self, value: Any) -> int:
        """Keep a value for `read_again`."""
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
                    line = self.stream.readline(MAX_RECORD)
                    place += len(line)
                self.skip(number, f"longer than {MAX_RECORD >> 20} MB")
                continue
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            value = _load(line)
            if value is not None:
                yield number, start, value
                self.stream.seek(place)  # a reader may have looked elsewhere
            elif line.strip():
                self.skip(number, "broken JSON" if line.endswith(b"\n") else "the file ends in the middle of a line")

    def _read_document(self) -> Iterator[tuple[int, Any]]:
        """Yield the elements of a list, or values one after the other; go on after a damaged one."""
        self.stream.seek(0)
        text = io.TextIOWrapper(self.stream, encoding="utf-8-sig", errors="replace")
        try:
            window = JsonWindow(text, self.name)
            in_list = window.skip() and window.peek() == "["
            window.advance(1 if in_list else 0)
            damaged = False
            while window.skip():
                line = window.line
                if window.peek() in ",]":
                    window.advance(1)
                    continue
                try:
                    yield line, window.decode()
                except json.JSONDecodeError as error:
                    rest, place = window.rest(), error.pos - (len(error.doc) - len(window.rest()))
                    if not damaged:
                        self.skip(window.find_line(error), f"broken JSON ({error.msg}): the values around are used")
                    if not in_list and not damaged and (begun := close_json(rest[:place])) not in (None, {}):
                        yield line, begun
                    damaged = True
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
    """Read the start of a JSON value whose end is missing: all that is complete; None where nothing is.

    Where it is damaged before, only what stands before the damage.
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
    except RecursionError:
        return None


def _find_list_of(whole: Any, value: dict[str, Any]) -> list[Any] | None:
    """Find the list, last of all in a document, whose elements have the keys of an object."""
    if isinstance(whole, dict):
        return next((found for each in reversed(whole.values()) if (found := _find_list_of(each, value))), None)
    if isinstance(whole, list) and whole:
        inner = _find_list_of(whole[-1], value)
        if inner is not None:
            return inner
        if isinstance(whole[0], dict) and whole[0].keys() == value.keys():
            return whole
    return None


def _load(line: bytes) -> Any:
    """Read a line as JSON; None for what is none."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            return json.loads(line.removeprefix(b"\xef\xbb\xbf"))  # it takes the lone surrogates that real data has
        except (ValueError, RecursionError):
            return None


def open_archive(path: Path) -> zipfile.ZipFile | None:
    """Open a zip file; of one whose end is missing, a copy of the members that are whole. None for another file."""
    with path.open("rb") as file:
        if file.read(4) != b"PK\x03\x04":
            return None
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        return _rescue_members(path.read_bytes())


def _rescue_members(data: bytes) -> zipfile.ZipFile:
    """Read a zip file by the headers before its members, as its directory is missing."""
    rescued = zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED)
    place = 0
    while (place := data.find(b"PK\x03\x04", place)) >= 0 and place + 30 <= len(data):
        method = int.from_bytes(data[place + 8 : place + 10], "little")
        size = int.from_bytes(data[place + 18 : place + 22], "little")
        names, extra = (int.from_bytes(data[place + at : place + at + 2], "little") for at in (26, 28))
        name = data[place + 30 : place + 30 + names].decode("utf-8", "replace")
        place += 30 + names + extra
        unpacker = zlib.decompressobj(-15)
        try:
            content = unpacker.decompress(data[place:], MAX_RECORD) if method == 8 else data[place : place + size]
        except zlib.error:
            continue
        if method == 8 and not unpacker.eof:
            continue
        if name not in rescued.namelist():
            rescued.writestr(name, content)
    return rescued
