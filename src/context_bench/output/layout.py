"""Lay out text: numbers by their kind, escaped names, and tables whose columns line up in a terminal.

Names come from users and servers. None may end its cell, open a link, load an image, become HTML, or speak to the
terminal. Only characters that would act are escaped: `headroom[level=low]` and `my_system` stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from context_bench.errors import printable

__all__ = [
    "display_width",
    "escape_cell",
    "escape_note",
    "format_as",
    "markdown",
    "markdown_width",
    "plain_table",
    "replace_controls",
    "show_controls",
    "undo_escapes",
]


_ACTS = re.compile(
    r"""\\(?=[!-/:-@\[-`{-~])     # a backslash that would escape what follows it
    | <(?=[a-zA-Z/!?])            # the start of a tag
    | (?<=\])[(\[]                # the second half of a link or an image
    | &(?=\#?[a-zA-Z0-9]{1,32};)  # an entity""",
    re.VERBOSE,
)
_CELL = re.compile(
    rf"""{_ACTS.pattern}
    | [|`]
    | (?<![a-zA-Z0-9])_ | _(?![a-zA-Z0-9])
    | ~(?=~) | (?<=~)~""",
    re.VERBOSE,
)
_BEGINS_BLOCK = re.compile(r"(?=`{3}|~{3}|\#|>|\+ |- |\d+[.)] |\[[^\]]*\]:)")
_ESCAPED = re.compile(r"\\([<(\[&`_~*\\#>+-])")
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)


def replace_controls(text: str) -> str:
    """Put a sign in place of every character that is not shown: none may end a line, or speak to the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)


def escape_cell(text: str) -> str:
    """Write a text as a cell of a Markdown table: it does not end its column, and is shown as it is."""
    text = replace_controls(text)
    escaped = _CELL.sub(_escape, text)
    return escaped.replace("*", "\\*") if text.count("*") > 1 else escaped


def escape_note(text: str) -> str:
    """Write a line of text in Markdown: no HTML, no link, no start of another block; our own marks stay."""
    escaped = _ACTS.sub(_escape, printable(text))
    return f"\\{escaped}" if _BEGINS_BLOCK.match(escaped) else escaped


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def undo_escapes(text: str) -> str:
    """Undo what the functions above put before a character, but for the bars of a table."""
    return _ESCAPED.sub(r"\1", text)


def show_controls(text: str) -> str:
    """Write the characters that act on a terminal as in JSON (`\\u001b`); line ends and tabs stay."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def format_as(form: str) -> Callable[[float], str]:
    """Return what writes a number in a format of `format()`; an empty or unknown one shows four digits."""

    def write(value: float) -> str:
        try:
            return format(value, form or ".4g")
        except ValueError:  # from the record of a run that somebody else made
            return f"{value:.4g}"

    return write


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table whose columns line up; the first column is text, the others are numbers."""
    cells = [[escape_cell(cell) for cell in line] for line in lines]
    widths = [max(display_width(line[column]) for line in cells) for column in range(len(cells[0]))]
    rule = ["-" * max(3, widths[0]), *("-" * (max(3, width) - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(line, widths) for line in [cells[0], rule, *cells[1:]])


def markdown_width(lines: Sequence[Sequence[str]]) -> int:
    """Columns that `markdown` takes for them."""
    return 1 + sum(3 + max(3, *(display_width(escape_cell(cell)) for cell in column)) for column in zip(*lines))


def plain_table(lines: Sequence[Sequence[str]]) -> str:
    """Columns of text side by side, for listings."""
    cells = [[replace_controls(cell) for cell in line] for line in lines]
    widths = [max(display_width(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell + " " * (width - display_width(cell)) for cell, width in zip(line, widths)).rstrip()
        for line in cells
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for place, (cell, width) in enumerate(zip(cells, widths)):
        space = " " * (max(3, width) - display_width(cell))
        padded.append(cell + space if place == 0 else space + cell)
    return "| " + " | ".join(padded) + " |"


def display_width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
