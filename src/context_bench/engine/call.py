"""One system on one example: the call, its time, and what it returned in one agreed form.

Whatever goes wrong becomes an `Outcome` with an error: a failing example is data, not the end of a run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from context_bench.datasets.examples import copy_example
from context_bench.errors import BadOutput, describe
from context_bench.systems.prompts import open_turns
from context_bench.types import Example, System

__all__ = ["Outcome", "call_system", "is_endpoint"]

_TURN_SUMS = ("prompt_tokens", "completion_tokens", "total_tokens", "attempts", "waited", "request_seconds")


@dataclass(slots=True)
class Outcome:
    """What a call gave: the processed dict, or an error.

    `latency` leaves out what our own client waited. `returns` is "context" when the system put out what a
    model would be sent next, "response" when it answered.
    """

    processed: Example = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    error: str | None = None
    returns: str = "response"
    started: float = 0.0
    ended: float = 0.0


def is_endpoint(system: System) -> bool:
    """Whether a system waits for somebody else, so that many of its calls can be in flight at once."""
    return hasattr(system, "aprocess")


async def call_system(
    system: System, example: Example, threads: Executor, clock: Callable[[], float] = time.perf_counter
) -> Outcome:
    """Call the system on a copy of the example; never raises for what the system does."""
    given = copy_example(example)
    outcome = Outcome()
    try:
        if is_endpoint(system):
            outcome.started = clock()
            raw = await _acall(system, given)
            outcome.ended = clock()
        else:
            loop = asyncio.get_running_loop()
            raw, outcome.started, outcome.ended = await loop.run_in_executor(threads, _timed_call, system, given, clock)
        _take(raw, system, example, outcome)
    except Exception as error:  # noqa: BLE001 - the one boundary: whatever a system raises is that row's error
        outcome.ended = clock()
        outcome.started = outcome.started or outcome.ended
        outcome.error = describe(error)
        outcome.metadata.update(getattr(error, "metadata", None) or {})
    waited = outcome.metadata.get("waited") or 0.0
    outcome.latency = max(0.0, outcome.ended - outcome.started - waited)
    return outcome


async def _acall(system: Any, example: Example) -> Any:
    if _is_conversation(system, example) and hasattr(system, "aprocess_conversation"):
        return _from_conversation(await system.aprocess_conversation(example["turns"]))
    return await system.aprocess(example)


def _timed_call(system: Any, example: Example, clock: Callable[[], float]) -> tuple[Any, float, float]:
    started = clock()
    if _is_conversation(system, example):
        raw: Any = _from_conversation(system.process_conversation(example["turns"]))
    else:
        raw = system.process(example)
    return raw, started, clock()


def _is_conversation(system: Any, example: Example) -> bool:
    """Whether the example asks for several replies, and the system can give them."""
    turns = example.get("turns")
    return bool(turns) and hasattr(system, "process_conversation") and open_turns(turns or ()) > 1


def _from_conversation(replies: Sequence[Mapping[str, Any]]) -> Example:
    """One result from one reply for each turn: the last is the response, the numbers add up."""
    if not replies:
        raise BadOutput("process_conversation() returned no reply")
    metadata: dict[str, Any] = {}
    for reply in replies:
        for key, value in (reply.get("metadata") or {}).items():
            metadata[key] = metadata[key] + value if key in metadata and key in _TURN_SUMS else value
    contents = [str(reply.get("content") or "") for reply in replies]
    return {"response": contents[-1], "responses": contents, "metadata": metadata}


def _take(raw: Any, system: System, example: Example, outcome: Outcome) -> None:
    """Bring what a system returned into the agreed form, or say what is wrong with it."""
    if isinstance(raw, str):
        raw = {"context": raw}
    if not isinstance(raw, Mapping):
        raise BadOutput(f"{system.name}: process() returned {type(raw).__name__}; it returns a dict")
    processed = dict(raw)
    if isinstance(processed.get("documents"), list) and not _own_context(processed, example):
        processed["context"] = "\n\n".join(str(item.get("text", "")) for item in processed["documents"])
    context, response = processed.get("context"), processed.get("response")
    if context is None and response is None:
        raise BadOutput(f"{system.name}: process() returned neither 'response' nor 'context' nor 'documents'")
    for key in ("context", "response"):
        if processed.get(key) is not None and not isinstance(processed[key], str):
            raise BadOutput(f"{system.name}: {key!r} must be text, not {type(processed[key]).__name__}")
    outcome.returns = "response" if context is None else "context"
    if response is None:
        processed["response"] = context
    metadata = processed.pop("metadata", None)
    if isinstance(metadata, Mapping):
        outcome.metadata.update(metadata)
    outcome.processed = processed


def _own_context(processed: Example, example: Example) -> bool:
    """Whether a system that returned documents chose a context of its own beside them."""
    return "context" in processed and (
        processed["context"] != example.get("context") or processed["documents"] == example.get("documents")
    )
