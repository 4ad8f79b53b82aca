"""HTML elements whose every text is escaped: the only way in which the report makes markup.

Whatever comes from data is a plain `str` and becomes text; only what `element` returned is markup. Characters that act
on their surroundings instead of being shown (controls, changes of writing direction, lone surrogates) become signs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

__all__ = ["Child", "Markup", "clean_text", "element", "join"]

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
_EMPTY = frozenset({"meta", "input", "br", "path", "circle", "rect", "line", "use", "col"})


class Markup(str):
    """Text that is HTML already, made by `element` or `join`."""

    __slots__ = ()


Child = Markup | str | None


def clean_text(text: object) -> str:
    """Return a text with signs in place of the characters that act on their surroundings; lines and tabs stay."""
    return _ACTING.sub(_show, str(text).replace("\r\n", "\n"))


def _show(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def element(tag: str, attributes: Mapping[str, object] | None = None, *children: Child) -> Markup:
    """Make an element; children are texts unless they are markup. An attribute of None is left out, True is bare."""
    parts = [f"<{tag}"]
    for name, value in (attributes or {}).items():
        if value is True:
            parts.append(f" {name}")
        elif value is not None and value is not False:
            parts.append(f' {name}="{escape(clean_text(value))}"')
    parts.append(">")
    if tag in _EMPTY:
        return Markup("".join(parts) if tag in ("meta", "input", "br", "col") else "".join(parts) + f"</{tag}>")
    return Markup("".join(parts) + join(*children) + f"</{tag}>")


def join(*children: Child) -> Markup:
    """Join markup and texts; the texts are escaped."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else escape(clean_text(child)) for child in children if child is not None
        )
    )
