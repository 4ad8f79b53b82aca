"""A rolling summary: after each batch of turns a model rewrites the summary of all that was said so far.

The simplest memory that a model writes. It costs one call for each batch, or several where a batch is long, and
forgets what the model leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.chat_model import DEFAULT_MODEL, ChatModel
from context_bench.memory.systems.turn_store import check_count, cut_ranking, write_turn
from context_bench.utils.tokens import get_tokenizer

__all__ = ["SummaryMemory"]

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
    """Keeps one text for each user, written by a model.

    Args:
        base_url: The server of the model.
        model: The model that writes, and that answers `query`.
        api_key: Its key.
        words: The longest summary that the model is asked for.
        batch_tokens: The most tokens of new messages in one request.
    """

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
        """Forget everything."""
        self._summaries.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        """Let the model work the turns into the summary."""
        for batch in self._cut_batches(turns):
            summary = self._summaries.get(user) or _EMPTY
            prompt = _UPDATE.format(words=self.words, summary=summary, turns=batch)
            self._summaries[user] = self._model.ask([{"role": "user", "content": prompt}]).text.strip()

    def _cut_batches(self, turns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Join dated turns to texts that fit into a request."""
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
        """Return the lines of the summary that fit; they stand for no turns in particular."""
        lines = [line for line in self._summaries.get(user, "").splitlines() if line.strip()]
        return cut_ranking((Retrieved(text=line) for line in lines), k or len(lines), budget_tokens)

    def query(self, question: str, user: str = "") -> str:
        """Let the model answer from the summary."""
        summary = self._summaries.get(user) or _EMPTY
        prompt = _ANSWER.format(summary=summary, question=question)
        return self._model.ask([{"role": "user", "content": prompt}]).text

    def memories(self) -> list[str]:
        """List the summaries of all users."""
        return list(self._summaries.values())
