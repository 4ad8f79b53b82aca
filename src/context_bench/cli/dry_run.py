"""`--dry-run`: what a run would send and might cost. Nothing is sent."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from context_bench.datasets.catalog import card_for
from context_bench.engine.call import is_endpoint
from context_bench.pricing import Prices
from context_bench.reporters.table import plain_table
from context_bench.utils.tokens import count_tokens

__all__ = ["dry_run"]

_GUESSED_REPLY = 300
_GUESSED_SECONDS = 2.0


def dry_run(options: argparse.Namespace, systems: list[Any], datasets: Any) -> int:
    """Count what would be sent, estimate its cost and time, and show the first prompt."""
    datasets.check()
    examples, tokens, first = _count(datasets)
    endpoints = [system for system in systems if is_endpoint(system)]
    requests = examples * len(endpoints) * options.repeats
    lines = [
        ["examples", f"{examples:,}"],
        ["systems", f"{len(systems)}, of which {len(endpoints)} over the network"],
        ["requests", f"{requests:,}"],
        ["input tokens", f"{tokens * len(endpoints) * options.repeats:,} before any compression"],
        ["cost", _cost(options, endpoints, examples, tokens)],
        ["time", _time(options, requests // max(1, len(endpoints)), tokens)],
    ]
    sys.stdout.write(plain_table(lines) + "\n")
    if first is not None:
        body = _first_body(endpoints, first)
        sys.stdout.write(f"\nthe first prompt:\n{json.dumps(body, indent=2, ensure_ascii=False)}\n")
    return 0


def _count(datasets: Iterable[dict[str, Any]]) -> tuple[int, int, dict[str, Any] | None]:
    examples = tokens = 0
    first = None
    for example in datasets:
        card = card_for(str(example.get("dataset") or ""))
        example = {"instruction": card.instruction if card else "", **example}
        first = first or example
        examples += 1
        tokens += sum(count_tokens(str(example.get(field) or "")) for field in ("context", "question", "instruction"))
    return examples, tokens, first


def _cost(options: argparse.Namespace, endpoints: list[Any], examples: int, tokens: int) -> str:
    if not options.prices:
        return "not known without --prices FILE"
    prices, reply = Prices.from_file(options.prices), options.max_tokens or _GUESSED_REPLY
    total = 0.0
    for system in endpoints:
        price = prices.of(getattr(system, "model", None))
        if price is None:
            return f"not known: no price for {getattr(system, 'model', None)!r}"
        total += price.cost({"prompt_tokens": tokens, "completion_tokens": reply * examples}) or 0.0
    return f"about ${total * options.repeats:,.2f}, with {reply} tokens a reply"


def _time(options: argparse.Namespace, requests: int, tokens: int) -> str:
    seconds = requests * _GUESSED_SECONDS / (options.max_workers or 8)
    if options.max_rpm:
        seconds = max(seconds, requests * 60 / options.max_rpm)
    if options.max_tpm:
        seconds = max(seconds, tokens * options.repeats * 60 / options.max_tpm)
    return f"about {seconds / 60:,.1f} min, at {_GUESSED_SECONDS:g} s a request" if requests else "no requests"


def _first_body(endpoints: list[Any], example: dict[str, Any]) -> Any:
    from context_bench.systems.prompts import build_messages

    for system in endpoints:
        sender = getattr(system, "reader", system)
        if hasattr(sender, "request_body"):
            return sender.request_body(example)
    return build_messages(example)
