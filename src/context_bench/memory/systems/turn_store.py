"""A store of turns for each user, and systems that do not search it.

`naive`, `oracle` and `closed-book` are controls: they show a reader's scores with the whole history, with only the
evidence, and with nothing. Controls have no budget and are not ranked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.errors import UsageError
from context_bench.memory.conversations import Retrieved
from context_bench.utils.tokens import get_tokenizer

DEFAULT_K = 10  # items to return if neither a number nor a budget is given


def write_turn(turn: Mapping[str, Any]) -> str:
    """Write a turn as `Speaker: content`; a speaker without a name is shown by role."""
    speaker = turn.get("speaker") or str(turn.get("role") or "").capitalize()
    content = str(turn.get("content") or "")
    return f"{speaker}: {content}" if speaker else content


def check_count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} must be an integer of at least 1 (got {value!r})")
    return value


class TurnStore:
    """The ingested turns of one user in order, with only the fields that a result needs."""

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
    """Cut a ranking to `k` items and to the budget.

    Stop at the first item that does not fit: the memory would not have chosen a shorter item further down.
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
    """Join the retrieved texts, best first, to the answer of a system without a model."""
    return "\n".join(item["text"] for item in found)


class Naive:
    """Returns the whole history of a user: the full context as the baseline."""

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
        """Return all turns in order, without scores, since this is not a ranking."""
        store = self._stores[user]
        return [store.read(place) for place in range(len(store))]

    def query(self, question: str, user: str = "") -> str:
        return join_texts(self.retrieve(question, user=user))

    def memories(self) -> list[str]:
        return [text for store in self._stores.values() for text in store.list_texts()]


class Last(Naive):
    """Returns the last turns, newest first, like a chat window with a limit."""

    is_control = False

    def __init__(self, n: int = 20) -> None:
        super().__init__()
        self.n = check_count(n, "n")
        self.name = f"last:n={n}"

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the last `n` turns of the user, or fewer if the requested number or the budget is smaller."""
        store = self._stores[user]
        newest = range(len(store) - 1, max(-1, len(store) - 1 - self.n), -1)
        ranking = (store.read(place, 1 / (rank + 1)) for rank, place in enumerate(newest))
        return cut_ranking(ranking, min(k or self.n, self.n), budget_tokens)


class Oracle(Naive):
    """Returns only the evidence of the question; `point_to` sets the ids of its turns."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "oracle"
        self._evidence: tuple[str, ...] = ()

    def reset(self) -> None:
        super().reset()
        self._evidence = ()

    def point_to(self, evidence_ids: Iterable[str]) -> None:
        """Set the ids of the turns that answer the next question."""
        self._evidence = tuple(map(str, evidence_ids))

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        store = self._stores[user]
        return [store.read(place) for place in store.find(self._evidence)]


class ClosedBook(Naive):
    """Remembers nothing, to show how much the reader knows or guesses by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "closed-book"

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        """Store nothing."""
