"""Match the calls at the tap to the examples that caused them.

Each of our requests has a unique mark, in a header and in a field of the body. If a proxy drops both marks, calls are
matched by content: a call belongs to the only example in flight with which it shares words that no other example has. A
call that fits no example, or several, stays unmatched: nothing is guessed. Texts may have tens of megabytes, so they
are compared in pieces in a thread, and only small parts are kept in memory.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, compress
from typing import Generic, TypeVar
from zlib import crc32

from context_bench.http.loop import work_beside
from context_bench.tap.answering import Incoming
from context_bench.text.words import split_in_pieces, split_words
from context_bench.traffic.calls import Call
from context_bench.utils.tokens import LONG_TEXT
from context_bench.wire.prompts import Prompt

Key = TypeVar("Key", bound=Hashable)
Owner = TypeVar("Owner", bound=Hashable)

_RELATED_WORDS = 4  # consecutive words that make two texts related

_LONG, _SAMPLED = 400, 8
"""In texts of 400 or more words, only phrases are used that begin with certain words: 1 word in 8, the same in all
texts.
"""

_MAX_KNOWN_WORDS = 200_000

_LONG_TEXT_CHARS = 131_072  # longer texts are processed in pieces


def find_phrases(texts: Iterable[str]) -> set[str]:
    """Return all phrases of a few consecutive words; a shorter text is one phrase, and a long text is sampled.

    Whether a phrase is sampled depends only on its first word. So two texts with a common passage have the same sampled
    phrases from that passage.
    """
    found: set[str] = set()
    for text in texts:
        if len(text) >= _LONG_TEXT_CHARS:
            found |= _find_sampled(partial(split_in_pieces, text))
            continue
        words = split_words(text)
        if 0 < len(words) < _RELATED_WORDS:
            found.add(" ".join(words))
        found |= set(_join_all(words)) if len(words) < _LONG else _find_sampled(partial(iter, (words,)))
    return found


def _find_sampled(split: Callable[[], Iterator[list[str]]]) -> set[str]:
    """Return the sampled phrases of a text, or all of its phrases if none is sampled."""
    found: set[str] = set()
    sample = _Sample()
    for words in _overlap(split()):
        starts = compress(range(len(words) - _RELATED_WORDS + 1), map(sample.__getitem__, words))
        found.update(" ".join(words[start : start + _RELATED_WORDS]) for start in starts)
    if not found:
        for words in _overlap(split()):
            found.update(_join_all(words))
    return found


def _overlap(pieces: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the words of each piece after the last words of the previous piece, so that no phrase is split."""
    rest: list[str] = []
    for piece in pieces:
        words = rest + piece
        yield words
        rest = words[1 - _RELATED_WORDS :]


def _join_all(words: list[str]) -> Iterator[str]:
    return map(" ".join, zip(*(words[place:] for place in range(_RELATED_WORDS))))


class _Sample(dict[str, bool]):
    """Cache that says for each word whether phrases that begin with it are sampled."""

    def __missing__(self, word: str) -> bool:
        if len(self) >= _MAX_KNOWN_WORDS:
            self.clear()
        self[word] = taken = crc32(word.encode("utf-8", "replace")) % _SAMPLED == 0
        return taken


class OwnerIndex(Generic[Owner, Key]):
    """Maps keys to their owners, so that a text need not be compared with all others."""

    def __init__(self, read: Callable[[Owner], Iterable[Key]]) -> None:
        self._read = read
        self._owners: dict[Key, tuple[Owner, ...]] = {}
        self._known: dict[Owner, Iterable[Key]] = {}

    def update(self, owners: Iterable[Owner]) -> None:
        """Add new owners, and remove owners that are not listed."""
        wanted = set(owners)
        for owner in self._known.keys() - wanted:
            self._remove(owner)
        for owner in wanted - self._known.keys():
            self._add(owner)

    def _add(self, owner: Owner) -> None:
        self._known[owner] = keys = self._read(owner)
        alone = (owner,)  # one tuple for all keys: most of a million keys have one owner
        for key in keys:
            others = self._owners.get(key)
            self._owners[key] = alone if others is None else others + alone

    def _remove(self, owner: Owner) -> None:
        for key in self._known.pop(owner):
            others = tuple(other for other in self._owners[key] if other is not owner)
            if others:
                self._owners[key] = others
            else:
                del self._owners[key]

    def find_owners(self, key: Key) -> tuple[Owner, ...]:
        """Return the owners of a key."""
        return self._owners.get(key, ())

    def count_owners(self, keys: Iterable[Key]) -> Counter[tuple[Owner, ...]]:
        """Count the keys by their sets of owners."""
        return Counter(self._owners.get(key, ()) for key in keys)


MARK_HEADER = "X-Context-Bench-Mark"

MARK = re.compile(rb"cb-[0-9a-f]{24}")

_MAX_REMEMBERED = 16  # finished examples whose calls may still arrive

_MAX_REMEMBERED_CHARS = 32 * 1024 * 1024
"""Limit on the characters of finished examples that calls are compared with; marks are recognised for all examples."""

MAX_PATHS = 20  # distinct paths of calls with unreadable prompts

_MAX_KEPT_CALLS = 1_000  # unmatched calls kept whole; further ones are only counted

_MAX_KEPT_CHARS = 64 * 1024 * 1024
"""Limit on the characters of unmatched calls and their replies; calls held for requests in flight have the same limit.
"""


@dataclass(eq=False)
class Ticket:
    """An attempt to send one of our requests, with its calls at the tap.

    `unmatched` are calls that may belong to the attempt. `more_unmatched` counts the unmatched calls that were not kept
    for lack of memory; `more_bytes` is the size of their bodies, if a model may have read them. Calls that arrive after
    the attempt is `recorded` belong to no row.
    """

    prompt: Prompt | None
    digest: bytes = b""
    mark: str = field(default_factory=lambda: f"cb-{secrets.token_hex(12)}")
    calls: list[Call] = field(default_factory=list)
    unmatched: list[Call] = field(default_factory=list)
    more_unmatched: int = 0
    more_bytes: int = 0
    recorded: bool = False

    @cached_property
    def size(self) -> int:
        """The characters of its texts."""
        return sum(map(len, self.prompt.texts())) if self.prompt else 0


class Matcher:
    """Assigns each call at a tap to the request that caused it; all other calls are in `unmatched`.

    Unmatched calls that came too late for any request in flight are also in `late`, and in no row. Both lists keep only
    the first calls, but all calls are counted (`unmatched_count`, `late_count`). `late_bytes` is the size of the bodies
    that a model may have read, in late calls that were not kept. `reached` has the digests of our requests that caused
    at least one call. `uncounted` counts, by path, the calls with unreadable prompts. `probe` is a text that identifies
    our own probe request, which the tap answers itself.
    """

    def __init__(self) -> None:
        self._open: dict[str, Ticket] = {}
        self._closed: deque[Ticket] = deque(maxlen=_MAX_REMEMBERED)
        self._texts: OwnerIndex[Ticket, str] = OwnerIndex(lambda ticket: _list_texts(ticket.prompt))
        self._phrases: OwnerIndex[Ticket, str] = OwnerIndex(
            lambda ticket: find_phrases(ticket.prompt.texts()) if ticket.prompt else set()
        )
        self._thread: Executor | None = None
        self._comparing = 0
        self.unmatched: list[Call] = []
        self.late: list[Call] = []
        self.unmatched_count = self.late_count = self.late_bytes = 0
        self._loose: dict[Call, int] = {}
        self._room = _MAX_KEPT_CHARS
        self._held: dict[Call, int] = {}
        self._held_room = _MAX_KEPT_CHARS
        self.seen = 0
        self.uncounted: Counter[str] = Counter()
        self.reached: set[bytes] = set()
        self.probe = ""

    def open(self, prompt: Prompt | None, digest: bytes = b"") -> Ticket:
        """Start to match calls to a request; equal requests have the same `digest`, which ignores marks."""
        ticket = Ticket(prompt, digest)
        self._open[ticket.mark] = ticket
        return ticket

    def close(self, ticket: Ticket) -> None:
        """End an attempt: later calls belong to it only by mark, and only until it is recorded."""
        if self._open.pop(ticket.mark, None) is not None:
            self._closed.append(ticket)
            for forgotten in list(self._closed)[: -self._count_comparable() or None]:
                forgotten.prompt = None

    def record(self, ticket: Ticket) -> None:
        """Mark an attempt as recorded, and release the calls that were held for it."""
        ticket.recorded = True
        for call in ticket.unmatched:
            holders = self._held.pop(call, 0)
            if holders > 1:
                self._held[call] = holders - 1
            elif holders:
                self._held_room += _weigh(call)

    def take(self, call: Call, request: Incoming) -> Awaitable[None] | None:
        """Match a call that has reached the tap; return an awaitable if long texts must be compared."""
        self.seen += 1
        if self.answers_probe(request):
            return None
        header = request.headers.get(MARK_HEADER.lower(), "").encode()
        if marks := set(MARK.findall(header)) or set(MARK.findall(request.body)):
            owners = [each for each in (*self._open.values(), *self._closed) if each.mark.encode() in marks]
            self._hand_over(call, len(request.body), owners, marked=True)
            return None
        known, under_way = self._list_comparable(), [*self._open.values()]
        if self._comparing or len(request.body) >= LONG_TEXT or any(ticket.size >= LONG_TEXT for ticket in known):
            self._comparing += 1
            return self._compare_beside(call, request, known, under_way)
        self._hand_over(call, len(request.body), self._find_by_content(request, known, under_way))
        return None

    def answers_probe(self, request: Incoming) -> bool:
        """Whether this is our probe, which checks that the proxy's upstream is the tap; no model receives it."""
        return bool(self.probe) and self.probe.encode() in request.body

    async def _compare_beside(
        self, call: Call, request: Incoming, known: Sequence[Ticket], under_way: Sequence[Ticket]
    ) -> None:
        """Compare a call with the requests known on its arrival, in a thread, one call at a time."""
        self._thread = self._thread or ThreadPoolExecutor(1, "context-bench-match")
        try:
            found = await work_beside(self._find_by_content, request, known, under_way, threads=self._thread)
        finally:
            self._comparing -= 1
        self._hand_over(call, len(request.body), found)

    def _hand_over(self, call: Call, size: int, candidates: Sequence[Ticket], *, marked: bool = False) -> None:
        """Assign a call to its request, or keep the call as unmatched."""
        if len(candidates) == 1 and (candidates[0].mark in self._open or (marked and not candidates[0].recorded)):
            candidates[0].calls.append(call)
            if call.asks_model:
                self.reached.add(candidates[0].digest)
            return
        self._loose[call] = size
        waiting = [ticket for ticket in candidates if not ticket.recorded]
        self._keep(call, size, late=not waiting)
        if not call.asks_model:  # an embedding: no model read a prompt
            return
        for ticket in waiting:
            if self._hold(call):
                ticket.unmatched.append(call)
            else:
                ticket.more_unmatched += 1
                ticket.more_bytes += size

    def end(self, call: Call, request: Incoming) -> None:
        """Handle the end of a call: if it is unmatched, its reply counts against the memory limit."""
        if call.asks_model and call.is_answered and request.form is None and request.prompt() is None:
            path = call.path if call.path in self.uncounted or len(self.uncounted) < MAX_PATHS else "other paths"
            self.uncounted[path] += 1
        size = self._loose.pop(call, None)
        if size is None:
            return
        if call not in self.unmatched:
            call.reply = ""  # its possible owners count only the request
            return
        self._room -= len(call.reply)
        if self._room < 0:
            self._drop(call, size)

    def _keep(self, call: Call, size: int, *, late: bool) -> None:
        """Keep an unmatched call; if the limits are reached, only count the call."""
        self.unmatched_count += 1
        self.late_count += late
        if len(self.unmatched) < _MAX_KEPT_CALLS and _weigh(call) <= self._room:
            self._room -= _weigh(call)
            self.unmatched.append(call)
            if late:
                self.late.append(call)
        elif late:
            self.late_bytes += size if call.asks_model else 0

    def _drop(self, call: Call, size: int) -> None:
        """Drop a call whose reply exceeds the memory limit; it is still counted."""
        self._room += _weigh(call) + len(call.reply)
        self.unmatched.remove(call)
        call.reply = ""
        if call in self.late:
            self.late.remove(call)
            self.late_bytes += size if call.asks_model else 0

    def _hold(self, call: Call) -> bool:
        """Hold a call for another request in flight that may have caused it, within the limits."""
        if call not in self._held:
            if len(self._held) >= _MAX_KEPT_CALLS or _weigh(call) > self._held_room:
                return False
            self._held_room -= _weigh(call)
        self._held[call] = self._held.get(call, 0) + 1
        return True

    def _find_by_content(
        self, request: Incoming, known: Sequence[Ticket], under_way: Sequence[Ticket]
    ) -> Sequence[Ticket]:
        prompt = request.prompt()
        found = (
            (self._find_by_texts(prompt, known) or self._find_by_phrases(prompt, known, under_way)) if prompt else []
        )
        # An unrecognised call may belong to any request in flight, or to none.
        return found or [*under_way, Ticket(None, recorded=True)]

    def _find_by_texts(self, prompt: Prompt, known: Sequence[Ticket]) -> list[Ticket]:
        """Find the only request that has all texts of a call unchanged, at least one of which no other request has."""
        self._texts.update(known)
        owners = [self._texts.find_owners(text) for text in _list_texts(prompt)]
        if not any(len(each) == 1 for each in owners):
            return []
        common = set(owners[0]).intersection(*owners)
        return list(common) if len(common) == 1 else []

    def _find_by_phrases(self, prompt: Prompt, known: Sequence[Ticket], under_way: Sequence[Ticket]) -> list[Ticket]:
        """Find the requests that share exclusive phrases with a call.

        Finished requests are included, since a call may arrive late. Repeated examples have no exclusive phrases; for
        these, return the requests in flight that have at least half of the call's phrases.
        """
        self._phrases.update(known)
        heard = find_phrases(prompt.texts())
        counts = self._phrases.count_owners(heard)
        own = [owners[0] for owners in counts if len(owners) == 1]
        if own:
            return own
        shared: Counter[Ticket] = Counter()
        for owners, found in counts.items():
            shared.update(dict.fromkeys(owners, found))
        return [ticket for ticket in under_way if 2 * shared[ticket] >= len(heard) and shared[ticket]]

    def _list_comparable(self) -> list[Ticket]:
        """List the requests to compare with a call without a mark."""
        return [*self._open.values(), *list(self._closed)[len(self._closed) - self._count_comparable() :]]

    def _count_comparable(self) -> int:
        """Count the most recent finished requests whose texts fit into the limit.

        The index of a text's phrases takes more memory than the text.
        """
        sizes = accumulate(ticket.size for ticket in reversed(self._closed))
        return sum(size <= _MAX_REMEMBERED_CHARS for size in sizes)


def _list_texts(prompt: Prompt | None) -> set[str]:
    return {text for text in prompt.texts() if text.strip()} if prompt else set()


def _weigh(call: Call) -> int:
    """Count the characters of a call without its reply."""
    return len(call.body) + sum(len(name) + len(value) for name, value in call.headers.items())
