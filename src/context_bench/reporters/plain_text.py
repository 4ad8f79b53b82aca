"""Text that stays text: in Markdown, where names come from users and servers, and on a terminal.

A name may not end its cell, open a link, load an image, become HTML, or speak to the terminal. Only what would act is
escaped, so that the names that people give (`headroom[level=low]`, `my_system`) stay as they are.
"""

from __future__ import annotations

import re

from context_bench.errors import printable

__all__ = ["escape_cell", "escape_note", "replace_controls", "show_controls", "undo_escapes"]

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
