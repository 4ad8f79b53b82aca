"""A compressor in this process followed by a model, so that it is compared with a proxy on the same footing."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from context_bench.errors import BadOutput
from context_bench.http.loop import run_sync
from context_bench.systems.adapt import adapt
from context_bench.systems.prompts import merge
from context_bench.types import Example
from context_bench.utils.tokens import count_prompt, get_tokenizer

__all__ = ["WithReader"]


class WithReader:
    """Runs the compressor, sends what it made to the reader, and returns the reader's answer.

    The compressed prompt is `upstream_tokens`; the compressor's own time is `compressor_seconds`. The
    compressor runs one call at a time, so that this time means something; the reader may have many.

    Args:
        compressor: A system or function that returns a context.
        reader: A system with `aprocess` that answers, such as an OpenAIProxy.
        name: The compressor's by default.
    """

    def __init__(self, compressor: Any, reader: Any, name: str | None = None) -> None:
        self.compressor, self.reader = adapt(compressor), reader
        self.name = name or self.compressor.name
        self.model = getattr(reader, "model", None)
        self.reads_gold = bool(getattr(self.compressor, "reads_gold", False))
        self.max_workers: int | None = getattr(reader, "max_workers", None)
        self._lock = threading.Lock()

    @property
    def parts(self) -> list[Any]:
        """What its answers depend on."""
        return [self.compressor, self.reader]

    async def prepare(self) -> None:
        """Find out whether the reader is there."""
        if hasattr(self.reader, "prepare"):
            await self.reader.prepare()

    async def aprocess(self, example: Example) -> Example:
        """Compress, then ask."""
        processed, seconds = await asyncio.get_running_loop().run_in_executor(None, self._compress, dict(example))
        sent = merge(example, processed)
        result = await self.reader.aprocess(sent)
        upstream = count_prompt(sent, get_tokenizer())
        metadata = {**(result.get("metadata") or {}), "compressor_seconds": seconds, "upstream_tokens": upstream}
        return {**processed, **result, "metadata": metadata}

    def _compress(self, example: Example) -> tuple[Example, float]:
        with self._lock:
            started = time.perf_counter()
            processed: Any = self.compressor.process(example)
            seconds = time.perf_counter() - started
        if isinstance(processed, str):
            processed = {"context": processed}
        documents = processed.get("documents")
        if documents is not None and "context" not in processed:
            processed = {**processed, "context": "\n\n".join(str(item.get("text", "")) for item in documents)}
        if not isinstance(processed.get("context"), str):
            raise BadOutput(f"{self.compressor.name} returned no context for the reader")
        return {key: value for key, value in processed.items() if key not in ("response", "metadata")}, seconds

    def process(self, example: Example) -> Example:
        """The same, for callers without an event loop."""
        return run_sync(self.aprocess(example))
