"""A context in the making, which knows where each of its pieces stands, so that evidence can point into it."""

from __future__ import annotations

from typing import Any

__all__ = ["Page", "Place", "Span", "make_span"]

Place = tuple[int, int]
Span = dict[str, Any]


class Page:
    """Pieces of text in a row."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0

    def add(self, text: str) -> Place:
        """Append a text as it is, and return where it stands."""
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start, self._length

    def add_paragraph(self, text: str, gap: str = "\n\n") -> Place:
        """Append a text after a blank line, or another gap."""
        if self._length:
            self.add(gap)
        return self.add(text)

    def __str__(self) -> str:
        return "".join(self._parts)


def make_span(context: str, start: int, end: int) -> Span:
    """Make a span of the context, without the white space at its ends."""
    inner = context[start:end]
    start += len(inner) - len(inner.lstrip())
    return {"start": start, "end": start + len(inner.strip()), "text": inner.strip()}
