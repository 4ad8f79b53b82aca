"""Documents as a person reads them: indented JSON with long texts shortened, wrapped for a terminal."""

from __future__ import annotations

import json
from typing import Any

from context_bench.output.layout import show_controls, wrap

__all__ = ["format_json", "shorten_texts"]


def format_json(value: Any, *, longest: int | None, width: int | None) -> str:
    """Write a document as indented JSON.

    Args:
        value: What JSON can say; anything else is written as its text.
        longest: Characters of a text that are shown; None shows all.
        width: Columns of the terminal, where lines are wrapped below their key; None leaves them whole, so that
            the text stays JSON.
    """
    text = json.dumps(shorten_texts(value, longest), indent=2, ensure_ascii=False, default=str)
    text = show_controls(text)
    if width is None:
        return text
    return "\n".join(wrap(line, width, indent=" " * (len(line) - len(line.lstrip()) + 2)) for line in text.split("\n"))


def shorten_texts(value: Any, longest: int | None) -> Any:
    """Cut every long text of a document in its middle; `longest` None cuts nothing."""
    if isinstance(value, str):
        if longest is None or len(value) <= longest:
            return value
        half = longest // 2
        return f"{value[:half]} [... {len(value) - 2 * half:,} characters ...] {value[-half:]}"
    if isinstance(value, dict):
        return {key: shorten_texts(item, longest) for key, item in value.items()}
    return [shorten_texts(item, longest) for item in value] if isinstance(value, list | tuple) else value
