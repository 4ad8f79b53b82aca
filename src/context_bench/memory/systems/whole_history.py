"""Systems that do not search: the whole history, its end, its evidence, or nothing.

`naive`, `oracle` and `closed-book` are controls: they say what a reader can do with everything, with exactly what is
needed, and with nothing at all. They have no budget and are not ranked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.turn_store import TurnStore, check_count, cut_ranking, join_texts


class Naive:
    """Returns the whole history of a user: the full context that a memory is held against."""

    is_control = True
    takes_dates = True

    def __init__(self) -> None:
        self.name = "naive"
        self._stores: dict[str, TurnStore] = defaultdict(TurnStore)

    def reset(self) -> None:
        self._stores.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        store = self._stores[user]
        for turn in turns:
            store.add(turn)

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return every turn in its order, without scores: it is not a ranking."""
        store = self._stores[user]
        return [store.read(place) for place in range(len(store))]

    def query(self, question: str, user: str = "") -> str:
        return join_texts(self.retrieve(question, user=user))

    def memories(self) -> list[str]:
        return [text for store in self._stores.values() for text in store.list_texts()]


class Last(Naive):
    """Returns the last turns, newest first: what a chat window with a limit knows.

    Args:
        n: How many turns.
    """

    is_control = False

    def __init__(self, n: int = 20) -> None:
        super().__init__()
        self.n = check_count(n, "n")
        self.name = f"last:n={n}"

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the last `n` turns of the user, or fewer where a number or a budget asks for it."""
        store = self._stores[user]
        newest = range(len(store) - 1, max(-1, len(store) - 1 - self.n), -1)
        ranking = (store.read(place, 1 / (rank + 1)) for rank, place in enumerate(newest))
        return cut_ranking(ranking, min(k or self.n, self.n), budget_tokens)


class Oracle(Naive):
    """Returns the evidence of the question and nothing else; `point_to` tells it which turns that is."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "oracle"
        self._evidence: tuple[str, ...] = ()

    def reset(self) -> None:
        super().reset()
        self._evidence = ()

    def point_to(self, evidence_ids: Iterable[str]) -> None:
        """Take the ids of the turns that answer the next question."""
        self._evidence = tuple(map(str, evidence_ids))

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the evidence in the order of the history."""
        store = self._stores[user]
        return [store.read(place) for place in store.find(self._evidence)]


class ClosedBook(Naive):
    """Remembers nothing: what the reader knows by itself, or guesses."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "closed-book"

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        """Keep nothing."""
