"""A model of this machine as the one that answers behind a tap, with no key and no network.

Requests go on to a server process as they are; both dialects are spoken there. A request that ends the
process fails alone: the next one gets a new process. Nobody else can ask it, as it wants a key that only this
object knows.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from context_bench.errors import UsageError
from context_bench.local.process import CONTEXT, ModelProcess, Settings, check_installed
from context_bench.local.serve import REPLY_TOKENS
from context_bench.local.weights import Say, choose
from context_bench.tap.answering import Incoming, Outgoing, build_error
from context_bench.tap.forward import Forward
from context_bench.tap.hashed_embeddings import EMBEDDINGS_PATH, answer_embeddings

__all__ = ["LocalModel"]

_PATIENCE = 3600.0
"""Seconds for a reply: requests wait in a row for one model."""
_LAST_BREATH = 2.0
"""Seconds from the end of its connections to the end of a process."""

_KEYS = ("authorization", "x-api-key")


def _tell(message: str) -> None:
    print(f"context-bench: {message}", file=sys.stderr, flush=True)


class LocalModel:
    """Answers with a GGUF file.

    Args:
        spec: `local` for the small model that is fetched when it is needed, or the path to a GGUF file.
        threads: Cores that it uses; None for half of those that there are, up to eight.
        context: Tokens of prompt and reply together.
        say: Is told what is being waited for.

    Attributes:
        label: What a reader must know about scores that were made with it.
    """

    def __init__(
        self, spec: str = "local", *, threads: int | None = None, context: int = CONTEXT, say: Say = _tell
    ) -> None:
        self.spec, self.threads, self.context = spec, threads, context
        self.weights = choose(spec)
        limits = f"context={context} reply={REPLY_TOKENS}"
        self.fingerprint = f"local {self.weights.sha256} {limits} xllamacpp={_engine()}"
        self.label = self.weights.label
        self._say = say
        self._key = secrets.token_urlsafe(32)
        self._process: ModelProcess | None = None
        self._forward: Forward | None = None
        self._starting = asyncio.Lock()

    async def open(self) -> None:
        """Fetch the weights if need be, and start the model."""
        self._process = ModelProcess(await asyncio.to_thread(self._settings))
        try:
            await asyncio.to_thread(self._process.start)
            self._forward = Forward(self._process.url, timeout=_PATIENCE)
            await self._forward.open()
        except BaseException:
            await self.close()
            raise

    async def answer(self, request: Incoming) -> Outgoing:
        """Ask the model; 502 when its process has ended over it."""
        if request.method == "POST" and request.path == EMBEDDINGS_PATH:  # the small model answers, and embeds nothing
            return await asyncio.to_thread(answer_embeddings, request)
        process, forward = self._process, self._forward
        assert process is not None, "not opened yet"
        assert forward is not None
        try:
            await self._keep_alive(process)
        except UsageError as error:
            return build_error(502, str(error), request.dialect)
        outgoing = await forward.answer(replace(request, headers=self._headers(request.headers)))
        if outgoing.status == 502 and await asyncio.to_thread(process.wait, _LAST_BREATH):
            return build_error(502, f"the local model's process was {process.ending} over a request", request.dialect)
        return outgoing

    async def close(self) -> None:
        """End the model."""
        if self._forward is not None:
            await self._forward.close()
        if self._process is not None:
            await asyncio.to_thread(self._process.stop)

    async def _keep_alive(self, process: ModelProcess) -> None:
        """Start the process again if a request has ended it."""
        async with self._starting:
            if not process.alive:
                self._say(f"the local model's process was {process.ending}: starting it again")
                await asyncio.to_thread(process.start)

    def _settings(self) -> Settings:
        return Settings.of(self.weights, self._say, context=self.context, threads=self.threads, key=self._key)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Make the headers of a request with our key in the place of the client's, which goes nowhere."""
        kept = {name: value for name, value in headers.items() if name.lower() not in _KEYS}
        return {**kept, "authorization": f"Bearer {self._key}"}


def _engine() -> str:
    """The version of the native code, which may change a reply."""
    check_installed()
    try:
        return version("xllamacpp")
    except PackageNotFoundError:  # built by hand
        return "unknown"
