"""The turns that a memory was given, apart for each user, and a memory that ranks them by an index of its subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from context_bench.errors import UsageError
from context_bench.memory.conversations import Retrieved
from context_bench.utils.tokens import get_tokenizer

DEFAULT_K = 10
"""Memories that are returned where neither a number nor a budget is asked for."""


def write_turn(turn: Mapping[str, Any]) -> str:
    """Write a turn as `Speaker: content`; the role stands for a speaker without a name."""
    speaker = turn.get("speaker") or str(turn.get("role") or "").capitalize()
    content = str(turn.get("content") or "")
    return f"{speaker}: {content}" if speaker else content


def check_count(value: int, name: str) -> int:
    """Return a number of things, which must be a positive integer."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be an integer of at least 1 (got {value!r})")
    return value


class TurnStore:
    """The written turns of one user, in the order of their arrival.

    Only what a result needs is kept: text, id, date and session.
    """

    def __init__(self) -> None:
        self._items: list[tuple[str, str | None, str | None, str | None]] = []

    def __len__(self) -> int:
        return len(self._items)

    def add(self, turn: Mapping[str, Any]) -> str:
        text = write_turn(turn)
        self._items.append((text, _read(turn, "id"), _read(turn, "timestamp"), _read(turn, "session")))
        return text

    def read(self, place: int, score: float | None = None) -> Retrieved:
        """Return the turn at a place as something that was found."""
        text, turn_id, timestamp, session = self._items[place]
        found = Retrieved(text=text, ids=[turn_id] if turn_id is not None else [])
        if score is not None:
            found["score"] = score
        if timestamp is not None:
            found["timestamp"] = timestamp
        if session is not None:
            found["session"] = session
        return found

    def find(self, ids: Iterable[str]) -> list[int]:
        """Find the places of turns, in the order of the history."""
        wanted = set(ids)
        return [place for place, item in enumerate(self._items) if item[1] in wanted]

    def list_texts(self) -> list[str]:
        """List the text of every turn."""
        return [item[0] for item in self._items]


def _read(turn: Mapping[str, Any], field: str) -> str | None:
    value = turn.get(field)
    return None if value is None else str(value)


def cut_ranking(ranking: Iterable[Retrieved], k: int | None, budget_tokens: int | None) -> list[Retrieved]:
    """Take the best of a ranking: at most `k`, and only what fits into the budget.

    The first that does not fit ends it: a worse one that is shorter would not be what the memory thinks best.
    """
    if k is None and budget_tokens is None:
        k = DEFAULT_K
    count = get_tokenizer() if budget_tokens is not None else None
    found: list[Retrieved] = []
    left = budget_tokens or 0
    for item in ranking:
        if k is not None and len(found) >= k:
            break
        if count is not None:
            left -= count(item["text"])
            if left < 0:
                break
        found.append(item)
    return found


def join_texts(found: Sequence[Retrieved]) -> str:
    """Join what was found to the answer of a system that has no model: the texts, best first."""
    return "\n".join(item["text"] for item in found)


class RankedIndex(Protocol):
    """Texts that grow, and can be ranked for a question."""

    @property
    def nbytes(self) -> int:
        """The bytes of the index."""

    def add(self, texts: list[str]) -> None:
        """Add texts, which get the next places."""

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and scores, best first."""


class RankedMemory(ABC):
    """Finds turns by an index. Each turn is indexed by itself, whatever is ingested together."""

    is_control = False
    takes_dates = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._users: dict[str, tuple[TurnStore, RankedIndex]] = {}

    @abstractmethod
    def _make_index(self) -> RankedIndex:
        """Make an empty index."""

    def reset(self) -> None:
        self._users.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        store, index = self._open(user)
        index.add([store.add(turn) for turn in turns])

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the best turns of the user, best first."""
        store, index = self._open(user)
        ranking = (store.read(place, score) for place, score in index.rank(question))
        return cut_ranking(ranking, k, budget_tokens)

    def query(self, question: str, user: str = "") -> str:
        """Return what `retrieve` finds, as one text: there is no model that could answer."""
        return join_texts(self.retrieve(question, user=user))

    def memories(self) -> list[str]:
        return [text for store, _ in self._users.values() for text in store.list_texts()]

    @property
    def index_bytes(self) -> int:
        """The bytes of the indexes of all users, without the texts."""
        return sum(index.nbytes for _, index in self._users.values())

    def _open(self, user: str) -> tuple[TurnStore, RankedIndex]:
        if user not in self._users:
            self._users[user] = (TurnStore(), self._make_index())
        return self._users[user]
