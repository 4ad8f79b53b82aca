"""Simulators of prompt caches: how many tokens of each request a provider reads from its cache or writes to it.

Anthropic and OpenAI's newer models cache at breakpoints (`BreakpointCache`); OpenAI's older models cache every prefix
in steps of 128 tokens (`PrefixCache`). Both simulators get the requests of one model and one account in the order of
their start.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MINUTE, HOUR = 60.0, 3600.0
FIVE_MINUTES = 5 * MINUTE

_PRUNE_ABOVE = 100_000  # entries; from then on those that expired are dropped


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a prompt, in the order in which the cache sees them: tools, system, messages."""

    content: bytes  # identifies its kind and its content
    tokens: int
    lifetime: float | None = None  # seconds for which a breakpoint on this block keeps the prefix; None: no breakpoint


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The prompt tokens of one request, in buckets that do not overlap."""

    input: int  # neither read from the cache nor written to it
    read: int = 0
    write_5m: int = 0  # written for less than an hour
    write_1h: int = 0

    @property
    def prompt(self) -> int:
        """The tokens of the whole prompt."""
        return self.input + self.read + self.write_5m + self.write_1h


@dataclass(slots=True)
class _Entry:
    readable: float  # when the first answer that wrote it had begun
    expires: float
    lifetime: float


class BreakpointCache:
    """A cache of prefixes that end at a breakpoint.

    A request writes one entry for each of its breakpoints. A request reads the first entry found in a search that goes
    back block by block from its last breakpoint, then from the breakpoint before, and so on. A read renews each entry
    of the prefix that was read, free of charge.

    Args:
        minimum: Tokens below which a prefix is not cached.
        look_back: Number of blocks to search from each breakpoint, including the block of the breakpoint.
    """

    def __init__(self, minimum: int = 0, look_back: int = 20) -> None:
        self._minimum, self._look_back = minimum, look_back
        self._entries: dict[bytes, _Entry] = {}
        self._prune_above = _PRUNE_ABOVE

    def use(self, blocks: Sequence[Block], at: float, answered: float | None = None) -> CacheUse:
        """Return the cache use of a request, and store its writes.

        Args:
            blocks: The blocks of the whole prompt.
            at: When the request started, in seconds.
            answered: When the answer began, from which on the writes can be read; None means `at`.
        """
        prefixes = list(_digest_prefixes(blocks))
        marks = [place for place, block in enumerate(blocks) if block.lifetime is not None]
        marks = [place for place in marks if prefixes[place][1] >= self._minimum]
        total = prefixes[-1][1] if prefixes else 0
        hit = self._find_hit(prefixes, marks, at)
        read = prefixes[hit][1] if hit is not None else 0
        for digest, _ in prefixes[: 0 if hit is None else hit + 1]:
            if (entry := self._entries.get(digest)) is not None and _is_live(entry, at):
                entry.expires = max(entry.expires, at + entry.lifetime)
        beyond = [place for place in marks if hit is None or place > hit]
        for place in beyond:
            self._write(prefixes[place][0], blocks[place].lifetime or 0.0, at, at if answered is None else answered)
        hour = max((prefixes[place][1] for place in beyond if (blocks[place].lifetime or 0.0) >= HOUR), default=read)
        last = max((prefixes[place][1] for place in beyond), default=read)
        if len(self._entries) > self._prune_above:
            self._entries = {digest: entry for digest, entry in self._entries.items() if entry.expires > at}
            self._prune_above = max(_PRUNE_ABOVE, 2 * len(self._entries))
        return CacheUse(total - last, read, last - hour, hour - read)

    def _find_hit(self, prefixes: Sequence[tuple[bytes, int]], marks: Sequence[int], at: float) -> int | None:
        for mark in reversed(marks):
            for place in range(mark, max(-1, mark - self._look_back), -1):
                entry = self._entries.get(prefixes[place][0])
                if entry is not None and _is_live(entry, at):
                    return place
        return None

    def _write(self, digest: bytes, lifetime: float, at: float, readable: float) -> None:
        entry = self._entries.get(digest)
        if entry is None or entry.expires <= at:
            self._entries[digest] = _Entry(readable, at + lifetime, lifetime)
        else:  # written by several requests at once
            entry.readable = min(entry.readable, readable)
            entry.expires, entry.lifetime = max(entry.expires, at + lifetime), max(entry.lifetime, lifetime)


def _is_live(entry: _Entry, at: float) -> bool:
    return entry.readable <= at < entry.expires


def _digest_prefixes(blocks: Sequence[Block]) -> Iterator[tuple[bytes, int]]:
    """Yield, for each block, the digest and the tokens of the prompt up to the end of the block."""
    digest, tokens = hashlib.blake2b(digest_size=16), 0
    for block in blocks:
        digest.update(len(block.content).to_bytes(8, "little") + block.content)
        tokens += block.tokens
        yield digest.copy().digest(), tokens


class PrefixCache:
    """A cache of every prefix of a request, in steps; a request reads the longest cached prefix. This is the best case:
    real servers sometimes miss, because requests are spread over several machines.

    Args:
        lifetime: Seconds for which a prefix is kept after its last use.
        minimum: Tokens of the shortest prefix that is cached.
        step: Cached prefixes grow by this number of tokens.
    """

    def __init__(self, lifetime: float = 10 * MINUTE, minimum: int = 1024, step: int = 128) -> None:
        self._lifetime, self._minimum, self._step = lifetime, minimum, step
        self._expires: dict[bytes, float] = {}
        self._prune_above = _PRUNE_ABOVE

    def use(self, tokens: Sequence[int], at: float, reply: Sequence[int] = ()) -> CacheUse:
        """Return the cache use of a request, and store its prefixes.

        Args:
            tokens: The ids of the tokens of the prompt.
            at: When the request started, in seconds.
            reply: The ids of the tokens of the answer, which the provider caches too.
        """
        read, hit = 0, True
        for length, digest in self._digest_steps([*tokens, *reply]):
            hit = hit and length <= len(tokens) and self._expires.get(digest, 0.0) > at
            read = length if hit else read
            self._expires[digest] = at + self._lifetime
        if len(self._expires) > self._prune_above:
            self._expires = {digest: expires for digest, expires in self._expires.items() if expires > at}
            self._prune_above = max(_PRUNE_ABOVE, 2 * len(self._expires))
        return CacheUse(len(tokens) - read, read)

    def _digest_steps(self, tokens: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        digest, done = hashlib.blake2b(digest_size=16), 0
        for length in range(self._minimum, len(tokens) + 1, self._step):
            digest.update(array("q", tokens[done:length]).tobytes())
            done = length
            yield length, digest.copy().digest()
