"""A compressor in this process followed by a model, so that it is compared with a proxy on the same footing."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.errors import BadOutput, ContextBenchError, SystemFailure, UsageError, describe
from context_bench.http.loop import run_sync
from context_bench.systems.adapt import adapt
from context_bench.systems.conversation import ask, has_open_turns, list_turn_prompts
from context_bench.systems.echo import drop_echo
from context_bench.systems.prompts import build_messages, merge, with_context
from context_bench.types import Example

__all__ = ["WithReader"]


class WithReader:
    """Runs the compressor, sends what it made to the reader, and returns the reader's answer.

    What the reader was sent is the row's `upstream_tokens`, what it would have been sent without the compressor its
    `sent_tokens`: both with instruction and framing, as behind a tap. The compressor's own time is
    `compressor_seconds`; it runs one call at a time, so that this time means something, and waiting for its turn is
    no latency. The reader may have many calls.

    Args:
        compressor: A system or function that returns a context.
        reader: A system with `aprocess` that answers, such as an OpenAIProxy.
        name: The compressor's by default.
    """

    own_client = True

    def __init__(self, compressor: Any, reader: Any, name: str | None = None) -> None:
        if not hasattr(reader, "aprocess"):
            raise UsageError(f"a {type(reader).__name__} is no reader: it has no .aprocess, as an OpenAIProxy has")
        self.compressor, self.reader = adapt(compressor), reader
        self.name = name or self.compressor.name
        self.model = getattr(reader, "model", None)
        self.max_workers: int | None = getattr(reader, "max_workers", None)
        self._lock = threading.Lock()

    @property
    def parts(self) -> list[Any]:
        """What its answers depend on."""
        return [self.compressor, self.reader]

    @property
    def reads_gold(self) -> bool:
        """Whether the compressor or the reader may look at the gold, which both are given."""
        return any(getattr(part, "reads_gold", True) is not False for part in self.parts)

    def request_body(self, example: Example) -> Any:
        """The most that the reader is sent for an example: it is asked with what the compressor leaves of it."""
        return self.reader.request_body(example) if hasattr(self.reader, "request_body") else None

    def stop_reason(self, failure: BaseException | None, answer: Mapping[str, Any]) -> str | None:
        """Why the reader need not be asked again, if that is so and the reader is one of ours."""
        own = getattr(self.reader, "own_client", False)
        reason: str | None = self.reader.stop_reason(failure, answer) if own else None
        return reason

    async def prepare(self) -> None:
        """Find out whether the reader is there."""
        if hasattr(self.reader, "prepare"):
            await self.reader.prepare()

    async def finish(self) -> None:
        """End what the compressor and the reader keep running."""
        for part in self.parts:
            ended = part.finish() if hasattr(part, "finish") else None
            if inspect.isawaitable(ended):
                await ended

    async def aprocess(self, example: Example) -> Example:
        """Compress, then ask."""
        asked = time.perf_counter()
        loop = asyncio.get_running_loop()
        made, started, ended = await loop.run_in_executor(None, self._compress, copy.deepcopy(example))
        processed = _checked(drop_echo(made), example, self.compressor.name)
        own = processed.pop("metadata", None)
        result = await ask(self.reader, merge(example, processed))
        metadata = {**(own or {}), **(result.get("metadata") or {}), "compressor_seconds": ended - started}
        metadata["waited"] = started - asked + metadata.get("waited", 0.0)
        metadata["upstream"] = "context"
        return {**processed, **result, "metadata": metadata}

    def list_requests(self, example: Example, replies: Sequence[str]) -> list[Mapping[str, Any]]:
        """The bodies that the reader is sent for an example, one for each of its replies."""
        conversation = has_open_turns(example) and hasattr(self.reader, "aprocess_conversation")
        examples = list_turn_prompts(example["turns"], replies) if conversation else [example]
        return [self._request(each) for each in examples]

    def _request(self, example: Example) -> Mapping[str, Any]:
        if hasattr(self.reader, "request_body"):
            body: Mapping[str, Any] = self.reader.request_body(example)
            return body
        return {"messages": build_messages(example), "tools": example.get("tools") or []}

    def _compress(self, example: Example) -> tuple[Any, float, float]:
        with self._lock:
            started = time.perf_counter()
            try:
                made = self.compressor.process(example)
            except (ContextBenchError, KeyboardInterrupt):
                raise
            # Nothing else gets out of the thread: StopIteration and SystemExit would take the event loop along.
            except BaseException as error:
                raise SystemFailure(f"{self.compressor.name} failed: {describe(error)}") from error
            return made, started, time.perf_counter()

    def process(self, example: Example) -> Example:
        """The same, for callers without an event loop."""
        return run_sync(self.aprocess(example))


def _checked(made: Any, example: Example, name: str) -> Example:
    """What the compressor made, as far as it is a prompt: its response would not be the reader's."""
    if isinstance(made, str):
        made = {"context": made}
    if not isinstance(made, Mapping):
        raise BadOutput(f"{name} returned {type(made).__name__}, and no context for the reader")
    processed = with_context({key: value for key, value in made.items() if key != "response"}, example)
    if not isinstance(processed.get("context"), str):
        raise BadOutput(f"{name} returned no context for the reader")
    return processed
