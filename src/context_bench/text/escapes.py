"""Escapes of HTML and JSON, undone: what a text says, however often it was packed into another one."""

from __future__ import annotations

import html
import re

__all__ = ["undo_escapes", "undo_html", "undo_json"]

_LAYERS = 2
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});", re.IGNORECASE)
# What JSON escapes, and what Markdown does: a backslash before any other sign.
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|([!-/:-@\[-`{-~]))")
_LAYOUT = {"b": " ", "f": "\n", "n": "\n", "r": "\n", "t": "\t"}


def undo_escapes(text: str) -> list[str]:
    """Return a text without HTML's escapes, then with one layer of JSON's escapes after the other undone.

    A text may hold both kinds, and what looks like an escape may not be one (`C:\\new`): any of the results may be the
    right one.
    """
    texts = [undo_html(text)]
    while len(texts) <= _LAYERS and "\\" in texts[-1]:
        plain = undo_html(undo_json(texts[-1]))
        if plain == texts[-1]:
            break
        texts.append(plain)
    return texts


def undo_html(text: str) -> str:
    """Return a text without HTML's escapes, also where they were escaped once more."""
    for _ in range(_LAYERS):
        if "&" not in text:
            break
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return text


def undo_json(text: str) -> str:
    """Undo one layer of JSON's escapes; half of a surrogate pair becomes a replacement character."""
    plain = _ESCAPE.sub(_undo, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else plain


def _undo(found: re.Match[str]) -> str:
    code, layout, sign = found.groups()
    return chr(int(code, 16)) if code else _LAYOUT[layout] if layout else sign
