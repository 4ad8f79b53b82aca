"""Memories that use a model: a rolling summary, and a recursive language model.

The summary is rewritten after each batch of turns. It is the simplest memory that a model writes: it needs one call per
batch, or several for a long batch, and it forgets everything that the model omits.

The recursive model searches the history for words, reads ranges of turns, and passes a range with a question to another
call of itself with the same tools. No memory is written, so all costs arise when questions are asked.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from context_bench.errors import BadOutput
from context_bench.http import Secret
from context_bench.http.loop import run_sync
from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.search import WordIndex
from context_bench.memory.systems.turn_store import TurnStore, check_count, cut_ranking, write_turn
from context_bench.systems.chat import open_connection
from context_bench.utils.tokens import get_tokenizer
from context_bench.wire.form import ModelReply, NotAReply
from context_bench.wire.openai_chat import OPENAI_CHAT, read_chat_completion

DEFAULT_MODEL = "gpt-4o-mini"  # the default model


class ChatModel:
    """A client of a server with OpenAI's chat completions."""

    def __init__(
        self, base_url: str, model: str, api_key: str | Secret | None, *, max_tokens: int = 1024, timeout: float = 120.0
    ) -> None:
        connection = open_connection(
            OPENAI_CHAT, base_url, model, api_key=api_key, timeout=timeout, max_retries=3, retry_base_delay=1.0
        )
        self._endpoint, self._path = connection.endpoint, connection.path
        self.model, self.max_tokens = model, max_tokens

    def ask(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] | None = None
    ) -> ModelReply:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": self.max_tokens,
        }
        if tools:
            body["tools"] = list(tools)
        try:
            return read_chat_completion(run_sync(self._endpoint.post(self._path, body)).document)
        except NotAReply as error:
            raise BadOutput(f"{self._endpoint.place} answered with {error}") from error


_UPDATE = """You keep the memory of an assistant: a summary of all conversations with a user so far. Rewrite it so that
it also holds what is new. Keep names, numbers, dates and preferences exactly. Where something changed, keep the newest
value and say what it was before, with dates. Leave out whatever the user asked to forget. At most {words} words.

Summary so far:
{summary}

New messages:
{turns}

Reply with the new summary alone."""
_ANSWER = """Answer the question from this summary of earlier conversations. Say so if it is not in there.

Summary:
{summary}

Question: {question}"""
_EMPTY = "(nothing yet)"


class SummaryMemory:
    """Keeps one summary for each user, written by a model."""

    is_control = False
    takes_dates = True

    def __init__(
        self,
        base_url: str,
        model: str = DEFAULT_MODEL,
        api_key: str | None = None,
        words: int = 600,
        batch_tokens: int = 6000,
    ) -> None:
        self.name = "summary"
        self.words = check_count(words, "words")
        self.batch_tokens = check_count(batch_tokens, "batch_tokens")
        self._model = ChatModel(base_url, model, api_key, max_tokens=3 * words)
        self._summaries: dict[str, str] = {}

    def reset(self) -> None:
        self._summaries.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        for batch in self._cut_batches(turns):
            summary = self._summaries.get(user) or _EMPTY
            prompt = _UPDATE.format(words=self.words, summary=summary, turns=batch)
            self._summaries[user] = self._model.ask([{"role": "user", "content": prompt}]).text.strip()

    def _cut_batches(self, turns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        count, lines, size = get_tokenizer(), list[str](), 0
        for turn in turns:
            date = f"[{turn['timestamp']}] " if turn.get("timestamp") else ""
            line = date + write_turn(turn)
            cost = count(line)
            if lines and size + cost > self.batch_tokens:
                yield "\n".join(lines)
                lines, size = [], 0
            lines.append(line)
            size += cost
        if lines:
            yield "\n".join(lines)

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the lines of the summary that fit, without turn ids."""
        lines = [line for line in self._summaries.get(user, "").splitlines() if line.strip()]
        return cut_ranking((Retrieved(text=line) for line in lines), k or len(lines), budget_tokens)

    def query(self, question: str, user: str = "") -> str:
        summary = self._summaries.get(user) or _EMPTY
        prompt = _ANSWER.format(summary=summary, question=question)
        return self._model.ask([{"role": "user", "content": prompt}]).text

    def memories(self) -> list[str]:
        return list(self._summaries.values())


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
    """One user's history, and the turns that were read for a question."""

    def __init__(self) -> None:
        self.store, self.index = TurnStore(), WordIndex()
        self.seen: dict[int, None] = {}  # an ordered set

    def show(self, place: int) -> str:
        self.seen.pop(place, None)
        self.seen[place] = None
        found = self.store.read(place)
        date = f" [{found['timestamp']}]" if "timestamp" in found else ""
        return f"{place + 1}.{date} {found['text']}"


class RecursiveMemory:
    """Answers by letting a model query the history through tools.

    `max_steps` limits the requests for one question, not counting those of helpers. `max_depth` limits how deep helpers
    may call helpers.
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
        self._users.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        look = self._users[user]
        look.index.add([look.store.add(turn) for turn in turns])

    def query(self, question: str, user: str = "") -> str:
        look = self._users[user]
        look.seen.clear()
        return self._answer(question, look, range(len(look.store)), self.max_depth)

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        """Return the turns that the model read for its answer, the last-read turn first."""
        self.query(question, user)
        look = self._users[user]
        ranking = [look.store.read(place, 1 / rank) for rank, place in enumerate(reversed(look.seen), 1)]
        return cut_ranking(ranking, k, budget_tokens)

    def memories(self) -> list[str]:
        return [text for look in self._users.values() for text in look.store.list_texts()]

    def _answer(self, question: str, look: _Look, span: range, depth: int) -> str:
        """Send requests until the model answers. To force an answer, the last request offers no tools."""
        opening = _SYSTEM.format(size=len(span), first=span.start + 1, last=span.stop)
        messages: list[dict[str, Any]] = [{"role": "system", "content": opening}, {"role": "user", "content": question}]
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
        """Run a tool call; a mistake of the model is reported back to the model and does not stop the run."""
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
