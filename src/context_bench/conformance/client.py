"""The client of the checks: sends exact bytes to the proxy, and keeps exactly what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from context_bench.conformance.check_definition import CheckFailed
from context_bench.errors import ConnectionFailed, MissingExtra, describe

if TYPE_CHECKING:
    import aiohttp

__all__ = ["Arrived", "Client"]

Listener = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Arrived:
    """A reply as the client got it; headers by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def document(self) -> Any:
        """Read the body as JSON; halves of surrogate pairs are kept."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise CheckFailed("the reply is not JSON", None, self.text()) from None

    def text(self) -> str:
        """Return the body as text, to be shown."""
        return self.body.decode("utf-8", "replace")


class Client:
    """Connections to one proxy; an asynchronous context.

    Args:
        url: The proxy, without `/v1`.
        timeout: Seconds for one request.
        headers: Sent with every request.
    """

    def __init__(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> None:
        self.url, self.timeout, self.headers = url, timeout, dict(headers or {})

    async def __aenter__(self) -> Client:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtra("conformance", "tap") from error
        self._connection_error = aiohttp.ClientConnectorError
        self._client_error = aiohttp.ClientError
        self._session: aiohttp.ClientSession = aiohttp.ClientSession(
            # A connection of its own for each: one that the proxy has just closed is not the next check's fault.
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=self.timeout),
            headers={"User-Agent": "context-bench", **self.headers},
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        heard: Listener | None = None,
    ) -> Arrived:
        """Send one request and take its whole reply; `heard` is told of each piece of it as it comes.

        Raises:
            ConnectionFailed: Nobody listens there.
            CheckFailed: No whole reply came.
        """
        try:
            async with self._session.request(
                method, self.url + path, data=body, headers=headers, allow_redirects=False
            ) as reply:
                pieces: list[bytes] = []
                async for piece in reply.content.iter_any():
                    pieces.append(piece)
                    if heard is not None:
                        heard(piece)
                kept = {name.lower(): value for name, value in reply.headers.items()}
                return Arrived(reply.status, kept, b"".join(pieces))
        except self._connection_error as error:
            raise ConnectionFailed(f"no proxy answers at {self.url}: {error.strerror or 'no connection'}") from None
        except asyncio.TimeoutError:
            raise CheckFailed(f"no whole reply within {self.timeout:g} s") from None
        except self._client_error as error:
            raise CheckFailed(f"the proxy broke the reply off ({describe(error)})") from None
