"""`context-bench prices [NAME]`: list token prices by model. No network call is made."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from difflib import get_close_matches

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags
from context_bench.cli.output import table_width
from context_bench.errors import UsageError
from context_bench.output.layout import fit_listing
from context_bench.pricing import Price, Prices, load_shipped_prices

_HEAD = ["model", "input", "cached", "write 5m", "write 1h", "output"]


def main(arguments: Sequence[str]) -> int:
    options = prices_parser().parse_args(arguments[1:])
    prices = Prices.from_file(options.prices) if options.prices else load_shipped_prices()
    chosen, how = choose_prices(prices, options.name)
    if options.output == "json":
        models = {name: price.to_dict() for name, price in chosen.items()}
        document = {
            "source": prices.source,
            "date": prices.date,
            "unit": "dollars per million tokens",
            "models": models,
        }
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        return 0
    lines = [_HEAD]
    for name, price in chosen.items():
        lines.append([name, *_format(price)])
        lines += [[f"  prompt above {tier.above:,}", *_format(tier.price)] for tier in price.tiers]
    sys.stdout.write(fit_listing(lines, table_width(wide=options.wide)) + "\n")
    about = f"dollars per million tokens; {prices.source or 'no source is named'}"
    print(f"\n{about}{f'; {options.name} is found {how}' if how else ''}", file=sys.stderr)
    return 0


def prices_parser() -> Parser:
    parser = Parser(prog="context-bench prices", description=COMMANDS["prices"])
    parser.add_argument("name", nargs="?", metavar="NAME", help="a model name as a run sends it, or a part of a name")
    parser.add_argument(
        "--prices", metavar="FILE", help="add the prices of this file (TOML or JSON) to the bundled table"
    )
    parser.add_argument("--output", choices=("table", "json"), default="table", help="output format (default: table)")
    add_flags(parser, "wide")
    return parser


def choose_prices(prices: Prices, name: str | None) -> tuple[dict[str, Price], str]:
    """Choose the entry that a run would use for a model, or else all entries whose names contain the text; and how."""
    everything = dict(prices)
    if name is None:
        return everything, ""
    match = prices.find(name)
    if match is not None and match.how != "default":
        return {match.entry: match.price}, "" if match.how == "exact" else match.how
    found = {entry: price for entry, price in everything.items() if name.lower() in entry.lower()}
    if not found:
        near = get_close_matches(name, everything, n=3)
        hint = f"; similar: {', '.join(near)}" if near else ""
        raise UsageError(f"{name!r} has no price: no entry matches this name or a part of it{hint}")
    return found, ""


def _format(price: Price) -> list[str]:
    values = (price.input, price.cached_input, price.cache_write_5m, price.cache_write_1h, price.output)
    return ["" if value is None else f"{value:g}" for value in values]
