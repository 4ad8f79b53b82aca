"""`synthetic-memory`: generated histories of any length, with exact gold for every probe.

Two users talk to an assistant in dated sessions. Small talk surrounds facts, updates, contradictions, deletions,
events, planted instructions, and another user's facts about people of the same names. The same seed gives the same
bytes everywhere; a longer history has the same questions and more small talk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from context_bench.datasets.synthetic.building import Draw, phrases
from context_bench.datasets.synthetic.prose import Prose
from context_bench.errors import UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets import choose_types
from context_bench.memory.datasets.plants import OWNER, PLANTS, STRANGER, Garden, Layout, PlantedMention
from context_bench.utils.tokens import Tokenizer, get_tokenizer

TYPES = (
    *("single_hop", "multi_hop", "aggregation", "knowledge_update", "as_of", "contradiction", "temporal"),
    *("forget", "forget_neighbour", "leakage", "abstention", "instruction", "secret"),
)

MIN_TOKENS, MAX_TOKENS = 4_000, 10_000_000
SESSION_TOKENS = 2_000  # approximate tokens of a session
MIN_SESSIONS = 12
_FIRST_DAY = date(2024, 3, 4)
_SPEAKERS = {OWNER: "Nora", STRANGER: "Tomas"}
_OPENINGS = ("Something else:", "I was thinking about this:", "Here is what I read:", "A little story:", "Imagine:")
_REPLIES = phrases(
    "Thank you for telling me.; That is good to know.; I see.; Understood.; How interesting.; All right."
)


def load(
    length: int = 16_000,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
    data_dir: object = None,
) -> SyntheticMemory:
    """Seeded histories of any length, with exact gold for every probe."""
    if isinstance(length, bool) or not isinstance(length, int) or not MIN_TOKENS <= length <= MAX_TOKENS:
        raise UsageError(f"length must be an integer from {MIN_TOKENS} to {MAX_TOKENS} (got {length!r})")
    return SyntheticMemory(length, 4 if n is None else n, seed, choose_types(types, TYPES, "synthetic-memory"))


@dataclass(frozen=True)
class SyntheticMemory:
    """Histories generated one at a time; can be iterated any number of times."""

    length: int
    n: int
    seed: int
    types: Collection[str]

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Conversation]:
        for index in range(self.n):
            yield make_conversation(self.length, self.seed, index, self.types)


def make_conversation(length: int, seed: int, index: int, types: Collection[str] = TYPES) -> Conversation:
    """Make one history: plant, lay out, fill up, ask."""
    draw = Draw("synthetic-memory", seed, index)  # without the length, so that all lengths have the same questions
    count = max(MIN_SESSIONS, length // SESSION_TOKENS)
    garden = Garden(draw, {OWNER: count - count // 3, STRANGER: count // 3})
    for plant, times in PLANTS:
        for number in range(times):
            plant(garden, number)
    layout = Layout()
    turns = _lay_out(garden, layout, length, count, Draw("synthetic-memory", seed, index, "filler"))
    questions: list[Question] = []
    for number, probe in enumerate(garden.probes):
        question = probe.finish(layout)
        question["id"] = f"q{number:03d}"
        questions.append(question)
    return Conversation(
        id=f"synthetic-{seed}-{index}",
        turns=turns,
        questions=[question for question in questions if question["type"] in types],
        meta={"users": [OWNER, STRANGER], "today": layout.today.isoformat(), "length": length, "seed": seed},
    )


def _lay_out(garden: Garden, layout: Layout, length: int, count: int, draw: Draw) -> list[Turn]:
    waiting: dict[tuple[str, int], list[tuple[int, PlantedMention]]] = defaultdict(list)
    for number, mention in enumerate(garden.mentions):
        waiting[mention.user, mention.session].append((number, mention))
    filler = _Filler(draw)
    turns: list[Turn] = []
    tokens, day, seen = 0, _FIRST_DAY, {OWNER: 0, STRANGER: 0}
    for index in range(count):
        user = STRANGER if index % 3 == 2 else OWNER
        day += timedelta(days=draw.between(2, 5))
        said = waiting[user, seen[user]]
        seen[user] += 1
        session = _Session(f"s{index + 1}", user, day)
        room = length * (index + 1) / count - tokens
        tokens += session.fill(said, room, filler, layout)
        turns += session.turns
    layout.today = day + timedelta(days=draw.between(2, 30))
    return turns


class _Filler:
    """Small talk without digits."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self._prose = Prose(draw)

    def write_user(self) -> str:
        self._prose.turn()
        sentences = [self._prose.sentence() for _ in range(self.draw.between(1, 3))]
        return " ".join((self.draw.pick(_OPENINGS), *sentences))

    def write_reply(self) -> str:
        return f"{self.draw.pick(_REPLIES)} {self._prose.sentence()}"


class _Session:
    """One session under construction: pairs of turns, a minute apart."""

    def __init__(self, name: str, user: str, day: date) -> None:
        self.name, self.user, self.day = name, user, day
        self.turns: list[Turn] = []
        self._start = datetime(day.year, day.month, day.day, 9)
        self._count: Tokenizer = get_tokenizer("cl100k_base")

    def fill(self, said: list[tuple[int, PlantedMention]], room: float, filler: _Filler, layout: Layout) -> int:
        """Write the mentions, spread over small talk of `room` tokens; return the number of tokens written."""
        tokens = 0
        for place, (number, mention) in enumerate(said):
            while tokens < room * (place + 1) / (len(said) + 1):
                tokens += self._add_pair(filler.write_user(), filler.write_reply())
            layout.ids[number] = f"{self.name}:{len(self.turns) + 1}"
            layout.sessions[number], layout.dates[number] = self.name, self.day
            tokens += self._add_pair(mention.text, filler.draw.pick(_REPLIES))
            if mention.forget:
                self.turns[-2]["forget"] = {"what": mention.forget}
        while tokens < room:
            tokens += self._add_pair(filler.write_user(), filler.write_reply())
        return tokens

    def _add_pair(self, text: str, reply: str) -> int:
        self._add("user", _SPEAKERS[self.user], text)
        self._add("assistant", "Assistant", reply)
        return self._count(text) + self._count(reply)

    def _add(self, role: str, speaker: str, content: str) -> None:
        number = len(self.turns) + 1
        self.turns.append(
            Turn(
                id=f"{self.name}:{number}",
                role=role,
                speaker=speaker,
                content=content,
                timestamp=(self._start + timedelta(seconds=30 * number)).isoformat(),
                session=self.name,
                user=self.user,
            )
        )
