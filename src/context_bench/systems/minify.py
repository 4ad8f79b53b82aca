"""A compressor that loses nothing but layout."""

from __future__ import annotations

import json
import re

from context_bench.types import Example

__all__ = ["Minify"]

_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_INNER_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")


class Minify:
    """Writes JSON without layout, and squeezes white space elsewhere; indentation, which code needs, stays."""

    def __init__(self) -> None:
        self.name = "minify"
        self.fingerprint = "minify/1"

    def process(self, example: Example) -> Example:
        """Return the same content in fewer characters."""
        return {"context": minify(example["context"])}


def minify(text: str) -> str:
    """A JSON document is rewritten compactly, key order and numbers as they are; other text loses spaces."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return _compact(stripped)
        except (ValueError, RecursionError):
            pass
    return _INNER_SPACES.sub(" ", _BLANK_LINES.sub("\n\n", _TRAILING.sub("", stripped)))


def _compact(text: str) -> str:
    # Numbers stay as they are spelled: 1.0 must not become 1, nor a long id lose its last digits.
    value = json.loads(text, parse_float=_Spelled, parse_int=_Spelled, parse_constant=_Spelled)
    return "".join(_encoded(value))


class _Spelled(str):
    """A number by its spelling."""


def _encoded(value: object) -> str:
    if isinstance(value, _Spelled):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_encoded(key)}:{_encoded(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_encoded, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
