"""Small files that a user names: settings, prices, run files."""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 64 * 2**20


def read_small_file(path: Path) -> str:
    """Read a text file whole, unless it may never end.

    Raises:
        OSError: It cannot be read, or it is a device, a pipe or larger than `MAX_BYTES`.
        ValueError: It is not UTF-8.
    """
    if path.exists() and not path.is_file():
        raise OSError(None, "it is not a regular file")
    if path.stat().st_size > MAX_BYTES:
        raise OSError(None, f"it is larger than {MAX_BYTES // 2**20} MB")
    return path.read_text(encoding="utf-8")
