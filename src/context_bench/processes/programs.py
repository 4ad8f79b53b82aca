"""Where programs are found: on the path, or where `make vendors` puts those of vendors."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["find_program"]


def find_program(name: str, *, home: str | None = None) -> str | None:
    """Find a program on the path, or where `make vendors` puts that of a vendor, which is looked for there first.

    Args:
        name: Of the program.
        home: The vendor's directory, where it is not named as the program is; the path is not searched then.
    """
    places = [str((place / (home or name) / part).absolute()) for place in _list_homes() for part in ("bin", "Scripts")]
    found = shutil.which(name, path=os.pathsep.join(places))
    return found if found or home else shutil.which(name)


def _list_homes() -> list[Path]:
    """List where vendors may be: the user's own place, here, and in the checkout around this or our own directory.

    No other directory above this one is searched: whoever can write there could have their program started.
    """
    given = os.environ.get("CONTEXT_BENCH_VENDORS")
    around = [*Path.cwd().parents, *Path(__file__).parents]
    checkouts = [
        place for place in around if (place / "tools" / "vendors").is_dir() and (place / "pyproject.toml").is_file()
    ]
    return [*([Path(given)] if given else []), *(place / ".vendors" for place in (Path(), *checkouts))]
