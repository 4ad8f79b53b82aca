"""The endpoint of a proxy under test, watched from both sides: what was sent to it, and what it sent on to the tap."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from context_bench.errors import RequestFailed
from context_bench.http.endpoint import Endpoint, Exchange, encode
from context_bench.http.transport import Reply
from context_bench.tap.matching import MARK_HEADER, Matcher, Ticket
from context_bench.tap.prompt import read_prompt
from context_bench.tap.record import Call
from context_bench.tap.vendors import claim_headers

__all__ = ["WatchedEndpoint"]

_PATIENCE = 0.5
"""Seconds to wait for the tap to note the end of a reply that has already come."""


class WatchedEndpoint:
    """Sends as the endpoint does, marks each request, and adds to the exchange what the tap saw of it.

    Args:
        endpoint: Of the proxy under test.
        matcher: Knows which calls at the tap belong to a request.
        known_as: What identifies the proxy, where its address does not.
    """

    def __init__(self, endpoint: Endpoint, matcher: Matcher, known_as: str | None = None) -> None:
        self._endpoint, self._matcher = endpoint, matcher
        self.base_url, self.place = known_as or endpoint.base_url, endpoint.place
        self.probe, self.settle = endpoint.probe, endpoint.settle
        self._told = False

    def __repr__(self) -> str:
        return f"WatchedEndpoint({self.base_url!r})"

    async def post(self, path: str, body: Mapping[str, Any], parse: Callable[[Reply], Any] | None = None) -> Exchange:
        """Send one request of a run. Each attempt has a mark of its own, so that nothing is counted for another."""
        prompt = read_prompt(body)
        tickets: list[Ticket] = []

        def attempt() -> tuple[dict[str, Any], tuple[str, ...]]:
            self._close(tickets)
            tickets.append(self._matcher.open(prompt))
            mark = tickets[-1].mark
            return _marked(body, path, mark), (f"{MARK_HEADER}: {mark}",)

        try:
            exchange = await self._endpoint.post(path, attempt, parse)
            exchange.waited += await _ended(tickets[-1])
        except RequestFailed as error:
            error.metadata["upstream_statuses"] = [call.status for ticket in tickets for call in ticket.calls]
            error.tapped = [self._failed(path, body, tickets)]
            raise
        finally:
            self._close(tickets)
        exchange.tapped = [self._record(path, body, exchange, tickets)]
        if not self._matcher.seen and not self._told:
            self._told = True
            warnings.warn(
                f"{self.place} has answered, but nothing has reached the tap: set the upstream of the proxy to the "
                "address of the tap",
                stacklevel=2,
            )
        return exchange

    def _close(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            self._matcher.close(tickets[-1])

    def _record(
        self, path: str, body: Mapping[str, Any], exchange: Exchange, tickets: Sequence[Ticket]
    ) -> dict[str, Any]:
        """As the row keeps it. A tap that nobody has called yet knows nothing, also not that no call was needed."""
        *earlier, last = tickets
        since = exchange.sent + time.perf_counter() - time.monotonic()  # calls are timed by the finer clock
        return {
            "path": path,
            "sent": encode(_marked(body, path, last.mark)).decode("utf-8", "replace"),
            "seconds": exchange.seconds,
            "first_token": _first_token(exchange.document),
            "claims": claim_headers(_headers(exchange.raw_headers)),
            "calls": _stored(last.calls, since),
            "earlier_calls": sum(len(ticket.calls) for ticket in earlier),
            "unmatched": last.unmatched,
            "silent": not self._matcher.seen,
        }

    @staticmethod
    def _failed(path: str, body: Mapping[str, Any], tickets: Sequence[Ticket]) -> dict[str, Any]:
        """What is known of a request that came to nothing: all that its attempts set off."""
        calls = [call for ticket in tickets for call in ticket.calls]
        return {
            "path": path,
            "sent": encode(body).decode("utf-8", "replace"),
            "calls": _stored(calls, calls[0].started if calls else 0.0),
            "unmatched": sum(ticket.unmatched for ticket in tickets),
            "failed": True,
        }


def _stored(calls: Iterable[Call], since: float) -> list[dict[str, Any]]:
    return [call.as_dict(since) for call in sorted(calls, key=lambda call: call.started)]


def _marked(body: Mapping[str, Any], path: str, mark: str) -> dict[str, Any]:
    """The body with the mark where its form has room for one, unless the user has put something there."""
    if not path.endswith("/messages"):
        return {**body, "user": body.get("user", mark)}
    metadata = body.get("metadata") or {}
    return {**body, "metadata": {"user_id": mark, **metadata}}


async def _ended(ticket: Ticket) -> float:
    """The last byte may be here before the tap has noted that it went. The seconds that this took."""
    started = time.perf_counter()
    while any(call.ended is None for call in ticket.calls) and time.perf_counter() < started + _PATIENCE:
        await asyncio.sleep(0.001)
    return time.perf_counter() - started


def _first_token(document: Any) -> float | None:
    timings = document.get("timings_of_stream") if isinstance(document, Mapping) else None
    return timings.get("time_to_first_token") if timings else None


def _headers(raw: bytes) -> dict[str, str]:
    """A reply's headers by lower-case name."""
    pairs = (line.partition(":") for line in raw.decode("latin-1").split("\r\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
