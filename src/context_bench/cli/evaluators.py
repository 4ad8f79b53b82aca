"""`context-bench evaluators`: the evaluators, with the scores that each gives."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.cli.listings import find_component, listing_parser, print_listing, summarize_component
from context_bench.refs import import_code
from context_bench.registry import registry
from context_bench.traits import find_score_fields

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """List the evaluators with their scores."""
    options = listing_parser(arguments[0]).parse_args(arguments[1:])
    for code in options.imports:
        import_code(code)
    lines = [["evaluator", "scores", "what it does"]]
    for name in registry.list("evaluator"):
        fields = find_score_fields(find_component("evaluator", name)) or ()
        lines.append([name, ", ".join(fields), summarize_component("evaluator", name)])
    print_listing(lines, options)
    return 0
