"""One system on one example: the call, its time, and what it returned in one agreed form.

Whatever goes wrong becomes an `Outcome` with an error: a failing example is data, not the end of a run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from context_bench.datasets.examples import copy_example
from context_bench.engine.threads import call_in_thread, unwrapped
from context_bench.errors import BadOutput, describe
from context_bench.systems.prompts import open_turns
from context_bench.types import Example, System

__all__ = ["Outcome", "call_system", "is_endpoint"]

_TURN_SUMS = ("prompt_tokens", "completion_tokens", "total_tokens", "attempts", "waited", "request_seconds")


@dataclass(slots=True)
class Outcome:
    """What a call gave: the processed dict, or an error.

    `latency` leaves out what our own client waited. `returns` is "context" when the system put out what a
    model would be sent next, "response" when it answered. `known` says that it was stored by an earlier run.
    """

    processed: Example = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    error: str | None = None
    returns: str = "response"
    started: float = 0.0
    ended: float = 0.0
    known: bool = False


def is_endpoint(system: System) -> bool:
    """Whether a system waits for somebody else, so that many of its calls can be in flight at once."""
    return hasattr(system, "aprocess")


async def call_system(
    system: System, example: Example, threads: Executor, clock: Callable[[], float] = time.perf_counter
) -> Outcome:
    """Call the system on a copy of the example; never raises for what the system does."""
    outcome = Outcome()
    try:
        given = copy_example(example)
        if is_endpoint(system):
            outcome.started = clock()
            raw = await _acall(system, given)
            outcome.ended = clock()
        else:
            raw = await call_in_thread(threads, _call_here, system, given, outcome, clock)
        _take(raw, system, example, outcome)
    # The one boundary: whatever a system raises is that row's error.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        raised = unwrapped(error)
        outcome.ended = outcome.ended or clock()
        outcome.started = outcome.started or outcome.ended
        outcome.error = describe(raised)
        outcome.metadata.update(getattr(raised, "metadata", None) or {})
    outcome.latency = max(0.0, outcome.ended - outcome.started - _waited(outcome.metadata))
    return outcome


def _waited(metadata: Mapping[str, Any]) -> float:
    seconds = metadata.get("waited")
    return max(0.0, seconds) if isinstance(seconds, int | float) else 0.0


async def _acall(system: Any, example: Example) -> Any:
    if _is_conversation(system, example) and hasattr(system, "aprocess_conversation"):
        return _from_conversation(await system.aprocess_conversation(example["turns"]))
    return await system.aprocess(example)


def _call_here(system: Any, example: Example, outcome: Outcome, clock: Callable[[], float]) -> Any:
    outcome.started = clock()
    try:
        if _is_conversation(system, example):
            return _from_conversation(system.process_conversation(example["turns"]))
        return system.process(example)
    finally:
        outcome.ended = clock()


def _is_conversation(system: Any, example: Example) -> bool:
    """Whether the example asks for several replies, and the system can give them."""
    turns = example.get("turns")
    return bool(turns) and hasattr(system, "process_conversation") and open_turns(turns or ()) > 1


def _from_conversation(replies: Sequence[Mapping[str, Any]]) -> Example:
    """One result from one reply for each turn: the last is the response, the numbers add up."""
    if not isinstance(replies, list | tuple) or not replies or not all(isinstance(each, Mapping) for each in replies):
        raise BadOutput("process_conversation() returns a list with a message for each user turn")
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
    documents = processed.get("documents")
    if documents is not None and not _are_documents(documents):
        raise BadOutput(f"{system.name}: 'documents' must be a list of objects with 'id' and 'text'")
    if documents is not None and not _own_context(processed, example):
        processed["context"] = "\n\n".join(str(item.get("text", "")) for item in documents)
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


def _are_documents(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)


def _own_context(processed: Example, example: Example) -> bool:
    """Whether a system that returned documents chose a context of its own beside them."""
    return "context" in processed and (
        processed["context"] != example.get("context") or processed["documents"] == example.get("documents")
    )
