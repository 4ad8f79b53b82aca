"""Does a proxy break the provider's prompt cache? How much of each request of a conversation comes again in the next.

A provider keeps what it has read from the first token on: tools, system, messages. One change early on and all
that follows is paid for again. Marks that say where to cache (`cache_control`) are no content, and a content that
is a text is the same as one block with that text, as providers have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from context_bench.results import dump_json
from context_bench.tap.prompt import Prompt, read_prompt
from context_bench.utils.tokens import Tokenizer

__all__ = ["prefix_stability"]


@dataclass(frozen=True, slots=True)
class _Request:
    """A prompt as a cache sees it: texts in order, the first letter of each says what it is."""

    opening: list[str]
    messages: list[str]

    @property
    def parts(self) -> list[str]:
        return self.opening + self.messages


def prefix_stability(bodies: Sequence[str], count: Tokenizer) -> dict[str, Any]:
    """Compare each request of a conversation with the one before it.

    Args:
        bodies: The upstream requests in order, one for each turn; those that hold no prompt are passed over.
        count: Counts tokens.

    Returns:
        `prefix_stability`, the mean share of a request's tokens that stand unchanged at the start of the next one;
        `first_message_changed`, whether tools, system or first message ever differ from one request to the next;
        `rewritten_history`, the share of messages that are not the same at the same place in the next request.
        Nothing for fewer than two requests.
    """
    prompts = [prompt for body in bodies if (prompt := read_prompt(body)) is not None]
    pairs = list(pairwise([_request(prompt) for prompt in prompts]))
    if not pairs:
        return {}
    count = cache(count)  # the same history comes again in every request
    earlier = sum(len(first.messages) for first, _ in pairs)
    rewritten = sum(_rewritten(first.messages, second.messages) for first, second in pairs)
    return {
        "prefix_stability": sum(_kept(first.parts, second.parts, count) for first, second in pairs) / len(pairs),
        "first_message_changed": any(_opens(first) != _opens(second) for first, second in pairs),
        "rewritten_history": rewritten / earlier if earlier else 0.0,
    }


def _request(prompt: Prompt) -> _Request:
    system = [] if prompt.system is None else [_text("s", {"content": prompt.system})]
    opening = [_text("t", tool) for tool in prompt.tools] + system
    return _Request(opening, [_text("m", message) for message in prompt.messages])


def _text(kind: str, value: Any) -> str:
    return kind + dump_json(_content(value))


def _content(value: Any) -> Any:
    """A value without marks for the cache, its texts as blocks."""
    if isinstance(value, Mapping):
        kept = {key: _content(item) for key, item in value.items() if key != "cache_control"}
        if isinstance(kept.get("content"), str):
            kept["content"] = [{"type": "text", "text": kept["content"]}]
        return kept
    return [_content(item) for item in value] if isinstance(value, list) else value


def _opens(request: _Request) -> tuple[list[str], list[str]]:
    return request.opening, request.messages[:1]


def _rewritten(earlier: Sequence[str], later: Sequence[str]) -> int:
    same = sum(first == second for first, second in zip(earlier, later))
    return len(earlier) - same


def _kept(earlier: Sequence[str], later: Sequence[str], count: Tokenizer) -> float:
    """The share of the earlier request with which the later one begins."""
    total = sum(map(count, earlier))
    kept = 0
    for place, part in enumerate(earlier):
        other = later[place] if place < len(later) else ""
        if part != other:
            kept += count(part[: _common(part, other)])
            break
        kept += count(part)
    return min(1.0, kept / total) if total else 1.0


def _common(first: str, second: str) -> int:
    """How many characters two texts have in common at their start."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
