"""A compressor in this process followed by a model, for a fair comparison with a proxy."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from context_bench.errors import BadOutput, ContextBenchError, SystemFailure, UsageError, describe
from context_bench.http.loop import run_sync
from context_bench.systems.adapt import adapt
from context_bench.systems.prompts import (
    ask,
    build_messages,
    drop_echo,
    has_open_turns,
    list_turn_prompts,
    merge,
    with_context,
)
from context_bench.traits import (
    SystemTraits,
    can_await_turns,
    find_finish,
    find_model,
    find_prepare,
    is_endpoint,
    may_read_gold,
    system_traits,
)
from context_bench.types import Example

Compress = Callable[[Example], Awaitable[tuple[Any, float, float]]]
"""Returns the output of a compressor, and the start and end of the call by `time.perf_counter`."""

_elsewhere: weakref.WeakKeyDictionary[WithReader, Compress] = weakref.WeakKeyDictionary()
"""Compressors that run on workers, by reader; where a compressor runs is not part of an object's state."""


class WithReader:
    """Runs the compressor, sends its output to the reader, and returns the reader's answer.

    The row's `upstream_tokens` are those of the request to the reader, its `sent_tokens` those of a request without
    compression: both include instruction and framing, as behind a tap. `compressor_seconds` is the compressor's own
    time. The compressor runs one call at a time, so that its times are comparable, and waiting for a free compressor is
    not part of the latency. The reader may have many calls in flight.

    Args:
        compressor: A system or function that returns a context.
        reader: A system with `aprocess` that answers, such as an OpenAIProxy.
        name: The compressor's name by default.
    """

    def __init__(self, compressor: Any, reader: Any, name: str | None = None) -> None:
        if not is_endpoint(reader):
            raise UsageError(f"a {type(reader).__name__} is not a reader: it needs .aprocess, as OpenAIProxy has")
        self.compressor, self.reader = adapt(compressor), reader
        self.name = name or self.compressor.name
        self.model = find_model(reader)
        self.max_workers: int | None = system_traits(reader).max_workers
        self.local = False
        self._lock = threading.Lock()

    def __context_bench_traits__(self) -> SystemTraits:
        reader, bound = system_traits(self.reader), system_traits(self.compressor).is_bound
        return SystemTraits(
            own_client=True,
            parts=[self.compressor, self.reader],
            max_workers=self.max_workers,
            takes_turns=self.local,
            is_bound=bound,
            sees_upstream=True,
            asks_model=True,
            report=None if reader.report is None else self._report,
            # An upper bound of the request to the reader; the context of a floor or a ceiling is known in advance.
            request_body=self._write_request if bound and reader.request_body else reader.request_body,
            list_requests=self.list_requests,
            stop_reason=reader.stop_reason,
            place_compressor=self._place_compressor,
        )

    def _write_request(self, example: Example) -> Any:
        """Write the request for an example after compression."""
        write = system_traits(self.reader).request_body
        made, *_ = self._compress(copy.deepcopy(example))
        return write and write(merge(example, drop_echo(made)))

    def _place_compressor(self, compress: Compress | None) -> None:
        """Run the compressor on workers from now on; None runs it in this process again."""
        if compress is None:
            _elsewhere.pop(self, None)
        else:
            _elsewhere[self] = compress

    @property
    def reads_gold(self) -> bool:
        """Whether the compressor or the reader may read the gold; both get the whole example."""
        return may_read_gold(self.compressor) or may_read_gold(self.reader)

    async def prepare(self) -> None:
        """Prepare the compressor and the reader."""
        for prepare in map(find_prepare, (self.compressor, self.reader)):
            if prepare is not None:
                await prepare()

    async def finish(self) -> None:
        """Finish the compressor and the reader; finish the reader even if the compressor fails."""
        try:
            await _finish(self.compressor)
        finally:
            await _finish(self.reader)

    async def aprocess(self, example: Example) -> Example:
        asked = time.perf_counter()
        given, compress = copy.deepcopy(example), _elsewhere.get(self)
        if compress is not None:
            made, started, ended = await compress(given)
        else:
            made, started, ended = await asyncio.get_running_loop().run_in_executor(None, self._compress, given)
        processed = _check_prompt(drop_echo(made), example, self.compressor.name)
        own = processed.pop("metadata", None)
        result = await ask(self.reader, merge(example, processed), example)
        metadata = {**(own or {}), **(result.get("metadata") or {}), "compressor_seconds": ended - started}
        metadata["waited"] = started - asked + metadata.get("waited", 0.0)
        metadata["upstream"] = "context"
        return {**processed, **result, "metadata": metadata}

    def _report(self, count: Callable[[str], int]) -> dict[str, Any]:
        """Describe the answerer behind the reader's tap, because scripts and local models cost nothing."""
        report = system_traits(self.reader).report
        told = {} if report is None else report(count)
        return {key: told[key] for key in ("answered_by",) if key in told}

    def list_requests(self, example: Example, replies: Sequence[str]) -> list[Mapping[str, Any]]:
        """List the request bodies to the reader for an example, one per reply."""
        conversation = len(replies) > 1 and has_open_turns(example) and can_await_turns(self.reader)
        examples = list_turn_prompts(example["turns"], replies) if conversation else [example]
        return [self._request(each) for each in examples]

    def _request(self, example: Example) -> Mapping[str, Any]:
        make_body = system_traits(self.reader).request_body
        body = None if make_body is None else make_body(example)
        if body is not None:
            return body
        return {"messages": build_messages(example), "tools": example.get("tools") or []}

    def _compress(self, example: Example) -> tuple[Any, float, float]:
        with self._lock:
            started = time.perf_counter()
            try:
                made = self.compressor.process(example)
            except (ContextBenchError, KeyboardInterrupt):
                raise
            # Convert all exceptions: StopIteration and SystemExit would end the event loop.
            except BaseException as error:
                raise SystemFailure(f"{self.compressor.name} failed: {describe(error)}") from error
            return made, started, time.perf_counter()

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop."""
        return run_sync(self.aprocess(example))


async def _finish(part: Any) -> None:
    """Finish a part, in a thread if that may block."""
    finish = find_finish(part)
    if finish is not None:
        ended = finish() if inspect.iscoroutinefunction(finish) else await asyncio.to_thread(finish)
        if inspect.isawaitable(ended):
            await ended


def _check_prompt(made: Any, example: Example, name: str) -> Example:
    """Check the compressor's output, and keep only prompt fields: the response must come from the reader."""
    if isinstance(made, str):
        made = {"context": made}
    if not isinstance(made, Mapping):
        raise BadOutput(f"{name} returned {type(made).__name__}, not a context for the reader")
    processed = with_context({key: value for key, value in made.items() if key != "response"}, example)
    if not isinstance(processed.get("context"), str):
        raise BadOutput(f"{name} returned no context for the reader")
    return processed
