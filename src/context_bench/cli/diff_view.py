"""Renders a comparison for a terminal or a file: marks or colours, long stretches folded, no control characters."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TextIO

from context_bench.traffic.text_diff import Segment
from context_bench.utils.tokens import Tokenizer

_COLORS = {
    "dropped": "31;9",
    "added": "32",
    "moved": "36",
    "left": "2;36",
    "evidence": "1;4",
    "aside": "2",
    "title": "1",
}
_MARKS = {
    "dropped": ("[-", "-]"),
    "added": ("{+", "+}"),
    "moved": ("{~", "~}"),
    "left": ("[~", "~]"),
    "evidence": ("⟦", "⟧"),
}

_MAX_UNFOLDED_CHARS = 400  # shorter texts are not folded

_EDGE = re.compile(r"(?:[^\n]{0,120}\n?){1,2}")
"""How much stays visible at each end of a folded stretch: two lines, or as many characters as fill two lines."""


def wants_color(choice: str, stream: TextIO) -> bool:
    """Whether to use colours: always, never, or on a terminal without NO_COLOR."""
    if choice != "auto":
        return choice == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def visible(text: str) -> str:
    """Replace control characters by visible signs, except line ends and tabs."""
    return "".join(char if char.isprintable() or char in "\n\t" else _replace_control(char) for char in text)


def _replace_control(char: str) -> str:
    if char.isspace() and ord(char) > 0x7F:
        return " "
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else "�"


class View:
    """Turns segments into text, with colours or marks; `full` folds nothing."""

    def __init__(self, count: Tokenizer, *, color: bool = False, full: bool = False) -> None:
        self._count, self._color, self._full = count, color, full

    def title(self, text: str) -> str:
        return self._style([(f"── {text} ──", False)], "title")

    def segments(self, segments: Iterable[Segment]) -> str:
        """Render a part, with a newline at its end."""
        text = ""
        for kind, group in groupby(segments, key=lambda segment: segment.kind):
            run = list(group)
            if kind == "kept":
                text += "".join(map(self._render_kept, run))
            else:
                gone, here = ("left", "moved") if kind == "moved" else ("dropped", "added")
                text += self._style([self._shorten(each) for each in run if each.text], gone)
                text += self._style([(each.new, each.evidence) for each in run if each.new], here)
        return text if text.endswith("\n") or not text else text + "\n"

    def _shorten(self, segment: Segment) -> tuple[str, bool]:
        """Shorten a long dropped text without evidence to its two ends."""
        if segment.evidence or self._full or len(segment.text) <= 2 * _MAX_UNFOLDED_CHARS:
            return segment.text, segment.evidence
        head, tail = _find_edge(segment.text), _find_edge(segment.text[::-1])[::-1]
        hidden = self._count(segment.text[len(head) : len(segment.text) - len(tail)])
        return f"{head.rstrip(chr(10))}\n… {hidden:,} more tokens …\n{tail.lstrip(chr(10))}", False

    def _render_kept(self, segment: Segment) -> str:
        if segment.evidence or self._full:
            return self._style([(segment.text, segment.evidence)])
        return self._fold(segment.text)

    def _fold(self, text: str) -> str:
        """Fold an unchanged text to its two ends, and count the tokens between."""
        if len(text) <= _MAX_UNFOLDED_CHARS:
            return visible(text)
        head, tail = _find_edge(text), _find_edge(text[::-1])[::-1]
        hidden = self._count(text[len(head) : len(text) - len(tail)])
        if not hidden:
            return visible(text)
        note = self._style([(f"… {hidden:,} tokens unchanged …", False)], "aside")
        return f"{visible(head).rstrip(chr(10))}\n{note}\n{visible(tail).lstrip(chr(10))}"

    def _style(self, pieces: Sequence[tuple[str, bool]], style: str = "") -> str:
        """Give texts a common style; those that are evidence also get the style of evidence."""
        if self._color:
            codes = (_join_codes(style, "evidence" if evidence else "") for _, evidence in pieces)
            return "".join(_add_color(visible(text), each) for (text, _), each in zip(pieces, codes))
        inner = "".join(_add_marks(visible(text), "evidence" if evidence else "") for text, evidence in pieces)
        return _add_marks(inner, style) if inner else ""


def _join_codes(*styles: str) -> str:
    return ";".join(_COLORS[style] for style in styles if style)


def _add_marks(text: str, style: str) -> str:
    before, after = _MARKS.get(style, ("", ""))
    return f"{before}{text}{after}"


def _find_edge(text: str) -> str:
    """Return the start or end of a text, cut between words."""
    found = _EDGE.match(text)
    edge = found[0] if found else ""
    return edge if edge.endswith("\n") or " " not in edge else edge[: edge.rindex(" ")]


def _add_color(text: str, codes: str) -> str:
    """Colour each line on its own: a pager forgets colours at the end of a line."""
    if not codes:
        return text
    lines = text.split("\n")
    return "\n".join(f"\x1b[{codes}m{line}\x1b[0m" if line else "" for line in lines)
