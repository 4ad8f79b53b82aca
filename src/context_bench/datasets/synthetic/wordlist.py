"""Word lists, written as running text, which reads better than a column of quoted strings."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """Split `text` at white space."""
    return tuple(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """Split `text` at semicolons; line breaks inside a phrase count as one space."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))
