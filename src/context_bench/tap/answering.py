"""Between the tap's server and whoever answers for it: what came in, what goes out, and the agreement of the two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from context_bench.tap.prompt import read_document
from context_bench.traits import find_label, find_secrets

__all__ = ["Answerer", "Dialect", "Incoming", "Outgoing", "Shared", "dialect_of"]

Dialect = Literal["openai", "anthropic"]

_DIALECTS: dict[str, Dialect] = {"/v1/chat/completions": "openai", "/v1/messages": "anthropic"}


def dialect_of(path: str) -> Dialect | None:
    """What is spoken at a path; None where no model is asked."""
    return _DIALECTS.get(path)


@dataclass(slots=True)
class Incoming:
    """A request as it reached the tap; `headers` by lower-case name, with their secrets: never to be kept."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def dialect(self) -> Dialect | None:
        """What it speaks."""
        return dialect_of(self.path)

    def document(self) -> dict[str, Any]:
        """The body as JSON; an empty object when it is none."""
        return read_document(self.body)


@dataclass(slots=True)
class Outgoing:
    """What is answered: a body at once, or as a stream of chunks that are passed on as they come."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""


class Answerer(Protocol):
    """Whoever answers for the tap: a model elsewhere, a local one, or a script.

    `fingerprint` tells what makes its answers differ, and holds no secret.

    Optional members:
        secrets: Values that must be shown and kept nowhere, such as a key in the URL that it asks.
        label: A text that is said of every result that it has a part in.
    """

    @property
    def fingerprint(self) -> str: ...

    async def open(self) -> None: ...

    async def answer(self, request: Incoming) -> Outgoing: ...

    async def close(self) -> None: ...


class Shared:
    """One answerer behind several taps: opened with the first of them, closed with the last."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self._users = 0
        self._turn = asyncio.Lock()
        self.answer = answerer.answer

    @property
    def fingerprint(self) -> str:
        """What makes the answers differ."""
        return self._answerer.fingerprint

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must be shown and kept nowhere, such as a key in the URL that it asks."""
        return find_secrets(self._answerer)

    @property
    def label(self) -> str | None:
        """What is to be said of every result that it has a part in."""
        return find_label(self._answerer)

    async def open(self) -> None:
        """One more tap."""
        async with self._turn:
            if self._users == 0:
                await self._answerer.open()
            self._users += 1

    async def close(self) -> None:
        """One tap less."""
        async with self._turn:
            self._users -= 1
            if self._users == 0:
                await self._answerer.close()
