"""Compressed recordings (gzip, zstd and zip): unpacked to disk within limits; a damaged file is read as far as it is
intact.
"""

from __future__ import annotations

import gzip
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import zstandard

from context_bench.errors import DataError
from context_bench.text.formats import MAX_RECORD

MAX_UNPACKED = 16 << 30  # limit for any file, in bytes
_FREE_UNPACKED = 1 << 30  # small files may always grow to this many bytes
_MAX_GROWTH = 200  # limit on the growth factor of larger files
_FREE_MEMORY = 1 << 20
_CHUNK = 1 << 16
_MEMBER = b"PK\x03\x04"
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, zipfile.BadZipFile)


class Archive(zipfile.ZipFile):
    """A zip file that counts its unpacked bytes."""

    unpacked = 0
    kept: IO[bytes] | None = None  # file with the rescued members

    def close(self) -> None:
        super().close()
        if self.kept is not None:
            self.kept.close()


def limit_growth(size: int) -> int:
    """Return the largest unpacked size of a compressed file with `size` bytes."""
    return min(MAX_UNPACKED, max(_FREE_UNPACKED, _MAX_GROWTH * size))


def open_packed(file: BinaryIO) -> Any:
    """Return a decompressing reader of a gzip or zstd file, recognised by its first bytes; None for other files."""
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=file)
    if magic == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    return None


def open_member(archive: Archive, name: str) -> IO[bytes]:
    """Open a member of an archive; raise DataError for a password or an unknown compression."""
    try:
        return archive.open(name)
    except (RuntimeError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot be unpacked: {error}") from error


def unpack(packed: Any, target: IO[bytes], limit: int) -> str:
    """Write the unpacked content to a file; return the problem, or "" for none."""
    size = 0
    try:
        while chunk := packed.read1(_CHUNK):  # read1 loses nothing before the damage
            size += len(chunk)
            if size > limit:
                return "compressed too strongly, so only a part is read: unpack it to a file first"
            target.write(chunk)
    except _DAMAGE as error:
        return f"the compressed file is damaged: {error}"
    return ""


def open_archive(path: Path) -> Archive | None:
    """Open a zip file; if its end is missing, open a copy of its complete members. None for other files."""
    with path.open("rb") as file:
        if file.read(len(_MEMBER)) != _MEMBER:
            return None
    try:
        return Archive(path)
    except (zipfile.BadZipFile, ValueError):
        return _rescue_members(path)


def _rescue_members(path: Path) -> Archive:
    """Read a zip file that has lost its directory, by the headers before its members."""
    kept = cast(IO[bytes], tempfile.SpooledTemporaryFile(_FREE_MEMORY))  # noqa: SIM115 - the archive closes it
    names: set[str] = set()
    left = limit_growth(path.stat().st_size)
    with (
        path.open("rb") as file,
        mmap(file.fileno(), 0, access=ACCESS_READ) as data,
        zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as rescued,
    ):
        for name, content in _list_members(data):
            if name not in names and len(content) <= left:
                left -= len(content)
                names.add(name)
                rescued.writestr(name, content)
    archive = Archive(kept)
    archive.kept = kept
    return archive


def _list_members(data: mmap) -> Iterator[tuple[str, bytes]]:
    place = 0
    while (place := data.find(_MEMBER, place)) >= 0 and place + 30 <= len(data):
        header = data[place : place + 30]
        named, extra = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        name = data[place + 30 : place + 30 + named].decode("utf-8", "replace")
        place += 30 + named + extra
        size = int.from_bytes(header[18:22], "little")
        content = _read_member(data, place, size, packed=header[8] == zipfile.ZIP_DEFLATED)
        if content is not None:
            yield name, content


def _read_member(data: mmap, place: int, size: int, *, packed: bool) -> bytes | None:
    """Read a complete member within the size limit of a record; None for other members."""
    if not packed:
        return data[place : place + size] if size <= min(MAX_RECORD, len(data) - place) else None
    unpacker, parts, left = zlib.decompressobj(-15), [], MAX_RECORD
    try:
        while not unpacker.eof and place < len(data) and left > 0:
            parts.append(unpacker.decompress(unpacker.unconsumed_tail + data[place : place + _CHUNK], left))
            left -= len(parts[-1])
            place += _CHUNK
    except zlib.error:
        return None
    return b"".join(parts) if unpacker.eof else None
