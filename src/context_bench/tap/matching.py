"""Which example does a request at the tap belong to?

Each request of ours carries a mark that nothing else contains: in a header and in a field of the body. A proxy
that drops both is followed by content: a request belongs to the one example under way with which it shares words
that no other example has. What fits no single example stays unmatched: nothing is guessed.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from context_bench.tap.answering import Incoming
from context_bench.text.words import split_words
from context_bench.traffic.call import Call
from context_bench.wire.requests import Prompt, read_prompt

__all__ = ["MARK", "MARK_HEADER", "Matcher", "Ticket"]

MARK_HEADER = "X-Context-Bench-Mark"

MARK = re.compile(rb"cb-[0-9a-f]{24}")

_WORDS = 4
"""Words in a row that make two texts related."""

_LONG, _SAMPLED = 400, 8
"""Of a text with so many words one phrase in so many is taken, the same ones in every text."""

_REMEMBERED = 16
"""Examples that are over and whose calls may still come."""


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
    def phrases(self) -> set[str]:
        """What its content is recognised by."""
        return phrases(self.prompt.texts() if self.prompt else ())


class Matcher:
    """Hands each call at a tap to the request of ours that it belongs to; the rest is in `unmatched`.

    Those of the rest that came too late for any request under way are also in `late`: no row knows of them.
    """

    def __init__(self) -> None:
        self._open: dict[str, Ticket] = {}
        self._closed: deque[Ticket] = deque(maxlen=_REMEMBERED)
        self.unmatched: list[Call] = []
        self.late: list[Call] = []
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
        self.unmatched.append(call)
        for ticket in candidates:
            ticket.unmatched.append(call)
        if all(ticket.recorded for ticket in candidates):
            self.late.append(call)

    def _find_marked(self, marks: set[bytes]) -> list[Ticket]:
        return [ticket for ticket in self._known() if ticket.mark.encode() in marks]

    def _find_by_content(self, request: Incoming) -> list[Ticket]:
        prompt = read_prompt(request.body)
        found = self._by_content(phrases(prompt.texts())) if prompt else []
        # What nobody recognises may be anybody's, and is nobody's for sure.
        return found or [*self._open.values(), Ticket(None, recorded=True)]

    def _by_content(self, heard: set[str]) -> list[Ticket]:
        """Those who have words of it that nobody else has; those who are over are rivals, as a call may come late."""
        shared = [(ticket, found) for ticket in self._known() if (found := heard & ticket.phrases)]
        owners = Counter(phrase for _, found in shared for phrase in found)
        own = [ticket for ticket, found in shared if any(owners[phrase] == 1 for phrase in found)]
        # Where an example is repeated nobody has words of his own: the text must then be mostly his.
        return own or [ticket for ticket, found in shared if ticket.mark in self._open and 2 * len(found) >= len(heard)]

    def _known(self) -> list[Ticket]:
        return [*self._open.values(), *self._closed]


def _find_marks(request: Incoming) -> set[bytes]:
    """The marks in a request's header, or else in its body."""
    return set(MARK.findall(request.headers.get(MARK_HEADER.lower(), "").encode())) or set(MARK.findall(request.body))


def phrases(texts: Sequence[str]) -> set[str]:
    """Every few words in a row of the texts; a text with fewer is one phrase, and of a long one some are enough."""
    found: set[str] = set()
    for text in texts:
        words = split_words(text)
        if 0 < len(words) < _WORDS:
            found.add(" ".join(words))
        rows = (" ".join(words[place : place + _WORDS]) for place in range(len(words) - _WORDS + 1))
        found.update(rows if len(words) < _LONG else (row for row in rows if hash(row) % _SAMPLED == 0))
    return found
