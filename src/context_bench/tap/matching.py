"""Which example does a request at the tap belong to?

Each request of ours carries a mark that nothing else contains: in a header and in a field of the body. A proxy
that drops both is followed by content: a request belongs to the one example under way with which it shares words
that no other example has. What fits no single example stays unmatched: nothing is guessed.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Generic, TypeVar
from zlib import crc32

from context_bench.tap.answering import Incoming
from context_bench.text.words import split_words
from context_bench.traffic.calls import Call
from context_bench.wire.requests import Prompt

__all__ = ["MARK", "MARK_HEADER", "Matcher", "Ticket"]

MARK_HEADER = "X-Context-Bench-Mark"

MARK = re.compile(rb"cb-[0-9a-f]{24}")

T = TypeVar("T")

_WORDS = 4
"""Words in a row that make two texts related."""

_LONG, _SAMPLED = 400, 8
"""Of a text with so many words the phrases that begin with one word in so many are taken, the same in every text."""

_REMEMBERED = 16
"""Examples that are over and whose calls may still come."""

_KEPT = 1_000
"""Calls that fit no request of ours and are kept whole; more are counted."""

_KEPT_CHARACTERS = 64 * 1024 * 1024

Phrase = tuple[str, ...]


@dataclass(eq=False)
class Ticket:
    """An attempt to send a request of ours, and the calls at the tap that belong to it.

    `unmatched` are calls that may be its own and cannot be told. `recorded` says that what is known of it has been put
    down: whatever comes later counts for no row.
    """

    prompt: Prompt | None
    mark: str = field(default_factory=lambda: f"cb-{secrets.token_hex(12)}")
    calls: list[Call] = field(default_factory=list)
    unmatched: list[Call] = field(default_factory=list)
    recorded: bool = False

    @cached_property
    def texts(self) -> set[str]:
        """The texts of the request, by which a call that repeats them is recognised."""
        return _list_texts(self.prompt)

    @cached_property
    def phrases(self) -> set[Phrase]:
        """The phrases of the request, by which a call with changed texts is recognised."""
        return find_phrases(self.prompt.texts() if self.prompt else ())


class _Index(Generic[T]):
    """Maps texts and phrases to the tickets that have them, so that a call is not compared with every ticket."""

    def __init__(self, read: Callable[[Ticket], set[T]]) -> None:
        self._read = read
        self._owners: dict[T, set[Ticket]] = {}
        self._known: set[Ticket] = set()

    def update(self, tickets: Iterable[Ticket]) -> None:
        """Add the tickets that are new, and remove those that are no longer among them."""
        wanted = set(tickets)
        for ticket in self._known - wanted:
            for key in self._read(ticket):
                owners = self._owners[key]
                owners.discard(ticket)
                if not owners:
                    del self._owners[key]
        for ticket in wanted - self._known:
            for key in self._read(ticket):
                self._owners.setdefault(key, set()).add(ticket)
        self._known = wanted

    def find_owners(self, key: T) -> set[Ticket]:
        """Find the tickets that have a key."""
        return self._owners.get(key, _NOBODY)


_NOBODY: set[Ticket] = set()


class Matcher:
    """Hands each call at a tap to the request of ours that it belongs to; the rest is in `unmatched`.

    Those of the rest that came too late for any request under way are also in `late`: no row knows of them. Of both
    the first ones are kept, and all are counted: `unmatched_count`, `late_count`. `late_characters` is the size of
    the bodies of late calls that were not kept.
    """

    def __init__(self) -> None:
        self._open: dict[str, Ticket] = {}
        self._closed: deque[Ticket] = deque(maxlen=_REMEMBERED)
        self._texts: _Index[str] = _Index(lambda ticket: ticket.texts)
        self._phrases: _Index[Phrase] = _Index(lambda ticket: ticket.phrases)
        self.unmatched: list[Call] = []
        self.late: list[Call] = []
        self.unmatched_count = self.late_count = self.late_characters = 0
        self._room = _KEPT_CHARACTERS
        self.seen = 0

    def open(self, prompt: Prompt | None) -> Ticket:
        """Begin to look for the calls of a request."""
        ticket = Ticket(prompt)
        self._open[ticket.mark] = ticket
        return ticket

    def close(self, ticket: Ticket) -> None:
        """End an attempt: a call that comes now is its own only if it carries its mark, and before it is recorded."""
        if self._open.pop(ticket.mark, None) is not None:
            self._closed.append(ticket)

    def take(self, call: Call, request: Incoming) -> None:
        """Take in a call that has reached the tap."""
        self.seen += 1
        marks = _find_marks(request)
        candidates = self._find_marked(marks) if marks else self._find_by_content(request)
        if len(candidates) == 1 and (candidates[0].mark in self._open or (marks and not candidates[0].recorded)):
            candidates[0].calls.append(call)
            return
        for ticket in candidates:
            ticket.unmatched.append(call)
        self._keep(call, late=all(ticket.recorded for ticket in candidates))

    def _keep(self, call: Call, *, late: bool) -> None:
        """Keep a call that fits no request of ours, or count it where enough of them are kept."""
        self.unmatched_count += 1
        self.late_count += late
        if len(self.unmatched) < _KEPT and len(call.body) <= self._room:
            self._room -= len(call.body)
            self.unmatched.append(call)
            if late:
                self.late.append(call)
        elif late:
            self.late_characters += len(call.body) if call.asks_model else 0

    def _find_marked(self, marks: set[bytes]) -> list[Ticket]:
        return [ticket for ticket in self._list_known() if ticket.mark.encode() in marks]

    def _find_by_content(self, request: Incoming) -> list[Ticket]:
        prompt = request.prompt()
        found = (self._find_by_texts(prompt) or self._find_by_phrases(prompt)) if prompt else []
        # What nobody recognises may be anybody's, and is nobody's for sure.
        return found or [*self._open.values(), Ticket(None, recorded=True)]

    def _find_by_texts(self, prompt: Prompt) -> list[Ticket]:
        """Find the one request that has all texts of a call unchanged, and one of them that no other request has."""
        self._texts.update(self._list_known())
        owners = [self._texts.find_owners(text) for text in _list_texts(prompt)]
        if not any(len(each) == 1 for each in owners):
            return []
        common = set.intersection(*owners)
        return list(common) if len(common) == 1 else []

    def _find_by_phrases(self, prompt: Prompt) -> list[Ticket]:
        """Find the requests with phrases of a call that no other request has.

        Finished ones count too, since a call may arrive late. Where an example is repeated no request has phrases of
        its own: then it is those under way that have at least half of the phrases.
        """
        self._phrases.update(self._list_known())
        heard = find_phrases(prompt.texts())
        shared: Counter[Ticket] = Counter()
        own: dict[Ticket, None] = {}
        for phrase in heard:
            owners = self._phrases.find_owners(phrase)
            shared.update(owners)
            if len(owners) == 1:
                own |= dict.fromkeys(owners)
        return list(own) or [
            ticket for ticket, found in shared.items() if ticket.mark in self._open and 2 * found >= len(heard)
        ]

    def _list_known(self) -> list[Ticket]:
        return [*self._open.values(), *self._closed]


def _find_marks(request: Incoming) -> set[bytes]:
    """Find the marks in a request's header, or else in its body."""
    return set(MARK.findall(request.headers.get(MARK_HEADER.lower(), "").encode())) or set(MARK.findall(request.body))


def _list_texts(prompt: Prompt | None) -> set[str]:
    return {text for text in prompt.texts() if text.strip()} if prompt else set()


def find_phrases(texts: Iterable[str]) -> set[Phrase]:
    """Find every few words in a row of the texts; a text with fewer is one phrase, and of a long one some are enough.

    Which ones are taken of a long text depends on their first word alone, so that two texts that share a passage
    share the phrases that are taken of it.
    """
    found: set[Phrase] = set()
    for text in texts:
        words = split_words(text)
        if 0 < len(words) < _WORDS:
            found.add(tuple(words))
        rows = list(zip(*(words[place:] for place in range(_WORDS)))) if len(words) < _LONG else _sample_rows(words)
        found.update(rows)
    return found


def _sample_rows(words: list[str]) -> list[Phrase]:
    """Take the rows that begin with certain words; all of them in a text that has none of these words."""
    taken = {word for word in set(words) if crc32(word.encode("utf-8", "replace")) % _SAMPLED == 0}
    starts = list(compress(range(len(words) - _WORDS + 1), map(taken.__contains__, words)))
    return [tuple(words[start : start + _WORDS]) for start in starts or range(len(words) - _WORDS + 1)]
