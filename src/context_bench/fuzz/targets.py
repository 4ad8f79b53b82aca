"""Targets of the fuzzer: a system in this process, a proxy with a tap behind it, or a memory."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Sequence
from typing import Any

from context_bench.conformance.bench import Bench, CheckFailed
from context_bench.errors import SystemFailure, UsageError, describe
from context_bench.evaluators.text_search import read_sent_texts
from context_bench.fuzz.cases import Case
from context_bench.memory.members import read_members
from context_bench.refs import Ref, call_with, parse, resolve
from context_bench.systems.adapt import adapt, build_systems
from context_bench.traits import find_name, is_endpoint
from context_bench.types import System
from context_bench.wire.form import Answer
from context_bench.wire.prompts import Message, Prompt

BUDGETS = (0.2, 0.4, 0.6, 0.8)  # values of `ratio`


class SystemTarget:
    """A compressor in this process.

    Args:
        system: Must return a context or documents.
        sized: The same system with different ratios, by `ratio`, if it has this parameter.
    """

    def __init__(self, system: System, sized: dict[float, System] | None = None) -> None:
        self.system, self._sized = system, sized or {}
        self.name = system.name
        self.budgets: Sequence[float] = tuple(sorted(self._sized))

    async def read(self, case: Case, budget: float | None = None) -> str:
        """Return the text that a model would read."""
        system = self.system if budget is None else self._sized[budget]
        example = case.to_example()
        given = {**example}
        await asyncio.sleep(0)  # lets Ctrl-C through: systems of this process never wait
        try:
            processed = await system.aprocess(given) if is_endpoint(system) else system.process(given)  # type: ignore[attr-defined]
        except Exception as error:
            raise SystemFailure(f"{self.name} failed: {describe(error)}") from error
        if isinstance(processed, str):
            processed = {"context": processed}
        if isinstance(processed.get("documents"), list) and not isinstance(processed.get("context"), str):
            processed = {**processed, "context": "\n\n".join(str(each["text"]) for each in processed["documents"])}
        texts = read_sent_texts(example, processed)
        if texts is None:
            raise UsageError(
                f"{self.name} returns an answer, not a context: fuzz tests the text that a model reads "
                "(for a server use --proxy)"
            )
        return "\n".join(texts)


def build_target(text: str, seed: int | None = None) -> SystemTarget:
    """Build a target from the text of a reference, such as `bm25:ratio=0.3`."""
    systems = list(build_systems(text, seed))
    if len(systems) > 1:
        raise UsageError(f"{text!r} is a sweep, but fuzz tests one system at a time")
    (ref,) = parse("system", text)
    found = resolve("system", ref)
    sized: dict[float, System] = {}
    if isinstance(found, type) and "ratio" in inspect.signature(found).parameters:
        kept = {key: value for key, value in ref.parameters.items() if key not in ("ratio", "budget", "name")}
        for ratio in BUDGETS:
            own = Ref(ref.text, ref.target, ref.argument, {**kept, "ratio": ratio})
            sized[ratio] = adapt(call_with(found, own, None))
    return SystemTarget(systems[0], sized)


class ProxyTarget:
    """A proxy with a tap behind it; the context is sent as a tool result, which agent proxies compress."""

    budgets: Sequence[float] = ()

    def __init__(self, name: str, bench: Bench) -> None:
        self.name, self.bench = name, bench

    async def read(self, case: Case, budget: float | None = None) -> str:  # noqa: ARG002
        """Return all text that reached the model behind the proxy, except the question and the call."""
        call = {"id": "call_1", "type": "function", "function": {"name": "read_source", "arguments": "{}"}}
        messages: list[Message] = [
            {"role": "user", "content": case.question or "Answer from what the tool returned."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": case.text},
        ]
        around = Counter(self.read_sent(*messages).texts())
        around[case.text] -= 1
        texts = []
        for text in (await self.send(*messages)).texts():
            if around[text] > 0:
                around[text] -= 1
            else:
                texts.append(text)
        return "\n".join(texts)

    def read_sent(self, *messages: Message) -> Prompt:
        """Return the prompt of messages that are sent without a proxy."""
        prompt = self.bench.form.read_prompt(self.bench.build_request(*messages))
        assert prompt is not None
        return prompt

    async def send(self, *messages: Message, tools: Sequence[Any] = ()) -> Prompt:
        """Send messages through the proxy, and return the prompt that reached the model."""
        try:
            return (await self.bench.ask(Answer("ok"), *messages, tools=tools)).prompt
        except CheckFailed as error:
            raise SystemFailure(f"{self.name}: {error.reason}") from error


class MemoryTarget:
    """A memory system; each try resets the memory, writes sessions and asks a question."""

    budgets: Sequence[float] = ()

    def __init__(self, memory: Any) -> None:
        self.memory, self._members = memory, read_members(memory)
        self.name = str(find_name(memory))

    async def _call(self, name: str, *arguments: Any, **named: Any) -> Any:
        await asyncio.sleep(0)  # lets Ctrl-C through
        try:
            found = self._members[name](*arguments, **self._members.filter_arguments(name, **named))
            return await found if inspect.isawaitable(found) else found
        except Exception as error:
            raise SystemFailure(f"{self.name} failed in {name}: {describe(error)}") from error

    @property
    def can_forget(self) -> bool:
        return "forget" in self._members

    async def start(self) -> None:
        """Reset the memory."""
        await self._call("reset")

    async def write(self, texts: Sequence[str], session: str) -> None:
        """Ingest texts of the user as one session."""
        turns = [
            {"role": "user", "speaker": "user", "content": text, "session": session, "id": f"{session}:{place}"}
            | {"timestamp": "2026-03-01T12:00:00"}
            for place, text in enumerate(texts, 1)
        ]
        await self._call("ingest", turns)

    async def forget(self, what: str) -> None:
        await self._call("forget", {"what": what})

    async def ask(self, question: str) -> str:
        """Return the retrieved texts for a question, or else the answer."""
        if "flush" in self._members:
            await self._call("flush")
        if "retrieve" in self._members:
            found = await self._call("retrieve", question, k=3)
            return "\n".join(str(each.get("text", each)) if isinstance(each, dict) else str(each) for each in found)
        return str(await self._call("query", question))
