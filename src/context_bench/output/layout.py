"""Lay out text for a terminal: escaped names, tables whose columns line up, and tables that fit a width.

Names come from users and servers. No name may end its cell, open a link, load an image, become HTML, or control the
terminal. Only active characters are escaped: `headroom[level=low]` and `my_system` stay unchanged.

Without a width nothing is cut. With a width, a table of systems leaves out its least important columns and names
them; a grid (systems by datasets) loses nothing: it is transposed, or split; texts are wrapped in their column.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence

from context_bench.errors import printable

_ACTS = re.compile(
    r"""\\(?=[!-/:-@\[-`{-~])     # a backslash that would escape the next character
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
    """Replace every invisible character by a sign, so none ends a line or controls the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text)


def escape_cell(text: str) -> str:
    """Escape a text as a cell of a Markdown table, shown unchanged."""
    text = replace_controls(text)
    escaped = _CELL.sub(_escape, text)
    return escaped.replace("*", "\\*") if text.count("*") > 1 else escaped


def escape_note(text: str) -> str:
    """Escape a line of text in Markdown: no HTML, no link, no start of another block; our own marks stay."""
    escaped = _ACTS.sub(_escape, printable(text))
    return f"\\{escaped}" if _BEGINS_BLOCK.match(escaped) else escaped


def _escape(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def undo_escapes(text: str) -> str:
    """Undo the escapes of the functions above, except those of a table's bars."""
    return _ESCAPED.sub(r"\1", text)


def show_controls(text: str) -> str:
    """Write the characters that act on a terminal as in JSON (`\\u001b`); line ends and tabs stay."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def format_as(form: str) -> Callable[[float], str]:
    """Return a function that writes a number in a format of `format()`, or four digits if it is invalid."""

    def write(value: float) -> str:
        try:
            return format(value, form or ".4g")
        except ValueError:  # from a run record of unknown origin
            return f"{value:.4g}"

    return write


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table whose columns line up; the first column is text, the others are numbers."""
    cells = [[escape_cell(cell) for cell in line] for line in lines]
    widths = [max(display_width(line[column]) for line in cells) for column in range(len(cells[0]))]
    rule = ["-" * max(3, widths[0]), *("-" * (max(3, width) - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(line, widths) for line in [cells[0], rule, *cells[1:]])


def markdown_width(lines: Sequence[Sequence[str]]) -> int:
    """Compute the width of the table that `markdown` makes."""
    return 1 + sum(3 + max(3, *(display_width(escape_cell(cell)) for cell in column)) for column in zip(*lines))


def plain_table(lines: Sequence[Sequence[str]]) -> str:
    """Lay out columns of text side by side, for listings."""
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
    """Count the columns on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


Lines = Sequence[Sequence[str]]

_MIN_NAME_WIDTH = 6  # least columns of a name on a narrow terminal
_MIN_TEXT_WIDTH = 30  # least columns of a text while another column can give way
_TITLE_WIDTHS = (20, 16, 12)  # widths to try for the titles of a grid, in order
_GAP = 2


def fits(text: str, width: int) -> bool:
    """Whether no line of the text is longer than the width."""
    return all(display_width(line) <= width for line in text.splitlines())


def fit_columns(
    lines: Lines,
    width: int | None,
    give_way: Sequence[str] = (),
    needs: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
) -> str:
    """Make a Markdown table that leaves out columns until it fits, and names them.

    Args:
        lines: The first one holds the titles; the first column holds names.
        width: Columns of the terminal; None leaves the table whole.
        give_way: Titles of the columns that may be left out, the least important first.
        needs: By title, the title of another column, without which this one is left out.
        left_out: Titles of columns that were left out before, to be named too.
    """
    if width is None or markdown_width(lines) <= width:
        return "\n".join([markdown(lines), *(_name_left_out(left_out, width) if width is not None else ())])
    lines = _shorten_names(lines, max(24, width // 3))
    others = [place for place, title in enumerate(lines[0]) if place and title not in give_way]
    kept = {0, *others}
    for title in reversed(give_way):  # the most important first; a narrow column may fit where a wide one did not
        place, needed = lines[0].index(title, 1), (needs or {}).get(title)
        if needed in lines[0] and lines[0].index(needed) not in kept:
            continue
        if len(kept) == 1 or markdown_width(_choose(lines, {*kept, place})) <= width:
            kept.add(place)
    left_out = [*left_out, *(title for title in give_way if lines[0].index(title, 1) not in kept)]
    return "\n".join([markdown(_narrow_names(_choose(lines, kept), width)), *_name_left_out(left_out, width)])


def _choose(lines: Lines, places: set[int]) -> Lines:
    """Select these columns of each line."""
    return [[line[place] for place in sorted(places)] for line in lines]


def _name_left_out(titles: Sequence[str], width: int) -> list[str]:
    """Name the left-out columns, the most important first."""
    return [wrap(f"left out: {', '.join(reversed(titles))} (--wide shows all)", width)] if titles else []


def fit_grid(lines: Lines, width: int | None) -> str:
    """Make a Markdown table with every number in it, transposed or split if needed to fit."""
    if width is None or markdown_width(lines) <= width:
        return markdown(lines)
    turned = [list(column) for column in zip(*lines)]
    bare = [[[each[0][0], *_drop_parameters(each[0][1:])], *each[1:]] for each in (lines, turned)]
    shortened = [
        [[each[0][0], *_shorten_all(each[0][1:], limit)], *_shorten_names(each[1:], max(24, width // 3))]
        for limit in _TITLE_WIDTHS
        for each in bare
    ]
    for choice in (turned, *bare, *shortened):
        if markdown_width(choice) <= width:
            return markdown(choice)
    split = [_split(choice, width) for choice in shortened]
    return "\n\n".join(markdown(part) for part in min(split, key=lambda parts: sum(map(len, parts))))


def _split(lines: Lines, width: int) -> list[Lines]:
    """Split into tables with the same names, each with as many columns as fit."""
    parts: list[Lines] = []
    start = 1
    while start < len(lines[0]):
        end = start + 1
        while end < len(lines[0]) and markdown_width(_columns(lines, start, end + 1)) <= width:
            end += 1
        parts.append(_narrow_names(_columns(lines, start, end), width))
        start = end
    return parts


def _columns(lines: Lines, start: int, end: int) -> list[list[str]]:
    return [[line[0], *line[start:end]] for line in lines]


def _narrow_names(lines: Lines, width: int) -> Lines:
    """Shorten the names as far as needed, after the other columns were left out."""
    for limit in range(max(display_width(line[0]) for line in lines), _MIN_NAME_WIDTH - 1, -1):
        if markdown_width(lines) <= width:
            break
        lines = _shorten_names(lines, limit)
    return lines


def _shorten_names(lines: Lines, limit: int) -> Lines:
    names = _shorten_all([line[0] for line in lines], limit)
    return [[name, *line[1:]] for name, line in zip(names, lines)]


def _drop_parameters(names: Sequence[str]) -> list[str]:
    """Shorten `needle:length=4000,n=40` to `needle:…`, if the names stay distinct."""
    bare = [f"{name.partition(':')[0]}:…" if ":" in name else name for name in names]
    return bare if len(set(bare)) == len(set(names)) else list(names)


def _shorten_all(names: Sequence[str], limit: int) -> list[str]:
    """Shorten names, and number those that would be equal."""
    short = [shorten(name, limit) for name in names]
    for place, name in enumerate(short):
        alike = [before for before in range(place) if short[before] == name and names[before] != names[place]]
        if alike:
            mark = f"~{len(alike) + 1}"
            short[place] = shorten(names[place], max(1, limit - len(mark))) + mark
    return short


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text to fit a number of columns."""
    if display_width(text) <= width:
        return text
    head, tail = "", ""
    room = width - 1
    for place in range(len(text)):
        begin, end = text[place], text[-1 - place]
        if display_width(head + begin + tail) > room:
            break
        head += begin
        if display_width(head + end + tail) > room:
            break
        tail = end + tail
    return f"{head}…{tail}"


def wrap(text: str, width: int | None, indent: str = "  ") -> str:
    """Wrap a text into lines of at most this width; continuation lines are indented."""
    if width is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _wrap_line(line, width, indent))


def _wrap_line(line: str, width: int, indent: str = "") -> list[str]:
    """Wrap one line into pieces; cut a word that is longer than a line."""
    pieces: list[str] = []
    indent = indent[: width // 2]
    first, *words = line.lstrip(" ").split(" ")
    current = _cut_off(" " * (len(line) - len(line.lstrip(" "))) + first, width, indent, pieces)
    for word in words:
        if display_width(f"{current} {word}") <= width:
            current = f"{current} {word}"
        else:
            pieces.append(current.rstrip())
            current = _cut_off(indent + word, width, indent, pieces)
    return [*pieces, current.rstrip()]


def _cut_off(text: str, width: int, indent: str, pieces: list[str]) -> str:
    """Move whole lines of a text that is too long to `pieces`; return the rest."""
    while display_width(text) > width:
        end = _fill(text, width)
        pieces.append(text[:end])
        text = indent + text[end:]
    return text


def _fill(text: str, width: int) -> int:
    """Count the characters that fill this many columns."""
    end = 0
    while end < len(text) and display_width(text[: end + 1]) <= width:
        end += 1
    return max(end, 1)


def fit_listing(
    lines: Lines, width: int | None, *, wrapped: Sequence[int] = (-1,), give_way: Sequence[str] = (), head: bool = True
) -> str:
    """Lay out columns of text; wrap long texts in their column, and leave out other columns if needed.

    Args:
        lines: The first one holds the titles, if there is a `head`.
        width: Columns of the terminal; None leaves the listing whole.
        wrapped: The columns that may be wrapped.
        give_way: Titles of columns in the order in which they are left out.
    """
    whole = plain_table(lines)
    if width is None or not lines or fits(whole, width):
        return whole
    texts = {place % len(lines[0]) for place in wrapped}
    kept = list(range(len(lines[0])))
    left_out: list[str] = []
    for title in give_way if head else ():
        if _room(lines, kept, texts, width) >= sum(min(_widest(lines, place), _MIN_TEXT_WIDTH) for place in texts):
            break
        if title in lines[0]:
            kept.remove(lines[0].index(title))
            left_out.append(title)
    text = plain_table(_wrap_cells(lines, kept, texts, width))
    return "\n".join([text, *_name_left_out(left_out, width)])


def _widest(lines: Lines, place: int) -> int:
    return max(display_width(line[place]) for line in lines)


def _room(lines: Lines, kept: Sequence[int], texts: set[int], width: int) -> int:
    """Compute the columns left for the texts."""
    longest = _longest_name(kept, texts, width)
    names = sum(min(_widest(lines, place), longest) for place in kept if place not in texts)
    return width - names - _GAP * (len(kept) - 1)


def _longest_name(kept: Sequence[int], texts: set[int], width: int) -> int:
    alone = len([place for place in kept if place not in texts]) == 1
    return max(_MIN_NAME_WIDTH, width // 2 if alone else width // 3)


def _wrap_cells(lines: Lines, kept: Sequence[int], texts: set[int], width: int) -> list[list[str]]:
    """Shorten the names of the lines and wrap their texts onto further lines."""
    wanted = {place: _widest(lines, place) for place in kept if place in texts}
    widths = _share(_room(lines, kept, texts, width), wanted)
    longest = _longest_name(kept, texts, width)
    out: list[list[str]] = []
    for line in lines:
        cells = [
            _wrap_line(line[place], widths[place]) if place in texts else [shorten(line[place], longest)]
            for place in kept
        ]
        height = max(map(len, cells))
        out += [[cell[row] if row < len(cell) else "" for cell in cells] for row in range(height)]
    return out


def _share(room: int, wanted: dict[int, int]) -> dict[int, int]:
    """Divide columns between texts: short texts get their width, the others equal parts of the rest."""
    shares: dict[int, int] = {}
    left = dict(wanted)
    while left:
        equal = max(1, (room - sum(shares.values())) // len(left))
        place = min(left, key=lambda each: left[each])
        shares[place] = min(left.pop(place), equal)
    return shares
