"""`--dry-run`: estimate what a run would send and cost. Nothing is sent."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from context_bench.cli.json_view import format_json
from context_bench.cli.options import RunOptions
from context_bench.cli.output import table_width
from context_bench.datasets.catalog import card_for
from context_bench.datasets.example_check import ExampleCheck
from context_bench.engine.call import is_endpoint
from context_bench.engine.status import StatusLine
from context_bench.pricing import Prices, load_shipped_prices
from context_bench.reporters.fitting import fit_listing
from context_bench.systems.prompts import build_messages, open_turns
from context_bench.text.masking import PROMPT_FIELDS, mask_document
from context_bench.traits import find_model, system_traits
from context_bench.utils.tokens import count_value, get_tokenizer

__all__ = ["dry_run"]

_SHOWN = 1200
"""Characters of a text that are shown."""

_GUESSED_REPLY = 300
_GUESSED_SECONDS = 2.0


@dataclass
class _Total:
    """Totals of what one server would be sent, counted once."""

    examples: int = 0
    requests: int = 0
    tokens: int = 0
    first: dict[str, Any] | None = None


def dry_run(options: RunOptions, systems: list[Any], datasets: Any) -> int:
    """Count what would be sent, estimate its cost and time, and show the first prompt."""
    total = _Total()
    with StatusLine(
        lambda _: f"counting: {datasets.checked:,} examples checked, {total.examples:,} counted",
        enabled=not options.quiet,
    ):
        datasets.check()
        _count(datasets, options.system_prompt, total)
    endpoints = [system for system in systems if is_endpoint(system)]
    times = len(endpoints) * options.repeats
    lines = [
        ["examples", f"{total.examples:,}"],
        ["systems", f"{len(systems)}, of which {len(endpoints)} over the network"],
        ["requests", f"{total.requests * times:,}"],
        ["input tokens", f"{total.tokens * times:,} before any compression"],
        ["cost", _estimate_cost(options, endpoints, total)],
        ["time", _estimate_time(options, total) if endpoints else "no requests"],
    ]
    width = table_width(wide=options.wide)
    sys.stdout.write(fit_listing(lines, width, head=False) + "\n")
    if total.first is not None:
        body = _build_first_body(endpoints, total.first, options.system_prompt)
        sys.stdout.write(f"\nthe first prompt:\n{format_json(body, longest=_SHOWN, width=width)}\n")
    return 0


def _count(datasets: Iterable[dict[str, Any]], system_prompt: str | None, total: _Total) -> None:
    """Add up what each example would send."""
    count, check = get_tokenizer(), ExampleCheck()
    for example in datasets:
        total.examples += 1
        check(example, f"example {total.examples}")
        card = card_for(str(example.get("dataset") or ""))
        example = {"instruction": card.instruction if card else "", **example}
        total.first = total.first or example
        total.requests += max(1, open_turns(example.get("turns") or ()))
        total.tokens += count_value(build_messages(example, system_prompt), count)
        total.tokens += count_value(example.get("tools"), count)


def _estimate_cost(options: RunOptions, endpoints: list[Any], total: _Total) -> str:
    if not endpoints:
        return "nothing"
    prices = Prices.from_file(options.prices) if options.prices else load_shipped_prices()
    reply = options.max_tokens or _GUESSED_REPLY
    dollars = 0.0
    for system in endpoints:
        price = prices.of(find_model(system))
        if price is None:
            return f"not priced: no price for {find_model(system)!r} (--prices FILE)"
        dollars += total.requests * price.dollars(total.tokens / max(1, total.requests), reply)
    return f"about ${dollars * options.repeats:,.2f}, with {reply} tokens a reply"


def _estimate_time(options: RunOptions, total: _Total) -> str:
    requests, tokens = total.requests * options.repeats, total.tokens * options.repeats
    seconds = requests * _GUESSED_SECONDS / (options.max_workers or 8)
    if options.max_rpm:
        seconds = max(seconds, requests * 60 / options.max_rpm)
    if options.max_tpm:
        seconds = max(seconds, tokens * 60 / options.max_tpm)
    return f"about {seconds / 60:,.1f} min, at {_GUESSED_SECONDS:g} s a request"


def _build_first_body(endpoints: list[Any], example: dict[str, Any], system_prompt: str | None) -> Any:
    for system in endpoints:
        make_body = system_traits(system).request_body
        body = None if make_body is None else make_body(example)
        if body is not None:
            return {
                name: body[name] if name in PROMPT_FIELDS else mask_document({name: body[name]})[name] for name in body
            }
    return build_messages(example, system_prompt)
