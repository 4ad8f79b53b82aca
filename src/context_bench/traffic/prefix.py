"""Prefix stability: the share of each request that the next request of the conversation repeats unchanged.

A provider caches prompts from the first token on: tools, system, messages. After an early change, everything that
follows is billed in full again. The comparison uses texts and their structure: role, kind of block, tool. The spelling
of the surrounding JSON is ignored, and its tokens are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import eq
from typing import Any, NamedTuple

from context_bench.text import dump_json
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.prompts import Prompt


class _Piece(NamedTuple):
    """A stretch of a prompt: its kind (such as tool, or block of a role), and its text."""

    kind: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class _Request:
    """A prompt in cache order: the pieces of tools and system, then those of each message."""

    opening: list[_Piece]
    messages: list[list[_Piece]]

    @property
    def pieces(self) -> list[_Piece]:
        return [*self.opening, *(piece for message in self.messages for piece in message)]


@dataclass(frozen=True, slots=True)
class PrefixStability:
    """Stability of the requests of a conversation."""

    kept: float  # mean share of a request's tokens that the next one begins with
    first_message_changed: bool  # whether tools, system or first message ever change
    rewritten: float  # share of messages that differ at the same place in the next request
    tokens: list[tuple[int, int]]  # for each request: prompt tokens, and those shared with its predecessor


def measure_prefix(prompts: Iterable[Prompt | None], count: Tokenizer) -> PrefixStability | None:
    """Compare each request of a conversation with its predecessor; return None for fewer than two requests.

    Args:
        prompts: Prompts of the upstream requests in order, one for each turn; None is skipped.
        count: Counts tokens.
    """
    known = [prompt for prompt in prompts if prompt is not None]
    if len(known) < 2:
        return None
    pairs = list(pairwise([_split_request(prompt.as_read()) for prompt in known]))
    count = cache(count)  # every request repeats the history
    earlier = sum(len(first.messages) for first, _ in pairs)
    rewritten = earlier - sum(sum(map(eq, first.messages, second.messages)) for first, second in pairs)
    kept = [_count_kept(first.pieces, second.pieces, count) for first, second in pairs]
    sizes = [_count_pieces(request.pieces, count) for request in (pairs[0][0], *(second for _, second in pairs))]
    return PrefixStability(
        sum(min(1.0, same / size) if size else 1.0 for same, size in zip(kept, sizes)) / len(pairs),
        any(_read_opening(first) != _read_opening(second) for first, second in pairs),
        rewritten / earlier if earlier else 0.0,
        list(zip(sizes, (0, *kept))),
    )


def _split_request(prompt: Prompt) -> _Request:
    tools = [_Piece(("tool", *Prompt(tools=[tool]).tool_names()), dump_json(tool)) for tool in prompt.tools]
    system = [] if prompt.system is None else list(_split_message({"role": "system", "content": prompt.system}))
    return _Request(tools + system, [list(_split_message(message)) for message in prompt.messages])


def _split_message(message: Any) -> Iterator[_Piece]:
    """Split a message into its blocks, after a marker piece, so that a message split in two counts as changed."""
    if not isinstance(message, Mapping):
        yield _Piece(("message", dump_json(message)), "")
        return
    yield _Piece(("message", str(message.get("role"))), "")
    yield from _split_content(message.get("content"), ())
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield _Piece(("tool call", str(function.get("name"))), str(function.get("arguments") or ""))
        else:
            yield _Piece(("tool call", dump_json(call)), "")


def _split_content(content: Any, inside: tuple[str, ...]) -> Iterator[_Piece]:
    """Split a content into its blocks; a text is one block, and blocks without text are compared by their JSON."""
    for block in content if isinstance(content, list) else [] if content is None else [content]:
        if isinstance(block, str):
            yield _Piece((*inside, "text"), block)
        elif not isinstance(block, Mapping):
            yield _Piece((*inside, dump_json(block)), "")
        elif isinstance(block.get("text"), str):
            yield _Piece((*inside, str(block.get("type"))), block["text"])
        elif block.get("type") == "tool_use":
            yield _Piece((*inside, "tool call", str(block.get("name"))), dump_json(block.get("input")))
        elif block.get("type") == "tool_result":
            yield _Piece((*inside, "tool result"), "")
            yield from _split_content(block.get("content"), (*inside, "tool result")) if len(inside) < 8 else ()
        else:
            yield _Piece((*inside, dump_json(block)), "")


def _read_opening(request: _Request) -> tuple[list[_Piece], list[list[_Piece]]]:
    return request.opening, request.messages[:1]


def _count_pieces(pieces: Sequence[_Piece], count: Tokenizer) -> int:
    return sum(count(piece.text) for piece in pieces if piece.text)


def _count_kept(earlier: Sequence[_Piece], later: Sequence[_Piece], count: Tokenizer) -> int:
    """Count the tokens of the earlier request that the later one begins with."""
    kept = 0
    for place, piece in enumerate(earlier):
        other = later[place] if place < len(later) else None
        if piece != other:
            same = piece.text[: _count_common(piece.text, other.text)] if other and piece.kind == other.kind else ""
            kept += count(same) if same else 0
            break
        kept += count(piece.text) if piece.text else 0
    return kept


def _count_common(first: str, second: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
