"""A recursive language model: the history is no prompt but a place that the model looks into through tools.

It searches for words, reads ranges of turns, and hands a range with a question of its own to another call of itself,
which has the same tools on that range. Nothing is written: all the cost is in the questions.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.chat_model import DEFAULT_MODEL, ChatModel
from context_bench.memory.systems.turn_store import TurnStore, check_count, cut_ranking
from context_bench.memory.systems.word_search import WordIndex

__all__ = ["RecursiveMemory"]

_SYSTEM = """You answer a question about a long history of conversations that you cannot see. It has {size} turns,
numbered from {first} to {last}, in the order of time. Look into it with the tools: search for words, read turns, or let
a helper read many turns for you. Then answer in a short phrase, or say that the history does not tell. Later turns
outdate earlier ones."""

_NUMBER = {"type": "integer"}


def _describe_tool(name: str, description: str, **parameters: Mapping[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": parameters, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


_SEARCH = _describe_tool("search", "Find the turns that share words with a text, best first.", text={"type": "string"})
_READ = _describe_tool("read", "Read turns, at most 50 at a time.", first=_NUMBER, last=_NUMBER)
_ASK = _describe_tool(
    "ask",
    "Let a helper with the same tools answer a question about a range of turns.",
    first=_NUMBER,
    last=_NUMBER,
    question={"type": "string"},
)


class _Look:
    """One user's history, and what of it was looked at for a question."""

    def __init__(self) -> None:
        self.store, self.index = TurnStore(), WordIndex()
        self.seen: dict[int, None] = {}  # as an ordered set

    def show(self, place: int) -> str:
        self.seen.pop(place, None)
        self.seen[place] = None
        found = self.store.read(place)
        date = f" [{found['timestamp']}]" if "timestamp" in found else ""
        return f"{place + 1}.{date} {found['text']}"


class RecursiveMemory:
    """Answers by letting a model query the history through tools.

    Args:
        base_url: The server of the model, which must support tools.
        model: The model.
        api_key: Its key.
        max_steps: The most requests for one question, those of helpers apart.
        max_depth: How deep helpers may call helpers; 0 for none at all.
        hits: How many turns a search shows.
    """

    is_control = False
    takes_dates = True

    def __init__(
        self,
        base_url: str,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        max_steps: int = 8,
        max_depth: int = 1,
        hits: int = 10,
    ) -> None:
        self.name = "rlm"
        self.max_steps, self.hits = check_count(max_steps, "max_steps"), check_count(hits, "hits")
        self.max_depth = max_depth
        self._model = ChatModel(base_url, model, api_key)
        self._users: dict[str, _Look] = defaultdict(_Look)

    def reset(self) -> None:
        """Forget everything."""
        self._users.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        """Keep the turns; the model is not asked."""
        look = self._users[user]
        look.index.add([look.store.add(turn) for turn in turns])

    def query(self, question: str, user: str = "") -> str:
        """Let the model look into the history, and return its answer."""
        look = self._users[user]
        look.seen.clear()
        return self._answer(question, look, range(len(look.store)), self.max_depth)

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the turns that the model looked at while it answered, the last one first."""
        self.query(question, user)
        look = self._users[user]
        ranking = [look.store.read(place, 1 / rank) for rank, place in enumerate(reversed(look.seen), 1)]
        return cut_ranking(ranking, k, budget_tokens)

    def memories(self) -> list[str]:
        """List everything that is kept, of all users."""
        return [text for look in self._users.values() for text in look.store.list_texts()]

    def _answer(self, question: str, look: _Look, span: range, depth: int) -> str:
        """Go through requests until the model answers; the last one has no tools, so that it must."""
        opening = _SYSTEM.format(size=len(span), first=span.start + 1, last=span.stop)
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": opening},
            {"role": "user", "content": question},
        ]
        tools = [_SEARCH, _READ, *([_ASK] if depth > 0 else [])]
        for step in range(self.max_steps):
            reply = self._model.ask(messages, tools if step < self.max_steps - 1 else None)
            if not reply.tool_calls:
                return reply.text
            messages.append({"role": "assistant", "content": reply.text, "tool_calls": reply.tool_calls})
            for call in reply.tool_calls:
                result = self._run_tool(call, look, span, depth)
                messages.append({"role": "tool", "tool_call_id": str(call.get("id")), "content": result})
        return reply.text

    def _run_tool(self, call: Mapping[str, Any], look: _Look, span: range, depth: int) -> str:
        """Do what the model asks for; a mistake of it is told to it, and is no failure of the run."""
        try:
            function = call["function"]
            arguments = json.loads(function["arguments"] or "{}")
            if function["name"] == "search":
                ranked = (place for place, _ in look.index.rank(str(arguments["text"])) if place in span)
                return "\n".join(map(look.show, islice(ranked, self.hits))) or "nothing found"
            part = range(max(span.start, int(arguments["first"]) - 1), min(span.stop, int(arguments["last"])))
            if function["name"] == "read":
                return "\n".join(map(look.show, part[:50])) or "no such turns"
            if function["name"] == "ask" and depth > 0:
                return self._answer(str(arguments["question"]), look, part, depth - 1)
            return f"there is no tool {function['name']!r}"
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return f"this call cannot be read: {type(error).__name__}: {error}"
