"""Markup as a tree of JSON, from which the page's script builds elements without the browser's parser of HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from context_bench.report.elements import Markup

__all__ = ["to_tree"]

_EMPTY = frozenset({"meta", "input", "br", "col"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: list[Any] = ["", {}, []]
        self._open = [self.top]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = [tag, {_SPELLED.get(name, name): value or "" for name, value in attrs}, []]
        self._open[-1][2].append(node)
        if tag not in _EMPTY:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _EMPTY:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1][2].append(data)


_SPELLED = {"viewbox": "viewBox"}
"""Attributes whose capitals the parser takes away, and pictures need."""


def to_tree(markup: Markup) -> list[Any]:
    """Turn one element, as `element` made it, into `[tag, attributes, children]`; a child is a text or another one."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    tree: list[Any] = reader.top[2][0]
    return tree
