"""Compares what an example holds, or what was sent, with what a system passed on to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from context_bench.traffic.exchanges import Exchange, read_exchanges
from context_bench.traffic.text_diff import DiffPart, diff_prompts, diff_texts
from context_bench.wire.prompts import Prompt

__all__ = ["PassedOn", "compare_passed_on"]


class PassedOn(NamedTuple):
    """A request as sent against what was passed on; `parts` is empty where the title says it all."""

    title: str
    parts: list[DiffPart]


def compare_passed_on(example: Mapping[str, Any], processed: Mapping[str, Any] | None) -> list[PassedOn]:
    """Compare an example with what a system returned for it, or, with a tap, with each request that it sent on.

    Args:
        example: As the system got it.
        processed: What the system returned; None where no answer is stored.
    """
    if processed is None:
        return [PassedOn("nothing to compare: no answer is stored", [])]
    if processed.get("tapped"):
        exchanges = read_exchanges(processed["tapped"])
        return [
            each
            for number, exchange in enumerate(exchanges, 1)
            for each in _compare_tapped(exchange, f"request {number} of {len(exchanges)}")
        ]
    return _compare_contexts(example, processed)


def _compare_tapped(exchange: Exchange, name: str) -> Iterator[PassedOn]:
    """Compare what was sent with each request that it became."""
    sent, calls = exchange.prompt or Prompt(), exchange.calls
    seen: dict[str, int] = {}
    if not calls:
        why = "it is not known which request at the tap it became" if exchange.unmatched else "nothing was passed on"
        yield PassedOn(f"{name}: {why}", [])
    for number, call in enumerate(calls, 1):
        title = f"{name}, call {number} of {len(calls)}, answered with {call.status or 'nothing'}"
        if call.body in seen:
            yield PassedOn(f"{title}: the same as call {seen[call.body]}", [])
        elif call.prompt is None:
            yield PassedOn(f"{title}: {call.path} holds no messages", [])
        else:
            parts = diff_prompts(sent, call.prompt)
            if changes := [each for each in exchange.list_changes(call) if each != "tools"]:
                parts.append(DiffPart("settings", diff_texts("", "\n".join(changes))))
            yield PassedOn(title if len(calls) > 1 else name, parts)
        seen.setdefault(call.body, number)


def _compare_contexts(example: Mapping[str, Any], processed: Mapping[str, Any]) -> list[PassedOn]:
    """Compare the context or conversation with what a compressor in this process made of it."""
    context, turns = processed.get("context"), processed.get("turns")
    if isinstance(turns, list) and turns != example.get("turns"):
        return [PassedOn("", diff_prompts(Prompt(messages=example.get("turns") or []), Prompt(messages=turns)))]
    if isinstance(context, str):
        return [PassedOn("", [DiffPart("context", diff_texts(str(example.get("context") or ""), context))])]
    return [PassedOn("nothing to compare: the system returned an answer only; --tap shows what it sends on", [])]
