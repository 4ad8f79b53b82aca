"""Colour for tables on a terminal. Nothing is said by colour alone: stars, brackets and words say it too."""

from __future__ import annotations

import re

__all__ = ["color_table"]

_BOLD, _DIM, _CYAN, _YELLOW, _END = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[33m", "\x1b[0m"
_WORDS = {"better": _CYAN, "equivalent": _CYAN, "not worse": _CYAN, "worse": _YELLOW, "undecided": _DIM}
_PARTS = re.compile(
    r"(?P<best>★[^ |]+)"
    r"|(?P<limits>\[[^]|]*\]|± [^ |]+|\(too few\))"
    r"|(?<![\w-])(?P<word>better|equivalent|not worse|worse|undecided)(?= *(?:\(|\||;))"
)


def color_table(text: str) -> str:
    """Colour the lines of Markdown tables: titles and best values bold, intervals dim, verdicts by their word.

    Names, which stand in the first column, stay as they are.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("| "):
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith(("| ---", "| :-")):
            lines[number] = f"{_DIM}{line}{_END}"
        elif below.startswith("| ---"):
            lines[number] = f"{_BOLD}{line}{_END}"
        else:
            end = _find_first_cell_end(line)
            lines[number] = line[:end] + _PARTS.sub(_paint, line[end:])
    return "\n".join(lines)


def _find_first_cell_end(line: str) -> int:
    found = re.search(r"(?<!\\) \|", line[2:])
    return found.end() + 2 if found else len(line)


def _paint(found: re.Match[str]) -> str:
    colour = _BOLD if found["best"] else _DIM if found["limits"] else _WORDS[found["word"]]
    return f"{colour}{found[0]}{_END}"
