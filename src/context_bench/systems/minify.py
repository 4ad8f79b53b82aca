"""A compressor that loses nothing but layout."""

from __future__ import annotations

import json
import re

from context_bench.types import Example

__all__ = ["Minify"]

_LEADING_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_TRAILING = re.compile(r"(?<![ \t])[ \t]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INNER_SPACES = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")


class Minify:
    """Writes JSON without layout, and squeezes white space elsewhere; indentation, which code needs, stays."""

    reads_gold = False

    def __init__(self) -> None:
        self.name = "minify"
        self.fingerprint = "minify/1"

    def process(self, example: Example) -> Example:
        """Return the same content in fewer characters."""
        return {"context": minify(example["context"])}


def minify(text: str) -> str:
    """JSON, or JSON lines, are rewritten compactly, keys and numbers as they are; other text loses spaces."""
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        lines = [line for line in stripped.split("\n") if line.strip()]
        for documents in ([stripped], lines):
            try:
                return "\n".join(map(_compact, documents))
            except (ValueError, RecursionError):
                continue
    lined = _TRAILING.sub("", _LEADING_LINES.sub("", text.rstrip()))
    return _INNER_SPACES.sub(" ", _BLANK_LINES.sub("\n\n", lined))


def _compact(text: str) -> str:
    # Numbers stay as they are spelled: 1.0 must not become 1, nor a long id lose its last digits.
    return _encode(
        json.loads(text, object_pairs_hook=_Members, parse_float=_Spelled, parse_int=_Spelled, parse_constant=_Spelled)
    )


class _Spelled(str):
    """A number by its spelling."""


class _Members(list[tuple[str, object]]):
    """An object by its members; a key that comes twice stays twice."""


def _encode(value: object) -> str:
    if isinstance(value, _Spelled):
        return str(value)
    if isinstance(value, _Members):
        return "{" + ",".join(f"{_encode(key)}:{_encode(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_encode, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    return text if _SURROGATE.search(text) is None else json.dumps(value)
