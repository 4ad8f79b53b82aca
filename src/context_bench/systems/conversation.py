"""Conversations: each user turn that waits for a reply gets one, in sight of all before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from context_bench.errors import BadOutput, SystemFailure
from context_bench.refs import check_awaitable
from context_bench.systems.prompts import Message, is_open, open_turns
from context_bench.traits import can_await_turns
from context_bench.types import Example

__all__ = ["answer_turns", "ask", "has_open_turns", "in_one", "list_turn_prompts"]

_SUMS = (
    *("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "cache_creation_tokens"),
    *("cache_creation_1h_tokens", "reasoning_tokens", "attempts", "timed_out_attempts", "waited", "request_seconds"),
)
_BILLED = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")
"""The token counts that the price of a request depends on."""


def has_open_turns(example: Mapping[str, Any]) -> bool:
    """Whether an example asks for several replies."""
    turns = example.get("turns")
    return open_turns(turns) > 1 if turns else False


def ask(system: Any, example: Example) -> Awaitable[Any]:
    """Ask an asynchronous system: one reply, or one for each open turn if it can do that."""
    if has_open_turns(example) and can_await_turns(system):
        return _ask_each(system, example["turns"])
    reply: Awaitable[Any] = check_awaitable(system.aprocess(example), system, "aprocess")
    return reply


async def _ask_each(system: Any, turns: Sequence[Message]) -> Example:
    return in_one(await check_awaitable(system.aprocess_conversation(turns), system, "aprocess_conversation"))


async def answer_turns(reply_to: Callable[[Example], Awaitable[Example]], turns: Sequence[Message]) -> list[Message]:
    """Get a reply for each user turn that has none, one after the other."""
    sent: list[Message] = []
    replies: list[Message] = []
    for turn, after in zip(turns, [*turns[1:], None]):
        sent.append(dict(turn))
        if is_open(turn, after):
            try:
                result = await reply_to({"turns": sent})
            except SystemFailure as error:
                _add_numbers(error.metadata, replies)
                raise
            reply = {"role": "assistant", "content": result["response"]}
            sent.append(reply)
            seen = {"tapped": result["tapped"]} if "tapped" in result else {}
            replies.append({**reply, "metadata": result["metadata"], **seen})
    return replies


def list_turn_prompts(turns: Sequence[Message], replies: Sequence[str]) -> list[Example]:
    """List what `answer_turns` asks for each open turn, given the replies that came; a missing one is empty."""
    left = iter(replies)
    sent: list[Message] = []
    prompts: list[Example] = []
    for turn, after in zip(turns, [*turns[1:], None]):
        sent.append(turn)
        if is_open(turn, after):
            prompts.append({"turns": list(sent)})
            sent.append({"role": "assistant", "content": next(left, "")})
    return prompts


def _add_numbers(total: dict[str, Any], replies: Sequence[Mapping[str, Any]]) -> None:
    """Add what the turns before a failed one have cost: that was paid for."""
    if replies:
        total["turn_usage"] = [*map(_list_billed, (reply["metadata"] for reply in replies))]
        if own := _list_billed(total):
            total["turn_usage"].append(own)
    for reply in replies:
        for key, value in reply["metadata"].items():
            if key in _SUMS:
                total[key] = total.get(key, 0) + value


def in_one(replies: Sequence[Mapping[str, Any]]) -> Example:
    """Join the replies for all turns into one result: the last is the response, the numbers add up."""
    if not isinstance(replies, list | tuple) or not replies or not all(isinstance(each, Mapping) for each in replies):
        raise BadOutput("process_conversation() must return a list with a message for each user turn")
    metadata: dict[str, Any] = {}
    for reply in replies:
        for key, value in (reply.get("metadata") or {}).items():
            metadata[key] = metadata[key] + value if key in metadata and key in _SUMS else value
    if len(replies) > 1:  # each is a request of its own, and its prompt alone decides what its tokens cost
        metadata["turn_usage"] = [_list_billed(reply.get("metadata") or {}) for reply in replies]
    contents = [str(reply.get("content") or "") for reply in replies]
    tapped = [exchange for reply in replies for exchange in reply.get("tapped") or ()]
    seen = {"tapped": tapped} if tapped else {}
    return {"response": contents[-1], "turn_responses": contents, "metadata": metadata, **seen}


def _list_billed(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The counts of one turn that its price depends on."""
    return {key: metadata[key] for key in _BILLED if key in metadata}
