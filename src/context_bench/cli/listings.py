"""`context-bench systems|evaluators|metrics|reporters`: list the components of one kind with their descriptions."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags
from context_bench.cli.output import table_width
from context_bench.errors import ContextBenchError
from context_bench.output.layout import fit_listing
from context_bench.refs import import_all
from context_bench.registry import registry
from context_bench.traits import find_score_fields

MAX_PARAMETER_CHARS = 48  # characters of a parameter list; proxies have many parameters


def listing_parser(command: str) -> Parser:
    parser = Parser(prog=f"context-bench {command}", description=COMMANDS[command])
    add_flags(parser, "imports", "wide")
    return parser


def print_listing(
    lines: Sequence[Sequence[str]],
    options: argparse.Namespace,
    *,
    wrapped: tuple[int, ...] = (-2, -1),
    give_way: tuple[str, ...] = (),
) -> None:
    """Print lines as a table; the first line is the head.

    On a narrow terminal the columns in `wrapped` take several lines; if that is not enough, the columns in
    `give_way` are left out.
    """
    cells = [list(line) for line in lines]
    sys.stdout.write(fit_listing(cells, table_width(wide=options.wide), wrapped=wrapped, give_way=give_way) + "\n")


_LISTED = {
    "systems": ("what it does", ("system", "memory_system")),
    "metrics": ("what it is", ("metric",)),
    "reporters": ("what it writes", ("reporter",)),
}
"""By command: the heading, and the kinds of components to list, with one table for each kind."""


def main(arguments: Sequence[str]) -> int:
    options = listing_parser(arguments[0]).parse_args(arguments[1:])
    import_all(options.imports)
    if arguments[0] == "evaluators":
        lines = [["evaluator", "scores", "what it does"]]
        for name in registry.list("evaluator"):
            fields = find_score_fields(_find_component("evaluator", name)) or ()
            lines.append([name, ", ".join(fields), summarize_component("evaluator", name)])
        print_listing(lines, options)
        return 0
    heading, kinds = _LISTED[arguments[0]]
    for kind in kinds:
        if kind != kinds[0]:
            print()
        print_components(kind, heading, options)
    return 0


def print_components(kind: str, heading: str, options: argparse.Namespace) -> None:
    """Print the components of a kind as a table, each with its parameters and its first sentence."""
    names = registry.list(kind)
    lines = [[name, _list_parameters(kind, name), summarize_component(kind, name)] for name in names]
    print_listing([[kind.replace("_", " "), "parameters", heading], *lines], options)


def _find_component(kind: str, name: str) -> Any:
    """Return a component, or None if it cannot be loaded, so that a broken plugin does not hide the others."""
    try:
        return registry.get(kind, name)
    except ContextBenchError:
        return None


def summarize_component(kind: str, name: str) -> str:
    found = _find_component(kind, name)
    if found is None:
        return "cannot be loaded"
    return (inspect.getdoc(found) or "").partition("\n")[0]


def _list_parameters(kind: str, name: str) -> str:
    found = _find_component(kind, name)
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ""
    required = [each.name for each in parameters if each.default is each.empty]
    optional = [f"{each.name}={each.default}" for each in parameters if each.default is not each.empty]
    text = ", ".join([*required, *optional])
    return text if len(text) <= MAX_PARAMETER_CHARS else text[: MAX_PARAMETER_CHARS - 1] + "…"
