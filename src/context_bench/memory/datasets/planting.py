"""The parts of a synthetic history: sentences that are planted in sessions, and questions that know where they went.

A question is written after the history is laid out, because its text and its gold may name dates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date

from context_bench.datasets.synthetic.draw import Draw
from context_bench.datasets.synthetic.names import THINGS, Names
from context_bench.memory.conversations import Question

__all__ = ["OWNER", "STRANGER", "Garden", "Gold", "Layout", "Mention", "Probe"]

OWNER, STRANGER = "user-a", "user-b"
"""The user whose memory is asked, and another one who must not be in it."""


@dataclass
class Mention:
    """One sentence of a user, and the session of that user in which it is said."""

    text: str
    session: int
    user: str = OWNER
    forget: str | None = None  # what it asks to forget


@dataclass
class Layout:
    """Where each mention went."""

    ids: dict[int, str] = field(default_factory=dict)
    sessions: dict[int, str] = field(default_factory=dict)
    dates: dict[int, date] = field(default_factory=dict)
    today: date = date(2000, 1, 1)


Gold = str | list[str]
"""One accepted answer; a list is an answer in parts, all of which must be given."""

Dated = Callable[[Layout], tuple[str, list[Gold]]]
"""Writes a question and its accepted answers once the dates are known."""


@dataclass
class Probe:
    """A question in the making: its gold, and the numbers of the sentences that answer it."""

    write: Dated
    kind: str
    said: tuple[int, ...]
    question_type: str
    present: tuple[str, ...] | None
    absent: tuple[str, ...]
    pair: str | None

    def finish(self, layout: Layout) -> Question:
        """Write the question with its gold."""
        text, answers = self.write(layout)
        first = answers[:1] if answers and isinstance(answers[0], str) else []
        present = first if self.present is None else list(self.present)
        record = Question(
            question=text,
            type=self.question_type,
            evidence_ids=[layout.ids[number] for number in self.said],
            evidence_sessions=list(dict.fromkeys(layout.sessions[number] for number in self.said)),
            unanswerable=not answers,
            user=OWNER,
            date=layout.today.isoformat(),
            probe={"kind": self.kind, "present": present, "absent": list(self.absent)},
        )
        if answers:
            first_gold = answers[0]
            record["answer"] = first_gold if isinstance(first_gold, str) else ", ".join(first_gold)
            record["answers"] = answers
        if self.pair:
            record["pair"] = self.pair
        return record


class Garden:
    """Collects what is planted in one conversation.

    Args:
        draw: Makes the choices.
        sessions: How many sessions each user has.
    """

    def __init__(self, draw: Draw, sessions: dict[str, int]) -> None:
        self.draw = draw
        self.sessions = sessions
        self.names = Names(draw)
        self.mentions: list[Mention] = []
        self.probes: list[Probe] = []

    def plant(self, text: str, session: int, user: str = OWNER, forget: str | None = None) -> int:
        """Plant a sentence; returns its number."""
        self.mentions.append(Mention(text, session, user, forget))
        return len(self.mentions) - 1

    def pick_sessions(self, count: int = 1, user: str = OWNER) -> list[int]:
        """Pick different sessions of a user, in their order."""
        return sorted(self.draw.sample(range(self.sessions[user]), count))

    def name_thing(self) -> str:
        """Name a new thing, such as `the cobalt falcon locker`."""
        return f"the {' '.join(self.names.name())} {self.draw.pick(THINGS)}"

    def name_pair(self) -> str:
        """Return two words that name something new, such as `cobalt falcon`."""
        return " ".join(self.names.name())

    def ask(
        self,
        question: str,
        answers: Sequence[Gold],
        kind: str,
        said: Sequence[int] = (),
        *,
        question_type: str | None = None,
        present: Sequence[str] | None = None,
        absent: Sequence[str] = (),
        pair: str | None = None,
    ) -> None:
        """Add a question whose text and answers are known; none can be given where there are no answers.

        Args:
            question: The text.
            answers: The accepted answers.
            kind: The kind of its probe.
            said: The numbers of the sentences that answer it.
            question_type: Its type; the kind by default.
            present: Texts that must be found; the first answer by default.
            absent: Texts that must not be found.
            pair: Joins an answerable and an unanswerable question.
        """
        golds: list[Gold] = list(answers)
        self.ask_dated(
            lambda _: (question, golds),
            kind,
            said,
            question_type=question_type,
            present=present,
            absent=absent,
            pair=pair,
        )

    def ask_dated(
        self,
        write: Dated,
        kind: str,
        said: Sequence[int],
        *,
        question_type: str | None = None,
        present: Sequence[str] | None = None,
        absent: Sequence[str] = (),
        pair: str | None = None,
    ) -> None:
        """Add a question whose text or answers name dates; `ask` describes the rest."""
        needed = None if present is None else tuple(present)
        self.probes.append(Probe(write, kind, tuple(said), question_type or kind, needed, tuple(absent), pair))
