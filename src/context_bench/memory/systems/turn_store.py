"""The turns that a memory was given, apart for each user, and systems that do not search in them.

`naive`, `oracle` and `closed-book` are controls: they say what a reader can do with everything, with exactly what is
needed, and with nothing at all. They have no budget and are not ranked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.errors import UsageError
from context_bench.memory.conversations import Retrieved
from context_bench.utils.tokens import get_tokenizer

DEFAULT_K = 10  # memories that are returned where neither a number nor a budget is asked for


def write_turn(turn: Mapping[str, Any]) -> str:
    """Write a turn as `Speaker: content`; the role stands for a speaker without a name."""
    speaker = turn.get("speaker") or str(turn.get("role") or "").capitalize()
    content = str(turn.get("content") or "")
    return f"{speaker}: {content}" if speaker else content


def check_count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be an integer of at least 1 (got {value!r})")
    return value


class TurnStore:
    """The written turns of one user, in the order of their arrival, with only the fields that a result needs."""

    def __init__(self) -> None:
        self._items: list[tuple[str, str | None, str | None, str | None]] = []

    def __len__(self) -> int:
        return len(self._items)

    def add(self, turn: Mapping[str, Any]) -> str:
        text = write_turn(turn)
        self._items.append((text, _read(turn, "id"), _read(turn, "timestamp"), _read(turn, "session")))
        return text

    def read(self, place: int, score: float | None = None) -> Retrieved:
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
        wanted = set(ids)
        return [place for place, item in enumerate(self._items) if item[1] in wanted]

    def list_texts(self) -> list[str]:
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
    """Returns the last turns, newest first: what a chat window with a limit knows."""

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
        store = self._stores[user]
        return [store.read(place) for place in store.find(self._evidence)]


class ClosedBook(Naive):
    """Remembers nothing: what the reader knows by itself, or guesses."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "closed-book"

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        """Keep nothing."""
