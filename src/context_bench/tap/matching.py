"""Which example does a request at the tap belong to?

Each request of ours carries a mark that nothing else contains: in a header and in a field of the body. A proxy
that drops both is followed by content: a request belongs to the one example under way with which it shares words
that no other example under way has. What fits no single example stays unmatched: nothing is guessed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from context_bench.tap.answering import Incoming
from context_bench.tap.prompt import read_prompt
from context_bench.tap.record import Call
from context_bench.words import split_words

__all__ = ["MARK_HEADER", "Matcher", "Ticket"]

MARK_HEADER = "X-Context-Bench-Mark"

_MARK = re.compile(rb"cb-[0-9a-f]{24}")
_WORDS = 4
"""Words in a row that make two texts related."""


@dataclass(eq=False)
class Ticket:
    """A request of ours that is under way, and the calls at the tap that belong to it."""

    texts: Sequence[str]
    mark: str = field(default_factory=lambda: f"cb-{secrets.token_hex(12)}")
    calls: list[Call] = field(default_factory=list)
    unmatched: int = 0

    @cached_property
    def phrases(self) -> set[str]:
        """What its content is recognised by."""
        return phrases(self.texts)


class Matcher:
    """Hands each call at a tap to the request of ours that it belongs to; the rest is in `unmatched`."""

    def __init__(self) -> None:
        self._open: dict[str, Ticket] = {}
        self.unmatched: list[Call] = []

    def open(self, texts: Sequence[str]) -> Ticket:
        """Begin to look for the calls of a request with these texts."""
        ticket = Ticket(texts)
        self._open[ticket.mark] = ticket
        return ticket

    def close(self, ticket: Ticket) -> None:
        """Whatever comes now is too late to be counted."""
        del self._open[ticket.mark]

    def take(self, call: Call, request: Incoming) -> None:
        """A call has reached the tap."""
        ticket = self._owner(call, request)
        if ticket is not None:
            ticket.calls.append(call)
            return
        self.unmatched.append(call)
        for each in self._open.values():
            each.unmatched += 1

    def _owner(self, call: Call, request: Incoming) -> Ticket | None:
        marks = set(_MARK.findall(request.headers.get(MARK_HEADER.lower(), "").encode()))
        marks = marks or set(_MARK.findall(request.body))
        if marks:
            return self._open.get(marks.pop().decode()) if len(marks) == 1 else None
        prompt = read_prompt(call.body)
        return self._by_content(phrases(prompt.texts())) if prompt else None

    def _by_content(self, heard: set[str]) -> Ticket | None:
        related = [ticket for ticket in self._open.values() if heard & ticket.phrases]
        if len(related) > 1:
            related = [each for each in related if heard & each.phrases - _of_others(each, related)]
        return related[0] if len(related) == 1 else None


def _of_others(ticket: Ticket, tickets: Sequence[Ticket]) -> set[str]:
    return set().union(*(other.phrases for other in tickets if other is not ticket))


def phrases(texts: Sequence[str]) -> set[str]:
    """Every few words in a row of the texts; a text with fewer is one phrase."""
    found: set[str] = set()
    for text in texts:
        words = split_words(text)
        if 0 < len(words) < _WORDS:
            found.add(" ".join(words))
        found.update(" ".join(words[place : place + _WORDS]) for place in range(len(words) - _WORDS + 1))
    return found
