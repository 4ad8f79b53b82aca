"""The reader that all memory systems share, so that memories are compared and not prompts; and the text that it gets.

What a memory found is rendered within a budget, in the order of time, with dates. Things are taken in the order in
which the memory ranked them until the budget is full; the last one is cut where it does not fit whole. Then they are
put in the order of the conversation. Dates and speakers count against the budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from context_bench.memory.conversations import Retrieved, Turn, write_date
from context_bench.systems.prompts import build_messages
from context_bench.tap.offline_models import extract_answer
from context_bench.tap.server import Tap
from context_bench.traffic.row_facts import count_request
from context_bench.traits import find_finish, find_model, find_prepare, system_traits
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer


class ExtractReader:
    """Answers with the passage that shares the rarest words with the question: no model, no key, no network."""

    name = "extract"
    fingerprint = "extract/2"

    async def aprocess(self, example: Example) -> Example:
        return {"response": extract_answer({"messages": build_messages(example)}), "metadata": {}}


class SharedReader:
    """One reader for all arms of a run: opened with the first of them, closed with the last.

    Args:
        reader: A system with `aprocess`, such as an OpenAIProxy.
        tap: Where it is asked, for a script or a local model that answers behind a tap.
        known_as: What identifies it where its address does not.
        is_script: No model answers behind the tap.

    Attributes:
        is_script: No model reads: whether it refuses an answer, or obeys an order, says nothing of the memory.
        asks_model: A model is named in its requests, and has a price.
    """

    def __init__(
        self, reader: Any, tap: Tap | None = None, known_as: str | None = None, *, is_script: bool = False
    ) -> None:
        self._reader, self._tap, self._users = reader, tap, 0
        self.fingerprint: str | None = known_as or reader.fingerprint
        self.asks_model = not isinstance(reader, ExtractReader)
        self.is_script = is_script or not self.asks_model
        self.model = find_model(reader)
        self.stop_reason = system_traits(reader).stop_reason

    @property
    def label(self) -> str:
        """The reader in a word."""
        if self.is_script:
            return "a script" if self.asks_model else "extract"
        return self.model or "a reader"

    async def prepare(self) -> None:
        self._users += 1
        if self._users > 1:
            return
        if self._tap is not None:
            await self._tap.start()
        prepare = find_prepare(self._reader)
        if prepare is not None:
            await prepare()

    async def finish(self) -> None:
        self._users -= 1
        if self._users > 0:
            return
        finish = find_finish(self._reader)
        made = finish() if finish is not None else None
        if made is not None:
            await made
        if self._tap is not None:
            await self._tap.stop()

    async def answer(self, example: Example) -> Example:
        """Answer a question from its context."""
        asked: Example = {key: value for key, value in example.items() if key != "memory"}
        result: Example = await self._reader.aprocess(asked)
        return result

    def count(self, example: Example, count: Tokenizer) -> int:
        """Count the tokens that it is sent for an example."""
        make_body = system_traits(self._reader).request_body
        body = None if make_body is None else make_body(example)
        return count_request(body or {"messages": build_messages(example)}, count)


Placed = tuple[int, Turn]
"""A turn, and which of the conversation it is."""

_UNPLACED = 1 << 60


def index_turns(turns: Sequence[Turn]) -> dict[str, Placed]:
    """Return each turn and its place by its id."""
    return {str(turn.get("id")): (place, turn) for place, turn in enumerate(turns)}


def render_retrieved(
    found: Iterable[Retrieved], turns: Mapping[str, Placed], budget: int | None, count: Tokenizer
) -> tuple[str, int]:
    """Render what was found for a question.

    Args:
        found: The best first.
        turns: Those of the conversation, as `index_turns` gives them.
        budget: The most tokens of the text; None for all.
        count: Counts them.

    Returns:
        The text, and how many of the first things are in it as a whole.
    """
    lines: list[tuple[int, int, str]] = []
    used = whole = 0
    for rank, item in enumerate(found):
        place, line = _write_line(item, turns)
        size = 0 if budget is None else _count_line(line, count)
        if budget is not None and used + size > budget:
            cut = _cut(line, budget - used, count)
            if cut:
                lines.append((place, rank, cut))
            break
        used += size
        whole += 1
        lines.append((place, rank, line))
    text = "\n".join(line for _, _, line in sorted(lines))
    return text if budget is None else _cut(text, budget, count), whole


@lru_cache(maxsize=1 << 16)
def _count_line(line: str, count: Tokenizer) -> int:
    """Count a line with its end; the same lines come back for many questions and budgets."""
    return count(f"{line}\n")


def render_history(turns: Sequence[Turn]) -> str:
    """Render a whole conversation as a reader without a memory would get it."""
    return "\n".join(_put_date(_write_turn(turn), turn) for turn in turns)


def _write_line(item: Retrieved, turns: Mapping[str, Placed]) -> tuple[int, str]:
    placed = [turns[str(name)] for name in item.get("ids") or () if str(name) in turns]
    if not placed:
        return _UNPLACED, item["text"]
    place, turn = min(placed, key=lambda each: each[0])
    return place, _put_date(item["text"], turn)


def _put_date(text: str, turn: Turn) -> str:
    date = write_date(turn.get("timestamp"))
    return text if not date or date in text else f"[{date}] {text}"


def _write_turn(turn: Turn) -> str:
    speaker = turn.get("speaker") or turn.get("role")
    return f"{speaker}: {turn.get('content', '')}" if speaker else str(turn.get("content", ""))


def _cut(text: str, budget: int, count: Tokenizer) -> str:
    """Return the beginning of a text that has at most so many tokens, to the last whole word."""
    if budget <= 0:
        return ""
    if count(text) <= budget:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low].rsplit(None, 1)[0] if " " in text[:low].strip() else text[:low]
