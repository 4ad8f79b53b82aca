"""Simulated prompt cache of a provider, for recorded threads and for the same threads as a proxy forwarded them.

Recorded threads may lack the system text and the tools. The size of these missing parts comes from a fit of billed to
counted tokens. The counters of a thread's first request show whether they were cached when the thread began.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from context_bench.pricing.price import CACHE_MINIMUM, Price
from context_bench.pricing.price_table import Prices
from context_bench.pricing.prompt_cache import FIVE_MINUTES, HOUR, Block, BreakpointCache, CacheUse, PrefixCache
from context_bench.text import dump_json
from context_bench.traffic.parts import PromptCounter, list_messages, list_parts, list_reply_messages
from context_bench.traffic.sessions import Request, Thread, fit_tokens
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.prompts import read_text

DEFAULT_SLOPE = 1.25
"""Billed tokens per token of `cl100k_base` in Claude sessions; used for threads that are too short to fit."""

FIRST_TOKEN_SECONDS = 2.0
"""Seconds from a request to the start of its answer; from then on, other threads can read its cache entries."""

_LIFETIMES = {"5m": FIVE_MINUTES, "1h": HOUR}
HALF_HOUR = HOUR / 2  # lifetime of cache entries of OpenAI's newer models
MAX_BLOCKS = 100_000  # in effect no limit: these models find breakpoints at any distance


# --- blocks


class BlockReader:
    """Reader that splits requests into blocks in cache order, and counts the tokens of each block once."""

    def __init__(self, count: Tokenizer) -> None:
        self._count = count
        self._known: dict[tuple[bytes, float | None], Block] = {}  # every request repeats the history

    def read(self, body: Mapping[str, Any]) -> list[Block]:
        """Return the blocks of a request, with its breakpoints."""
        system = body.get("system", body.get("instructions"))
        blocks = [self._make("tool", tool) for tool in body.get("tools") or ()]
        blocks += [self._make("system", block) for block in _list_blocks(system)]
        for message in list_messages(body):
            blocks += [self._make(_read_role(message), block) for block in _split_message(message)]
        if isinstance(body.get("cache_control"), Mapping) and blocks:
            blocks[-1] = Block(blocks[-1].content, blocks[-1].tokens, _read_lifetime(body["cache_control"]))
        return blocks

    def _make(self, kind: str, value: Any) -> Block:
        lifetime = None
        if isinstance(value, Mapping) and "cache_control" in value:
            lifetime = _read_lifetime(value["cache_control"])
            value = {key: each for key, each in value.items() if key != "cache_control"}
        content = f"{kind}\0{dump_json(value)}".encode()
        block = self._known.get((content, lifetime))
        if block is None:
            block = self._known[content, lifetime] = Block(content, self._count_block(kind, value), lifetime)
        return block

    def _count_block(self, kind: str, value: Any) -> int:
        if kind == "tool":
            return self._count(dump_json(value))
        if kind == "system":
            return self._count(read_text([value]))
        is_message = isinstance(value, Mapping) and ("role" in value or "call_id" in value)
        message = value if is_message else {"role": kind, "content": [value]}
        return sum(part.tokens(self._count) for part in list_parts(message, {}))


def _read_role(message: Any) -> str:
    """Return the role of a message; tool results count as `user`."""
    if not isinstance(message, Mapping):
        return "user"
    role = str(message.get("role") or message.get("type"))
    return "user" if role in ("tool", "function") or role.endswith("_output") else role


def _split_message(message: Any) -> list[Any]:
    """Split a message into its blocks; a message with further fields, such as tool calls, is one block."""
    if isinstance(message, Mapping) and set(message) == {"role", "content"}:
        return _list_blocks(message["content"])
    return [message]


def _list_blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [] if content is None else [{"type": "text", "text": content}]


def mark_body(body: dict[str, Any]) -> dict[str, Any]:
    """Set the breakpoints of an agent that caches its whole history, as Claude Code does.

    There is one on the last block of the system text (of the tools if there is no system text), and one on the last
    block of each of the last two user messages.
    """
    marked = dict(body)
    for name in ("system", "tools"):
        if marked.get(name):
            marked[name] = _mark_last(_list_blocks(marked[name]))
            break
    users = [place for place, message in enumerate(body["messages"]) if _read_role(message) == "user"]
    messages = list(body["messages"])
    for place in users[-2:]:
        content = _list_blocks(messages[place].get("content"))
        messages[place] = {**messages[place], "content": _mark_last(content)}
    return {**marked, "messages": messages}


def _mark_last(blocks: list[Any]) -> list[Any]:
    if not blocks or not isinstance(blocks[-1], Mapping):
        return blocks
    return [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]


def _read_lifetime(mark: Any) -> float:
    return _LIFETIMES.get(str(mark.get("ttl")) if isinstance(mark, Mapping) else "", FIVE_MINUTES)


# --- billed tokens


@dataclass(frozen=True, slots=True)
class Scale:
    """Conversion of a thread's counted tokens to billed ones, and the size of its unrecorded start."""

    slope: float = 1.0
    hidden: int = 0  # tokens of system text and tools that the recording lacks
    warm: int = 0  # tokens that the first request read from the cache

    def scale(self, blocks: Sequence[Block], kind: bytes) -> list[Block]:
        """Prepend the hidden start to the blocks, and convert the tokens of each block to billed ones."""
        hidden = [Block(b"warm " + kind, self.warm, FIVE_MINUTES)] if self.warm else []
        if self.hidden > self.warm:
            hidden.append(Block(b"hidden " + kind, self.hidden - self.warm, FIVE_MINUTES))
        return [*hidden, *self.convert(blocks)]

    def convert(self, blocks: Sequence[Block]) -> list[Block]:
        """Convert the tokens of each block to billed ones."""
        return [Block(each.content, round(each.tokens * self.slope), each.lifetime) for each in blocks]


def fit_scales(threads: Sequence[Thread], count: Tokenizer, *, half: bool = False) -> dict[str, Scale]:
    """Fit the scale of each thread to its recorded usage.

    Args:
        threads: Threads of one session.
        count: Counts tokens.
        half: Use only the first half of each thread, so that the other half can test the fit.
    """
    points = {thread.id: _list_points(thread, count, half=half) for thread in threads}
    slopes = [fit.slope for pairs in points.values() if (fit := fit_tokens(*_unzip(pairs))) is not None]
    slope = sum(slopes) / len(slopes) if slopes else DEFAULT_SLOPE
    return {thread.id: _fit_scale(thread, points[thread.id], slope) for thread in threads}


def _fit_scale(thread: Thread, points: Sequence[tuple[int, int]], slope: float) -> Scale:
    if not points:
        return Scale()
    if not _lacks_opening(thread):
        counted, billed = sum(each for each, _ in points), sum(each for _, each in points)
        return Scale(billed / counted if counted else 1.0)
    fit = fit_tokens(*_unzip(points))
    slope = fit.slope if fit is not None else slope
    hidden = fit.offset if fit is not None else points[0][1] - slope * points[0][0]
    first = thread.requests[0].usage
    hidden_tokens = max(0, round(hidden))
    warm = min(first.cache_read or 0, hidden_tokens) if first is not None else 0
    return Scale(slope, hidden_tokens, warm)


def _list_points(thread: Thread, count: Tokenizer, *, half: bool) -> list[tuple[int, int]]:
    """List the counted and billed tokens of each prompt of a thread."""
    counter = PromptCounter(count)
    requests = thread.requests[: max(2, len(thread.requests) // 2)] if half else thread.requests
    return [(counter.count_prompt(each), each.usage.prompt) for each in requests if each.usage is not None]


def _unzip(points: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [counted for counted, _ in points], [billed for _, billed in points]


def _lacks_opening(thread: Thread) -> bool:
    first = thread.requests[0]
    return first.system is None and not first.tools and first.api != "openai"


# --- the simulation

Requests = Mapping[tuple[str, int], Sequence[Sequence[Block]]]
"""The blocks of each request, by thread and place: one list for each time that the request was sent."""


@dataclass(frozen=True, slots=True)
class Billed:
    """Cache use of one request of a session."""

    thread: Thread
    place: int  # index in its thread
    uses: tuple[CacheUse, ...]  # one for each time that the request was sent
    output: int = 0  # tokens of the reply
    added: int = 0  # tokens of the blocks that this turn added to the conversation

    @property
    def prompt(self) -> int:
        """Prompt tokens, summed over all times that the request was sent."""
        return sum(use.prompt for use in self.uses)

    @property
    def read(self) -> int:
        """Tokens read from the cache when the request was first sent."""
        return self.uses[0].read

    @property
    def request(self) -> Request:
        return self.thread.requests[self.place]

    def dollars(self, price: Price, *, without_cache: bool = False) -> float:
        """Return the price of the request with its recorded reply."""
        uses = [CacheUse(use.prompt) for use in self.uses] if without_cache else self.uses
        each = (price.dollars(use.prompt, self.output, use.read, use.write_5m, use.write_1h) for use in uses)
        return sum(each)


def price_recorded(request: Request, price: Price) -> float | None:
    """Return the price of a request by its recorded usage; None if no usage was recorded."""
    return None if request.usage is None else price.cost({"completion_tokens": 0, **request.usage.as_counts()})


def has_breakpoints(threads: Iterable[Thread]) -> bool:
    """Whether a recording contains cache breakpoints."""
    return any("cache_control" in dump_json(thread.requests[-1].body()) for thread in threads if thread.requests)


class Simulator:
    """Simulator of the provider's prompt cache for the requests of a session, ordered by start time.

    Args:
        threads: Threads of one session.
        scales: Scale of each thread, by its id.
        reader: Reads requests as blocks.
        prices: Give the minimum number of tokens that a model caches, and the price of cache writes.
    """

    def __init__(
        self,
        threads: Sequence[Thread],
        scales: Mapping[str, Scale],
        reader: BlockReader,
        prices: Prices | None = None,
    ) -> None:
        self.threads, self.prices, self._scales, self._reader = threads, prices, scales, reader
        self._sets_marks = not has_breakpoints(threads)
        self._recorded: dict[tuple[str, int], list[list[Block]]] = {}

    def rescale(self, scales: Mapping[str, Scale]) -> Simulator:
        """Return a copy with other scales that reuses the blocks already read."""
        other = copy(self)
        other._scales = scales
        return other

    def make_body(self, request: Request) -> dict[str, Any]:
        """Build the body of a request; add an agent's breakpoints if the recording has none."""
        body = request.body()
        return mark_body(body) if self._sets_marks and request.api == "anthropic" else body

    def read(self, body: Mapping[str, Any]) -> list[Block]:
        """Read a body as blocks."""
        return self._reader.read(body)

    def run(self, sent: Requests | None = None, *, cold: bool = False) -> list[Billed]:
        """Return the cache use of each request.

        Args:
            sent: Blocks that were sent; by default, the recorded ones.
            cold: Start each thread with an empty cache.
        """
        caches: dict[str | None, BreakpointCache | PrefixCache] = {}
        billed = []
        for thread, place, at in order_requests(self.threads):
            request = thread.requests[place]
            if request.model not in caches:
                caches[request.model] = self._make_cache(request)
            cache, scale = caches[request.model], self._scales[thread.id]
            reply = scale.convert(self._reader.read({"messages": list_reply_messages(request.reply)}))
            usage = request.usage
            output = usage.output if usage is not None else None
            if output is None:
                output = sum(block.tokens for block in reply)
            uses: list[CacheUse] = []
            answered = _find_answered(thread, place, at)
            bodies = self._read_recorded(thread, place) if sent is None else sent[thread.id, place]
            added = sum(block.tokens for block in scale.convert(self._cut_added(thread, place, bodies[0])))
            for blocks in bodies:
                scaled = scale.scale(blocks, b"agent" if thread.agent else b"main")
                if isinstance(cache, PrefixCache):
                    uses.append(cache.use(_list_ids(scaled), at, _list_ids(reply)))
                    continue
                if request.api != "anthropic" and scaled:
                    scaled[-1] = replace(scaled[-1], lifetime=HALF_HOUR)
                if place == 0 and scale.warm and not cold:
                    cache.use(scaled[:1], at - 1)
                uses.append(
                    cache.use(scaled, answered if uses else at, answered)
                )  # repeats come after the first answer
            billed.append(Billed(thread, place, tuple(uses), output, added))
        return billed

    def _cut_added(self, thread: Thread, place: int, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return as many of a request's last blocks as its turn added in the recording."""
        before = len(self._read_recorded(thread, place - 1)[0]) if place else 0
        number = len(self._read_recorded(thread, place)[0]) - before
        return blocks[-number:] if number > 0 else ()

    def _read_recorded(self, thread: Thread, place: int) -> list[list[Block]]:
        key = thread.id, place
        if key not in self._recorded:
            self._recorded[key] = [self.read(self.make_body(thread.requests[place]))]
        return self._recorded[key]

    def _make_cache(self, request: Request) -> BreakpointCache | PrefixCache:
        """Make the cache of a model; OpenAI models that bill writes get a breakpoint at each request's end."""
        price = self.prices.of(request.model) if self.prices is not None else None
        minimum = CACHE_MINIMUM if price is None else price.cache_minimum
        if request.api == "anthropic":
            return BreakpointCache(minimum)
        if price is not None and price.cache_write_5m is not None:
            return BreakpointCache(minimum, look_back=MAX_BLOCKS)
        return PrefixCache(minimum=minimum)

    def reads_best_case(self) -> bool:
        """Whether the provider's real cache sometimes misses; simulated reads are then an upper bound."""
        return any(isinstance(self._make_cache(each.requests[0]), PrefixCache) for each in self.threads)


def _find_answered(thread: Thread, place: int, at: float) -> float:
    """Return when an answer began: after `FIRST_TOKEN_SECONDS`, but before the next request of its thread."""
    soon = at + FIRST_TOKEN_SECONDS
    if place + 1 == len(thread.requests):
        return soon
    return max(at, min(soon, thread.requests[place + 1].started or at))


def order_requests(threads: Sequence[Thread]) -> Iterator[tuple[Thread, int, float]]:
    """Yield the requests of a session by start time; a request without a time directly follows its predecessor."""
    found = []
    for thread in threads:
        at = 0.0
        for place, request in enumerate(thread.requests):
            at = max(at, request.started or at)
            found.append((at, thread, place))
    found.sort(key=lambda each: each[0])
    for at, thread, place in found:
        yield thread, place, at


def _list_ids(blocks: Sequence[Block]) -> list[int]:
    """Return substitutes for token ids, one per token of a block: equal texts begin with equal ids."""
    ids: list[int] = []
    for block in blocks:
        if not block.tokens:
            continue
        own = array("I", block.content[: (block.tokens - 1) * 4 // 4 * 4].ljust((block.tokens - 1) * 4, b"\0"))
        ids += own
        ids.append(int.from_bytes(blake2b(block.content, digest_size=6).digest(), "little"))
    return ids
