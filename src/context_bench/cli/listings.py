"""`context-bench datasets|systems|evaluators|metrics|reporters`: what there is, from the registry and the catalog."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from context_bench.cli import COMMANDS
from context_bench.cli.output import table_width
from context_bench.cli.parser import Parser, add_import, add_wide
from context_bench.datasets.catalog import catalog
from context_bench.errors import ContextBenchError
from context_bench.refs import import_code
from context_bench.registry import registry
from context_bench.reporters.fitting import fit_listing
from context_bench.traits import find_score_fields

__all__ = ["listing_parser", "main", "print_listing"]


def main(arguments: Sequence[str]) -> int:
    """Print one listing."""
    command = arguments[0]
    options = listing_parser(command).parse_args(arguments[1:])
    print_listing(command, options)
    return 0


def listing_parser(command: str) -> Parser:
    """The flags that every listing has."""
    parser = Parser(prog=f"context-bench {command}", description=COMMANDS[command])
    add_import(parser)
    add_wide(parser)
    return parser


def print_listing(command: str, options: argparse.Namespace) -> None:
    """Load what was asked for, and print what there is."""
    for code in options.imports:
        import_code(code)
    lines = list(_LISTINGS[command]())
    wrapped, give_way = ((-1,), ("licence", "evidence", "family")) if command == "datasets" else ((-2, -1), ())
    sys.stdout.write(fit_listing(lines, table_width(options), wrapped=wrapped, give_way=give_way) + "\n")


def _datasets() -> Iterator[list[str]]:
    yield ["dataset", "family", "score", "evidence", "licence", "what it is"]
    cards = catalog()
    for name in registry.list("dataset"):
        card = cards.get(name)
        if card is None:
            yield [name, "plugin", "by fields", "", "", _summary("dataset", name)]
        else:
            primary = card.primary + (" (stand-in)" if card.stand_in else "")
            yield [name, card.family, primary, "yes" if card.evidence else "", card.licence, card.summary]


def _systems() -> Iterator[list[str]]:
    yield ["system", "parameters", "what it does"]
    for name in registry.list("system"):
        yield [name, _parameters("system", name), _summary("system", name)]


def _evaluators() -> Iterator[list[str]]:
    yield ["evaluator", "scores", "what it does"]
    for name in registry.list("evaluator"):
        fields = find_score_fields(_found("evaluator", name)) or ()
        yield [name, ", ".join(fields), _summary("evaluator", name)]


def _metrics() -> Iterator[list[str]]:
    yield ["metric", "parameters", "what it is"]
    for name in registry.list("metric"):
        yield [name, _parameters("metric", name), _summary("metric", name)]


def _reporters() -> Iterator[list[str]]:
    yield ["reporter", "parameters", "what it writes"]
    for name in registry.list("reporter"):
        yield [name, _parameters("reporter", name), _summary("reporter", name)]


_LISTINGS = {
    "datasets": _datasets,
    "systems": _systems,
    "evaluators": _evaluators,
    "metrics": _metrics,
    "reporters": _reporters,
}


_LONGEST = 48
"""Characters of a parameter list: the proxies have many."""


def _found(kind: str, name: str) -> Any:
    try:
        return registry.get(kind, name)
    except ContextBenchError:  # a broken plugin must not hide the others
        return None


def _summary(kind: str, name: str) -> str:
    found = _found(kind, name)
    if found is None:
        return "cannot be loaded"
    return (inspect.getdoc(found) or "").partition("\n")[0]


def _parameters(kind: str, name: str) -> str:
    found = _found(kind, name)
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return ""
    required = [each.name for each in parameters if each.default is each.empty]
    optional = [f"{each.name}={each.default}" for each in parameters if each.default is not each.empty]
    text = ", ".join([*required, *optional])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
