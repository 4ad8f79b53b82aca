"""The arms of a memory system: each is an ordinary system of a run.

In one arm, the shared reader answers from the retrieved items, within a token budget. Another arm calls the system's
own `query`. The arms of a system share its written conversations. All memory systems have the same reader, so that a
run compares memories, not prompts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from time import perf_counter
from typing import Any

from context_bench.errors import SystemFailure
from context_bench.http.loop import run_sync
from context_bench.memory.conversations import Retrieved, rank_sessions, render_retrieved
from context_bench.memory.host import Host
from context_bench.memory.questions import History
from context_bench.memory.seat import Seat
from context_bench.systems.prompts import build_messages
from context_bench.tap.scripted import extract_answer
from context_bench.tap.server import Tap
from context_bench.traffic.row_facts import count_request
from context_bench.traits import SystemTraits, find_finish, find_model, find_prepare, system_traits
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer

MIN_TURNS = 30  # in shorter histories, returning all turns is no fault

ASSUMED_REPLY = 300  # tokens of a reader's reply, for estimates of cost


class ExtractReader:
    """Answers with the passage that shares the rarest words with the question: no model, no key, no network."""

    name = "extract"
    fingerprint = "extract/2"

    async def aprocess(self, example: Example) -> Example:
        return {"response": extract_answer({"messages": build_messages(example)}), "metadata": {}}


def _describe_found(found: list[Retrieved], history: History, example: Example) -> dict[str, Any]:
    """Count the retrieved items, also as a share of the user's turns; note if a planted instruction ranks first."""
    texts, about = [item["text"] for item in found if item["text"].strip()], example["memory"]
    facts: dict[str, Any] = {"found": len(texts)}
    turns = history.count_turns(about.get("user"))
    if turns >= MIN_TURNS:
        facts["share"] = len(texts) / turns
    if history.orders and (about.get("probe") or {}).get("kind") != "instruction":
        facts["leads_with_order"] = bool(texts) and any(word in texts[0].lower() for word in history.orders)
    return facts


class SharedReader:
    """One reader for all arms of a run: the first arm opens it, and the last one closes it.

    `known_as` identifies the reader if its address does not. If `is_script`, no model reads, so refusals and obeyed
    instructions say nothing about the memory.
    """

    def __init__(
        self, reader: Any, tap: Tap | None = None, known_as: str | None = None, *, is_script: bool = False
    ) -> None:
        self._reader, self._tap, self._users = reader, tap, 0
        self.room: asyncio.Semaphore | None = None  # limits concurrent requests
        self.wait_for_turn: Callable[[], Awaitable[None]] | None = None  # limits requests per minute
        self.fingerprint: str | None = known_as or reader.fingerprint
        self.asks_model = not isinstance(reader, ExtractReader)
        self.is_script = is_script or not self.asks_model
        self.model = find_model(reader)
        self.stop_reason = system_traits(reader).stop_reason

    @property
    def label(self) -> str:
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
        asked: Example = {key: value for key, value in example.items() if key != "memory"}
        came = perf_counter()
        async with self.room or nullcontext():
            if self.wait_for_turn is not None:
                await self.wait_for_turn()
            waited = perf_counter() - came
            result: Example = await self._reader.aprocess(asked)
        metadata = dict(result.get("metadata") or {})
        return {**result, "metadata": {**metadata, "waited": metadata.get("waited", 0.0) + waited}}

    def count(self, example: Example, count: Tokenizer) -> int:
        make_body = system_traits(self._reader).request_body
        body = None if make_body is None else make_body(example)
        return count_request(body or {"messages": build_messages(example)}, count)


class Arm:
    """One way to query a memory system; `way` identifies it in the fingerprint."""

    reads_gold = False

    def __init__(self, name: str, host: Host, way: str) -> None:
        self.name, self.host = name, host
        self._way = way

    @property
    def fingerprint(self) -> str | None:
        known = self.host.fingerprint
        return None if known is None else f"memory/1 {known}, {self.host.settings.granularity}, {self._way}"

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(
            own_client=True,
            takes_turns=True,
            queues=True,
            competes=not self.host.members.is_control,
            report=lambda _: self.describe(),
            status_text=lambda: self.host.status_text,
            measure=self.measure,
            join_run=self.host.join_run,
        )

    def describe(self) -> dict[str, Any]:
        return {"memory": self.host.report()}

    def measure(self, example: Mapping[str, Any], count: Tokenizer) -> tuple[int, int]:  # noqa: ARG002 - one arm reads them
        """Estimate the tokens of an answer, without the memory system's own calls, which are charged at the tap."""
        return 0, 0

    async def prepare(self) -> None:
        await self.host.prepare()

    async def finish(self) -> None:
        await self.host.finish()

    async def aprocess(self, example: Example) -> Example:
        asked = perf_counter()
        facts: dict[str, Any] = {}
        history = self.host.find_history(example)
        seat = await self.host.find_seat(history)
        async with seat.lock:
            try:
                facts["ingest"] = await seat.ensure_written(history)
                started = perf_counter()
                made = await self.ask(example, seat)
            except SystemFailure as failure:
                failure.metadata |= {"memory": {**facts, "query": {"spent": seat.take_costs("query")}}}
                raise
            ended = perf_counter()
            facts["query"] = {"seconds": ended - started, "spent": seat.take_costs("query")}
            if "retrieved" in made:
                facts["query"] |= _describe_found(made["retrieved"], history, example)
            made |= seat.list_evidence(facts)
        result = await self.complete(example, made)
        metadata = result.pop("metadata", {})
        metadata["waited"] = started - asked + metadata.get("waited", 0.0)
        return {**result, "metadata": {**metadata, "memory": facts}}

    async def ask(self, example: Example, seat: Seat) -> Example:
        """Query the memory while no other arm uses it."""
        raise NotImplementedError

    async def complete(self, example: Example, made: Example) -> Example:  # noqa: ARG002 - one arm needs the example
        """Complete the answer; other arms may use the memory by now."""
        return made

    def process(self, example: Example) -> Example:
        return run_sync(self.aprocess(example))


class OwnAnswer(Arm):
    sends_elsewhere = True

    def __init__(self, name: str, host: Host) -> None:
        super().__init__(name, host, "own query")

    async def ask(self, example: Example, seat: Seat) -> Example:
        return {"response": await seat.query(example)}

    def describe(self) -> dict[str, Any]:
        return {"memory": {**self.host.report(), "system": self.host.name, "answers": "own"}}


class ReadAnswer(Arm):
    """Lets the shared reader answer from the retrieved items, within a token budget (None for a control)."""

    def __init__(
        self, name: str, host: Host, reader: SharedReader, budget: int | None, top_k: int | None, count: Tokenizer
    ) -> None:
        super().__init__(name, host, f"budget={budget} k={top_k} reader={reader.fingerprint}")
        self.reader, self.budget, self._top_k, self._count = reader, budget, top_k, count
        self.model = reader.model

    @property
    def fingerprint(self) -> str | None:
        return None if self.reader.fingerprint is None else super().fingerprint

    def __context_bench_traits__(self) -> SystemTraits:
        traits = super().__context_bench_traits__()
        traits.sees_upstream, traits.stop_reason = True, self.reader.stop_reason
        traits.asks_model = self.reader.asks_model
        return traits

    def measure(self, example: Mapping[str, Any], count: Tokenizer) -> tuple[int, int]:
        if not self.reader.asks_model:
            return 0, 0
        history = int(example["memory"]["history_tokens"])
        around = self.reader.count({**example, "context": ""}, count)
        return around + (history if self.budget is None else min(self.budget, history)), ASSUMED_REPLY

    def describe(self) -> dict[str, Any]:
        about = {"system": self.host.name, "answers": "reader", "budget": self.budget, "reader": self.reader.label}
        return {"memory": {**self.host.report(), **about}}

    async def prepare(self) -> None:
        await super().prepare()
        await self.reader.prepare()

    async def finish(self) -> None:
        try:
            await super().finish()
        finally:
            await self.reader.finish()

    async def ask(self, example: Example, seat: Seat) -> Example:
        found = await seat.retrieve(example, self._top_k, self.budget)
        history = self.host.find_history(example)
        context, whole = render_retrieved(found, history.by_id, self.budget, self._count)
        made = {"context": context, "retrieved": found, "shown": whole}
        if self.budget is not None:
            sessions = example["memory"].get("evidence_sessions") or ()
            made["sessions"] = rank_sessions(found[:whole], history.by_id, sessions)
        return made

    async def complete(self, example: Example, made: Example) -> Example:
        answered = await self.reader.answer({**example, "context": made["context"]})
        if self.budget is None:  # the context has the full text: store it once
            made["retrieved"] = [{**item, "text": ""} for item in made["retrieved"]]
        metadata: dict[str, Any] = dict(answered.get("metadata") or {})
        # the tokens sent to the reader, and those of a request with the whole history
        context = self._count(made["context"]) if made["context"] else 0
        around = self.reader.count({**example, "context": ""}, self._count)
        metadata |= {"upstream_tokens": around + context, "sent_tokens": around + example["memory"]["history_tokens"]}
        if self.budget is not None:
            placed = self.host.find_history(example).place_evidence(example, self._count)
            metadata |= {} if placed is None else placed.describe_cut(context)
        return {**made, "response": answered["response"], "read_by_script": self.reader.is_script, "metadata": metadata}
