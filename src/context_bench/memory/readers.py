"""The reader that all memory systems share, so that memories are compared and not prompts."""

from __future__ import annotations

from typing import Any

from context_bench.systems.prompts import build_messages
from context_bench.tap.extractive_reader import extract_answer
from context_bench.tap.server import Tap
from context_bench.traffic.row_facts import count_request
from context_bench.traits import find_finish, find_model, find_prepare, system_traits
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer

__all__ = ["ExtractReader", "SharedReader"]


class ExtractReader:
    """Answers with the passage that shares the rarest words with the question: no model, no key, no network."""

    name = "extract"
    fingerprint = "extract/2"

    async def aprocess(self, example: Example) -> Example:
        """Answer from the context of an example."""
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
        """Open it."""
        self._users += 1
        if self._users > 1:
            return
        if self._tap is not None:
            await self._tap.start()
        prepare = find_prepare(self._reader)
        if prepare is not None:
            await prepare()

    async def finish(self) -> None:
        """Close it after the last arm."""
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
