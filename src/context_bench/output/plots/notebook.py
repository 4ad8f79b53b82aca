"""A result as a notebook shows it: the headline table, and the Pareto plot where pictures can be rendered."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from context_bench.errors import MissingExtra, UsageError, printable
from context_bench.output.plots.pareto import draw_pareto

if TYPE_CHECKING:
    from context_bench.results import EvalResult

__all__ = ["render_notebook"]

_CELL = "padding: 2px 10px; text-align: {}; white-space: nowrap"


def render_notebook(result: EvalResult, lines: Sequence[Sequence[str]]) -> str:
    """Make HTML of a table (titles first) and the Pareto plot; whatever comes from data is text.

    The picture is an `<img>` with its data in it: nothing in it can run, and nothing is loaded.
    """
    head, *body = [_write_line(line, "th" if number == 0 else "td") for number, line in enumerate(lines)]
    table = f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"
    try:
        plot = draw_pareto(result)
        picture = base64.b64encode(plot.to_svg().encode()).decode("ascii")
    except (MissingExtra, UsageError) as error:
        return f"{table}<p>{escape(printable(str(error)))}</p>"
    image = f'<img alt="{escape(plot.title)}" src="data:image/svg+xml;base64,{picture}">'
    return table + image


def _write_line(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(_write_cell(cell, tag, place) for place, cell in enumerate(cells)) + "</tr>"


def _write_cell(text: str, tag: str, place: int) -> str:
    style = _CELL.format("right" if place else "left")
    return f'<{tag} style="{style}">{escape(printable(text))}</{tag}>'
