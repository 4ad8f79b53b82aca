"""HTML elements with escaped texts; all markup of the report is made here.

Data is plain `str` and becomes text; only elements and filled templates are markup. Control characters, changes of
writing direction and lone surrogates become visible signs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import repeat

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
_EMPTY = frozenset({"meta", "input", "br", "col"})


class Markup(str):
    """Text that is HTML already, made by `element` or `join`."""

    __slots__ = ()


Child = Markup | str | None


def clean_text(text: object) -> str:
    """Replace control characters in a text by visible signs; line ends and tabs stay."""
    return _ACTING.sub(_show, str(text).replace("\r\n", "\n"))


def _show(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def element(tag: str, attributes: Mapping[str, object] | None = None, *children: Child) -> Markup:
    """Make an element; children are texts unless they are markup. None omits an attribute, True gives it no value."""
    parts = [f"<{tag}"]
    for name, value in (attributes or {}).items():
        if value is True:
            parts.append(f" {name}")
        elif value is not None and value is not False:
            parts.append(f' {name}="{escape(clean_text(value))}"')
    parts.append(">")
    if tag in _EMPTY:
        return Markup("".join(parts))
    return Markup("".join(parts) + join(*children) + f"</{tag}>")


def join(*children: Child) -> Markup:
    """Join markup and texts; the texts are escaped."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else escape(clean_text(child)) for child in children if child is not None
        )
    )


@cache
def read_asset(name: str) -> str:
    """Read a file of the page."""
    return files("context_bench.output.page").joinpath(f"assets/{name}").read_text(encoding="utf-8").strip()


def fill_template(name: str, **children: Child) -> Markup:
    """Fill the placeholders of a template, such as `{found}`; values are text unless they are markup."""
    return Markup(re.sub(r"\{(\w+)\}", lambda place: join(children[place[1]]), read_asset(name)))


def table(
    head: Sequence[Child], lines: Sequence[Sequence[Child]], caption: str | None = None, kind: str | None = None
) -> Markup:
    """Lay out a table: the first column names the line, the others are right-aligned."""
    heads = [element("th", {"scope": "col"}, each) for each in head]
    named = head[1:] if kind is not None and kind.startswith("headline") else repeat(None)
    body = [
        element("tr", None, element("th", {"scope": "row"}, cells[0]), *map(_cell, cells[1:], named)) for cells in lines
    ]
    whole = element(
        "table",
        {"class": kind},
        element("caption", None, caption) if caption else None,
        element("thead", None, element("tr", None, *heads)),
        element("tbody", None, *body),
    )
    return element(
        "div", {"class": "scroll", "tabindex": 0, "role": "group", "aria-label": f"Table: {caption or head[0]}"}, whole
    )


def _cell(child: Child, head: Child) -> Markup:
    """Make a cell; `data-head` names its column for narrow screens, where tables have no head."""
    empty = child in (None, "")
    return element("td", {"class": "none" if empty else None, "data-head": head}, "–" if empty else child)


def section(name: str, title: str, *children: Child, of: str = "") -> Markup:
    """Make a part of the page with its heading; `of` distinguishes parts with the same heading."""
    more = element("span", {"class": "sr"}, f" of {of}") if of else None
    return element(
        "section",
        {"id": name, "aria-labelledby": f"{name}-title"},
        element("h2", {"id": f"{name}-title"}, title, more),
        *children,
    )
