"""Kinds of change to a user's code, read from `store/code_changes.txt`.

A kind is a line `==== name`, then files, each after a line `---- path`. `«old→new»` in a file is what changes; a file
marked `(new)` is there only afterwards. `(before)` and `(patch)` are run in the module `system`, in place of a change
of files. `[same]` after the name means that the answers cannot differ, `[unknown]` that no key may be made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["DIFFERENT", "KINDS", "SAME", "UNKNOWN", "Kind"]

DIFFERENT, SAME, UNKNOWN = "different", "same", "unknown"

_CHANGE = re.compile("«(.*?)→(.*?)»", re.DOTALL)


@dataclass
class Kind:
    """One kind of change: the files before and after it, and what is run in memory."""

    name: str
    expected: str
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    patch_before: str = ""
    patch: str = ""


def _read(text: str) -> Kind:
    title, *parts = re.split(r"^---- ", text, flags=re.MULTILINE)
    name, _, expected = title.strip().removesuffix("]").partition(" [")
    kind = Kind(name, expected or DIFFERENT)
    for part in parts:
        path, _, body = part.partition("\n")
        if path == "(patch)":
            kind.patch = body
        elif path == "(before)":
            kind.patch_before = body
        else:
            if not path.endswith(" (new)"):
                kind.before[path] = _CHANGE.sub(r"\1", body)
            kind.after[path.removesuffix(" (new)")] = _CHANGE.sub(r"\2", body)
    return kind


_TEXT = (Path(__file__).parent / "store" / "code_changes.txt").read_text(encoding="utf-8")
KINDS = [_read(part) for part in re.split(r"^==== ", _TEXT, flags=re.MULTILINE)[1:]]
