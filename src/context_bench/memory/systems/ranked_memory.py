"""A memory that ranks turns: one index and one store of turns for each user; subclasses bring the index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.turn_store import TurnStore, cut_ranking, join_texts

__all__ = ["RankedIndex", "RankedMemory"]


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
        """Forget everything."""
        self._users.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        """Index the turns."""
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
        """List everything that is kept, of all users."""
        return [text for store, _ in self._users.values() for text in store.list_texts()]

    @property
    def index_bytes(self) -> int:
        """The bytes of the indexes of all users, without the texts."""
        return sum(index.nbytes for _, index in self._users.values())

    def _open(self, user: str) -> tuple[TurnStore, RankedIndex]:
        if user not in self._users:
            self._users[user] = (TurnStore(), self._make_index())
        return self._users[user]
