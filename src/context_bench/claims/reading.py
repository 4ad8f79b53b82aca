"""Reader of untrusted bundles: nothing is written to disk, and memory use stays small.

Only the entries of a bundle are accepted, in their order, as plain files, so paths, links and nested archives can do no
harm. Sizes are checked before unpacking, and contents are read in pieces.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import orjson

from context_bench.claims.bundle import (
    FORMAT,
    MANIFEST,
    MAX_LINE_BYTES,
    MAX_PART_BYTES,
    PARTS,
    SIGNATURE,
    canonical,
    hash_value,
)
from context_bench.errors import DataError, MissingExtra, UsageError

MAX_DIRECTORY_BYTES = 1 << 16
MAX_VALUES = 4_000_000  # limit on values in one line: each takes much more memory than its bytes
MAX_RATIO, RATIO_FROM_BYTES = 400, 256 << 20
"""Limit on the compression of large parts: texts of a run stay below it, zip bombs do not."""

_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class Damage(Exception):
    """A part of the bundle differs from its sealed content."""


class Bundle:
    """An open bundle.

    Raises:
        DataError: The file is not a bundle, or is unsafe to unpack.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: set[IO[bytes]] = set()
        _check_directory(path)
        try:
            self._archive = zipfile.ZipFile(path)
            self._entries = _check_entries(path, self._archive)
        except _DAMAGE as error:
            raise _refuse(path, f"it cannot be read ({error})") from None
        self.damage: list[str] = []  # one sentence for each damage; empty if all hashes match
        manifest = self.read_json(MANIFEST) if MANIFEST in self._entries else None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise _refuse(self.path, f"its {MANIFEST} does not have the format {FORMAT!r}")
        self.manifest = manifest
        self._check_order()
        self._check_parts()

    def close(self) -> None:
        """Close the file, even if a part was not read to its end."""
        for file in self._opened:
            file.close()
        self._archive.close()

    def __enter__(self) -> Bundle:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def private(self) -> bool:
        return bool(self.manifest.get("private"))

    @property
    def root(self) -> str:
        return str(self.manifest.get("root"))

    def _check_order(self) -> None:
        names = [entry.filename for entry in self._archive.infolist()]
        wanted = [*PARTS, MANIFEST, *([SIGNATURE] if SIGNATURE in names else [])]
        if names != wanted:
            odd = sorted(set(wanted) ^ set(names)) or sorted({each for each in names if names.count(each) > 1})
            self.damage.append(f"parts are missing, added, repeated or out of order: {', '.join(odd) or 'their order'}")

    def _check_parts(self) -> None:
        """Hash every part, and compare it with the manifest."""
        sealed = {key: value for key, value in self.manifest.items() if key != "root"}
        written = b"".join(self._read_chunks(MANIFEST))
        if hash_value(sealed) != self.manifest.get("root") or canonical(self.manifest) != written:
            self.damage.append(f"{MANIFEST}: the root hash does not match its contents")
        listed = self.manifest.get("parts")
        listed = listed if isinstance(listed, list) else []
        if [each.get("name") for each in listed if isinstance(each, dict)] != list(PARTS):
            self.damage.append(f"{MANIFEST}: it does not list the parts of a bundle")
        for each in listed:
            name = each.get("name") if isinstance(each, dict) else None
            if name not in PARTS or name not in self._entries:
                continue
            digest, size = hashlib.sha256(), 0
            try:
                for chunk in self._read_chunks(name):
                    digest.update(chunk)
                    size += len(chunk)
            except Damage as error:
                self.damage.append(str(error))
                continue
            sizes = {size, self._entries[name].file_size, each.get("bytes")}
            if len(sizes) > 1 or digest.hexdigest() != each.get("sha256"):
                self.damage.append(f"{name}: its hash does not match the manifest")

    def _read_chunks(self, name: str) -> Iterator[bytes]:
        if name not in self._entries:
            raise Damage(f"{name}: missing")
        try:
            with self._archive.open(self._entries[name]) as file:
                self._opened.add(file)
                while chunk := file.read(1 << 18):
                    yield chunk
            self._opened.discard(file)
        except _DAMAGE as error:
            raise Damage(f"{name}: cannot be unpacked ({error})") from None

    def read_json(self, name: str) -> Any:
        """Read a small part at once."""
        if name in self._entries and self._entries[name].file_size > MAX_LINE_BYTES:
            raise _refuse(self.path, f"{name} is larger than {MAX_LINE_BYTES:,} bytes")
        try:
            return _load(b"".join(self._read_chunks(name)))
        except (Damage, orjson.JSONDecodeError) as error:
            if name == MANIFEST:
                raise _refuse(self.path, f"its {MANIFEST} cannot be read ({error})") from None
            raise Damage(f"{name}: not JSON ({error})") from None

    def read_lines(self, name: str) -> Iterator[Any]:
        """Yield the JSON values of a part, line by line."""
        pieces, size, number = list[bytes](), 0, 0
        for chunk in self._read_chunks(name):
            first, *others = chunk.split(b"\n")
            for ending in others:
                number += 1
                yield _read_line(name, number, b"".join([*pieces, first]))
                pieces, size, first = [], 0, ending
            pieces.append(first)
            size += len(first)
            if size > MAX_LINE_BYTES:
                raise Damage(f"{name}: line {number + 1} is longer than {MAX_LINE_BYTES:,} bytes")
        if size:
            raise Damage(f"{name}: the last line is cut off")

    def check_signature(self, signer: Path | None) -> str:
        """Describe the signature; `signer` is a PEM file with the expected public key.

        Raises:
            Damage: The signature does not match the root hash or the expected key, or is missing.
        """
        if SIGNATURE not in self._entries:
            if signer is not None:
                raise Damage("the bundle is not signed")
            return "not signed"
        try:
            from cryptography.exceptions import InvalidSignature
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
            from cryptography.hazmat.primitives.serialization import load_pem_public_key
        except ImportError as error:
            if signer is not None:
                raise MissingExtra("--signed-by", "sign") from error
            return "signed; not checked, because the extra `sign` is not installed"
        try:
            signed = self.read_json(SIGNATURE)
            public = bytes.fromhex(signed["public_key"])
            Ed25519PublicKey.from_public_bytes(public).verify(bytes.fromhex(signed["signature"]), self.root.encode())
        except (InvalidSignature, ValueError, KeyError, TypeError):
            raise Damage(f"{SIGNATURE}: not a signature of this bundle") from None
        if signer is None:
            return f"signed by the unknown key {public.hex()[:16]}… (verify the signer with --signed-by KEY.pem)"
        try:
            wanted: Any = load_pem_public_key(signer.read_bytes())
            expected = wanted.public_bytes_raw()
        except (OSError, ValueError, AttributeError) as error:
            raise UsageError(f"{signer}: --signed-by needs an Ed25519 public key in PEM ({error})") from None
        if expected != public:
            raise Damage(f"{SIGNATURE}: this bundle was not signed with the key {signer.name}")
        return f"signed by {signer.name}"


def _load(text: bytes) -> Any:
    if len(text) > MAX_VALUES and sum(map(text.count, (b",", b"[", b"{"))) > MAX_VALUES:
        raise orjson.JSONDecodeError("more values than a run has", "", 0)
    return orjson.loads(text)


def _read_line(name: str, number: int, line: bytes) -> Any:
    try:
        return _load(line)
    except orjson.JSONDecodeError:
        raise Damage(f"{name}: line {number} is not JSON") from None


def _refuse(path: Path, why: str) -> DataError:
    return DataError(f"{path}: not a bundle: {why}")


def _check_directory(path: Path) -> None:
    """Reject a file with a large list of entries before reading that list."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():  # opening a pipe would wait
            raise _refuse(path, "it is not a plain file")
        with path.open("rb") as file:
            end = file.seek(0, 2)
            file.seek(max(0, end - 66_000))
            tail = file.read()
            place = tail.rfind(b"PK\5\6")
            if place < 0 or len(tail) < place + 22:
                raise _refuse(path, "it is not a zip file")
            count, size = struct.unpack_from("<H2xL", tail, place + 8)[0], struct.unpack_from("<L", tail, place + 12)[0]
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    if b"PK\6\7" in tail or size > MAX_DIRECTORY_BYTES or count > 2 * len(PARTS):
        raise _refuse(path, "its list of entries is too large for a bundle")


def _check_entries(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Reject entries that no bundle has: paths, links, folders, encrypted or overlapping entries, zip bombs."""
    known, end = {*PARTS, MANIFEST, SIGNATURE}, 0
    for entry in sorted(archive.infolist(), key=lambda each: each.header_offset):
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if any(sign in entry.filename for sign in ("/", "\\", "..", ":", "\0")):
            raise _refuse(path, f"it has an entry outside its folder: {entry.filename[:80]!r}")
        if kind not in (0, stat.S_IFREG) or entry.is_dir():
            raise _refuse(path, f"{entry.filename[:80]!r} is not a plain file")
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refuse(path, f"{entry.filename[:80]!r} is encrypted, or its compression is not supported")
        too_well = entry.file_size > RATIO_FROM_BYTES and entry.file_size > MAX_RATIO * max(1, entry.compress_size)
        if entry.file_size > MAX_PART_BYTES or too_well:
            raise _refuse(path, f"{entry.filename[:80]!r} would unpack to {entry.file_size:,} bytes")
        if entry.header_offset < end or entry.header_offset + entry.compress_size > archive.start_dir:
            raise _refuse(path, f"{entry.filename[:80]!r} overlaps another entry")
        end = entry.header_offset + entry.compress_size
    return {entry.filename: entry for entry in archive.infolist() if entry.filename in known}
