"""Reading what a tap saw of a request of ours: which calls asked a model, which gave the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from context_bench.tap.completions import Completion, find_sources, read_completion
from context_bench.tap.prompt import Prompt, read_prompt

__all__ = [
    "asks",
    "find_answering_calls",
    "find_answers",
    "is_answered",
    "is_known",
    "is_same_to_a_model",
]

Exchange = Mapping[str, Any]
Call = Mapping[str, Any]

_ASIDE = ("/count_tokens", "/embeddings", "/moderations", "/files", "/tokenize", "/rerank")
"""Ends of paths where no model is asked for an answer."""


def asks(call: Call) -> bool:
    """Whether a model was to answer it: counting tokens or embedding a text is something else."""
    return not call["path"].endswith(_ASIDE)


def is_answered(call: Call) -> bool:
    """Whether it was not refused."""
    return bool(200 <= call["status"] < 300)


def is_known(exchange: Exchange) -> bool:
    """Whether all calls of an exchange are told, are over, and are in a form that can be read.

    A tap that nobody has called so far knows nothing, unless the proxy says that the answer came from its cache.
    """
    if exchange.get("unmatched") or (exchange.get("silent") and not exchange.get("cache_hit")):
        return False
    calls = [call for call in exchange["calls"] if asks(call)]
    return all(call["status"] and (not is_answered(call) or read_prompt(call["body"]) is not None) for call in calls)


def find_answering_calls(exchange: Exchange) -> list[Call] | None:
    """The calls that gave the answer which came back to the client; None where that cannot be told.

    Found by what came back: its id and text, or the tools that it calls. A proxy that asks about parts of a prompt and
    joins the answers has several. Where the proxy rewrote the answer so that nothing tells, it is the one call
    that was answered, if there is only one. An empty list where no call was answered.
    """
    calls = [call for call in exchange["calls"] if asks(call) and is_answered(call)]
    returned = exchange.get("returned")
    if returned is not None:
        replies = [read_completion(call["reply"]) for call in calls]
        places, joined = find_sources(Completion.from_dict(returned), replies)
        found = [calls[place] for place in places]
        if found:
            chosen = found if joined else _choose(found, exchange["sent"])
            return chosen if chosen and all(read_prompt(call["body"]) is not None for call in chosen) else None
    if not is_known(exchange):
        return None
    return calls if len(calls) < 2 else _choose(calls, exchange["sent"]) or None


def _choose(alike: list[Call], sent: str) -> list[Call]:
    """The one that answered, of calls with like answers: all ask the same, or one asks what was sent; else none."""
    prompts = [prompt.as_read() if (prompt := read_prompt(call["body"])) else None for call in alike]
    if all(prompt == prompts[0] for prompt in prompts):
        return alike[:1]
    own = read_prompt(sent)
    passed_on = [call for call, prompt in zip(alike, prompts) if own is not None and prompt == own.as_read()]
    return passed_on[:1]


def find_answers(exchanges: Iterable[Exchange]) -> list[list[Call]] | str:
    """The calls that gave the answer of each exchange, or the reason why they cannot be told."""
    exchanges = list(exchanges)
    found = [find_answering_calls(exchange) for exchange in exchanges]
    known = [calls for calls in found if calls is not None]
    if len(known) == len(found):
        return known
    if all(is_known(exchange) for exchange, calls in zip(exchanges, found) if calls is None):
        return "which of several calls gave the answer could not be told"
    return "which requests at the tap belong to this example could not be told"


def is_same_to_a_model(body: str, other: str) -> bool:
    """Whether two requests give a model the same to read, however their JSON is spelled."""
    first, second = (read_prompt(each) or Prompt() for each in (body, other))
    return first == second or first.as_read() == second.as_read()
