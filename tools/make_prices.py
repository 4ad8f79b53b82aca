"""Make the price table that ships with the package from a list of prices per token, as LiteLLM publishes it.

    python tools/make_prices.py SOURCE.json

SOURCE.json holds `source` (what was read, and when) and `usd_per_token` by model. Models whose input and output are
both 0 are left out: the list does not tell a free model from one whose price is not known.
"""

from __future__ import annotations

import json
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "src" / "context_bench" / "pricing" / "prices.json"

_NAMES = {
    "input": "input_cost_per_token",
    "cached_input": "cache_read_input_token_cost",
    "cache_write_5m": "cache_creation_input_token_cost",
    "cache_write_1h": "cache_creation_input_token_cost_above_1hr",
    "output": "output_cost_per_token",
}
_TIERS = ("100k", "200k", "272k")
CACHE_MINIMUM = 1024  # of models for which the list says nothing


def convert(listed: dict[str, Any], suffix: str = "") -> dict[str, float]:
    """Convert one model's prices, or those of one of its tiers, to dollars per million tokens."""
    found = {
        name: float(Decimal(repr(listed[key + suffix])) * 1_000_000)
        for name, key in _NAMES.items()
        if listed.get(key + suffix) is not None
    }
    # Writing to a cache is never cheaper than reading plain input: such entries are slips of the list.
    return {name: value for name, value in found.items() if "write" not in name or value >= found["input"]}


def make_table(document: dict[str, Any]) -> dict[str, Any]:
    """Make the table from the whole list."""
    models = {}
    for model, listed in sorted(document["usd_per_token"].items()):
        price: dict[str, Any] = convert(listed)
        price.setdefault("output", 0.0)  # a model for embeddings may be listed without it
        if not price["input"] and not price["output"]:
            continue
        for tier in _TIERS:
            above = convert(listed, f"_above_{tier}_tokens")
            if above:
                price[f"above_{tier}"] = above
        if listed.get("prompt_cache_min_tokens") not in (None, CACHE_MINIMUM):
            price["cache_minimum"] = int(listed["prompt_cache_min_tokens"])
        models[model] = price
    date = re.search(r"\d{4}-\d{2}-\d{2}", document["source"])
    return {
        "source": document["source"],
        "date": date[0] if date else "",
        "unit": "dollars per million tokens",
        "models": models,
    }


def write(table: dict[str, Any]) -> None:
    """Write the table, a line for each model."""
    lines = [f"{json.dumps(model)}: {json.dumps(price)}" for model, price in table.pop("models").items()]
    head = json.dumps(table, indent=1)[:-2]
    TABLE.write_text(f'{head},\n "models": {{\n  ' + ",\n  ".join(lines) + "\n }\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write(make_table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
