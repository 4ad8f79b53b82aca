"""The SHA-256 of a model file: read once, and again only when its size or time of change is another."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

__all__ = ["digest_of"]

_BLOCK = 1 << 20
_NOTES = "digests.json"


def digest_of(path: Path, folder: Path) -> str:
    """The digest of a file, in hexadecimal.

    Args:
        path: The file.
        folder: Where the digests of large files are remembered; one that cannot be written is no obstacle.
    """
    path = path.resolve()
    facts = path.stat()
    notes = _read(folder / _NOTES)
    known = notes.get(str(path))
    if isinstance(known, list) and known[:2] == [facts.st_size, facts.st_mtime_ns] and len(known) == 3:
        return str(known[2])
    digest = _sha256(path)
    kept = {each: known for each, known in notes.items() if os.path.exists(each)}
    _write(folder / _NOTES, {**kept, str(path): [facts.st_size, facts.st_mtime_ns, digest]})
    return digest


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _read(notes: Path) -> dict[str, Any]:
    try:
        document = json.loads(notes.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _write(notes: Path, content: dict[str, Any]) -> None:
    unfinished = notes.with_name(f"{notes.name}.{os.getpid()}")
    try:
        notes.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(content, indent=1), encoding="utf-8")
        os.replace(unfinished, notes)
    except OSError:
        return  # it is read again next time
