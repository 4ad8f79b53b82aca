"""Raw records with their places, and the files and folders that contain them.

A file may be plain, compressed (`.gz`) or a member of an archive (`a.zip!inner.jsonl`).
"""

from __future__ import annotations

import fnmatch
import gzip
import hashlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Protocol, cast

from context_bench.datasets.catalog import Card, Config
from context_bench.datasets.public.adapters import Reader
from context_bench.errors import DataError, printable
from context_bench.registry import import_object
from context_bench.text.formats import FORMATS

Placed = tuple[str, Any]  # the place of a record, in words for an error, and the record

MAX_DIGEST_BYTES = 256 << 20


class Records(Protocol):
    """The records of one configuration."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """The source of the records and its version, which are recorded with a run."""

    def __iter__(self) -> Iterator[Placed]: ...


@dataclass(frozen=True)
class RawFile:
    """One file of records, or one member of an archive."""

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}!{self.member}" if self.member else str(self.path)

    @property
    def name(self) -> str:
        """The name of the file or member, without `.gz`."""
        name = (self.member or self.path.name).rpartition("/")[2]
        return name[:-3] if name.lower().endswith(".gz") else name

    @property
    def suffix(self) -> str:
        """The suffix, which decides how the file is read."""
        return Path(self.name).suffix.lower()

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the unpacked bytes."""
        packed = (self.member or self.path.name).lower().endswith(".gz")
        try:
            with ExitStack() as stack:
                source = stack.enter_context(self._open_stored(stack))
                yield cast(BinaryIO, gzip.GzipFile(fileobj=source)) if packed else source
        except UnicodeDecodeError as error:
            raise DataError(f"{self}: not UTF-8 text ({error.reason} at byte {error.start})") from error
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, KeyError) as error:
            raise DataError(f"{self}: cannot be read: {printable(str(error))}") from error
        except RecursionError as error:
            raise DataError(f"{self}: broken JSON (nested too deeply)") from error

    def _open_stored(self, stack: ExitStack) -> BinaryIO:
        """Open the stored bytes; register anything else that must be closed on the stack."""
        if self.member:
            return cast(BinaryIO, stack.enter_context(zipfile.ZipFile(self.path)).open(self.member))
        return self.path.open("rb")


def expand(path: Path, member: str = "*") -> list[RawFile]:
    """List a file itself, or every readable member of an archive that matches the pattern."""
    if path.suffix.lower() != ".zip":
        return [RawFile(path)]
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if fnmatch.fnmatchcase(name, member))
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: cannot be read: {printable(str(error))}") from error
    files = [RawFile(path, name) for name in names if not name.endswith("/")]
    return files if member != "*" else [file for file in files if file.suffix in FORMATS]


def find_reader(text: str) -> Reader | None:
    """Import the reader that a card names as `family:function`."""
    return import_object(f"{__package__}.adapters.{text}") if text else None


def read_files(files: Sequence[RawFile], reader: Reader | None = None) -> Iterator[Placed]:
    """Yield all records of the files, read by their suffix or by the dataset's own reader."""
    if reader is not None:
        yield from _read_with(reader, files)
        return
    for file in files:
        if file.suffix not in FORMATS:
            raise DataError(f"{file}: unknown kind of file; use {', '.join(FORMATS)}")
        with file.open() as source:
            for number, record in enumerate((record for _, record in FORMATS[file.suffix](source, str(file))), 1):
                yield f"{file}, record {number}", record


def _read_with(reader: Reader, files: Sequence[RawFile]) -> Iterator[Placed]:
    names = ", ".join(map(str, files))
    with TemporaryDirectory(prefix="context-bench-") as folder:
        paths = [_unpack(file, Path(folder) / str(place)) for place, file in enumerate(files)]
        try:
            for number, record in enumerate(reader(paths), 1):
                yield f"{names}, record {number}", record
        except KeyError as error:
            raise DataError(f"{names}: no column {error.args[0] if error.args else '?'!r}") from error
        except (OSError, ValueError) as error:
            raise DataError(f"{names}: cannot be read: {printable(str(error))}") from error


def _unpack(file: RawFile, folder: Path) -> Path:
    """Return a path that a reader can open; archives and compressed files are unpacked for it."""
    if not file.member and file.name == file.path.name:
        return file.path
    folder.mkdir()
    with file.open() as source, (folder / file.name).open("wb") as target:
        shutil.copyfileobj(source, target)
    return folder / file.name


def digest(path: Path) -> str:
    """Return a digest that distinguishes versions of a file; for a file too large to read quickly, only its size."""
    size = path.stat().st_size
    if size > MAX_DIGEST_BYTES:
        return f"{size} bytes"
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


NOTE = "SOURCE"
"""The file that `datasets fetch` writes beside the records, as JSON: repository and revision by configuration."""

_SUFFIXES = [*FORMATS, *(f"{suffix}.gz" for suffix in FORMATS)]


class LocalFiles:
    """The records of one configuration in a folder."""

    def __init__(self, folder: Path, card: Card, config: Config, split: str) -> None:
        self._folder, self._card, self._config, self._split = folder, card, config, split
        self._own = find_reader(config.reader)
        self.files, self._reader = self._find_files()

    def __iter__(self) -> Iterator[Placed]:
        return read_files(self.files, self._own if self._reader else None)

    @property
    def facts(self) -> Mapping[str, Any]:
        """The files with their digests, and the revision if they were fetched."""
        paths = dict.fromkeys(file.path for file in self.files)
        facts: dict[str, Any] = {"files": {str(path.relative_to(self._folder)): digest(path) for path in paths}}
        return facts | self._read_note()

    def _read_note(self) -> dict[str, Any]:
        try:
            note = json.loads((self._folder / NOTE).read_text(encoding="utf-8"))
            return dict(note[self._config.name])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _find_files(self) -> tuple[list[RawFile], bool]:
        """Find the files to read, and whether to read them with the dataset's own reader."""
        own = (self._config.files, self._config.hub_files) if self._split == self._config.split else ()
        for patterns in own:
            if self._own is not None:
                together = [file for pattern in patterns for file in _find_matches(self._folder, pattern)]
                if together:
                    return together, True
            else:
                for pattern in patterns:
                    if found := _find_matches(self._folder, pattern):
                        return found, False
        stems = _list_stems(self._card, self._config, self._split)
        # The hub has shards: test-00000-of-00002.parquet.
        for pattern in (f"{stem}{shard}{suffix}" for stem in stems for suffix in _SUFFIXES for shard in ("", "-*")):
            if found := _find_matches(self._folder, pattern):
                return found, False
        raise DataError(self._explain_nothing())

    def _explain_nothing(self) -> str:
        wanted = " or ".join(patterns_for(self._card, self._config, self._split))
        there = sorted(path.relative_to(self._folder).as_posix() for path in self._folder.rglob("*") if path.is_file())
        shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
        tag = f"{self._card.name}:{self._config.name}"
        return (
            f"{self._folder}: no file for {tag} (split {self._split}); expected {wanted}; found: {shown or 'nothing'}"
        )


def patterns_for(card: Card, config: Config, split: str | None = None) -> list[str]:
    """List, for people to read, where the files of a configuration are searched, in order."""
    split = split or config.split
    own = [*config.files, *config.hub_files] if split == config.split else []
    return [*dict.fromkeys(own), *(f"{stem}.*" for stem in _list_stems(card, config, split))]


def _list_stems(card: Card, config: Config, split: str) -> list[str]:
    stems = [f"{config.name}/{split}"]
    if config.hub_config:
        stems.append(f"{config.hub_config}/{split}")
    if config.name == card.default_config:
        stems += [split, f"data/{split}"]
    return list(dict.fromkeys(stems))


def _find_matches(folder: Path, pattern: str) -> list[RawFile]:
    outer, _, member = pattern.partition("!")
    paths = sorted(path for path in folder.glob(outer) if path.is_file())
    return [file for path in paths for file in expand(path, member or "*")]
