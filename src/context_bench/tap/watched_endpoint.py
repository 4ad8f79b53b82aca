"""The endpoint of a proxy under test, watched on both sides: our requests to it, and its calls at the tap."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from context_bench.errors import RequestFailed, warn
from context_bench.http.endpoint import Endpoint, Exchange, encode
from context_bench.http.transport import Reply
from context_bench.tap.matching import MARK_HEADER, Matcher, Ticket
from context_bench.text.masking import mask_command
from context_bench.traffic.calls import Call, claim_headers, says_cache_hit
from context_bench.traffic.exchanges import Exchange as Seen
from context_bench.traffic.exchanges import read_call_bill
from context_bench.wire.forms import form_of_route, read_completion, read_document_completion, read_prompt

_TAP_TIMEOUT = 0.5  # seconds to wait until the tap records the end of a reply that has arrived


@dataclass(eq=False)
class _Sending:
    """One of our requests, from its first attempt to its end; `alone` if no other request was in flight."""

    tickets: list[Ticket] = field(default_factory=list)
    alone: bool = True
    sent: bytes = b""  # the body of the last attempt
    body: bytes = b""  # the body of a streamed reply


_gathered: ContextVar[list[dict[str, Any]] | None] = ContextVar("exchanges of the current example", default=None)


@contextmanager
def gather_exchanges() -> Iterator[list[dict[str, Any]]]:
    """Collect the exchanges of this task in a list, including those of an example that later fails."""
    gathered: list[dict[str, Any]] = []
    token = _gathered.set(gathered)
    try:
        yield gathered
    finally:
        _gathered.reset(token)


class WatchedEndpoint:
    """Sends requests through the endpoint, marks them, and adds the tap's records to the exchange.

    `known_as` identifies the proxy if its address does not.
    """

    def __init__(self, endpoint: Endpoint, matcher: Matcher, known_as: str | None = None) -> None:
        self._endpoint, self._matcher = endpoint, matcher
        self.base_url, self.place = known_as or endpoint.base_url, endpoint.place
        self.probe, self.settle, self._hide = endpoint.probe, endpoint.settle, endpoint.hide_secrets
        self.fill_in, self.reveal_secrets = endpoint.fill_in, endpoint.reveal_secrets
        self._in_flight: set[_Sending] = set()
        self.last_was_cached = False
        self._answers = 0

    def __repr__(self) -> str:
        return f"WatchedEndpoint({mask_command(self.base_url)!r})"

    async def post(self, path: str, body: Mapping[str, Any], parse: Callable[[Reply], Any] | None = None) -> Exchange:
        """Send one request of a run. Each attempt has a separate mark, so that its calls are counted correctly."""
        prompt, digest = read_prompt(body), blake2b(encode(body), digest_size=16).digest()
        sending = _Sending()
        tickets = sending.tickets

        def attempt() -> tuple[bytes, tuple[str, ...]]:
            self._close(tickets)
            self._begin(sending)
            tickets.append(self._matcher.open(prompt, digest))
            mark = tickets[-1].mark
            sending.sent = encode(form_of_route(path).mark_request(body, mark))
            return sending.sent, (f"{MARK_HEADER}: {mark}",)

        def read(reply: Reply) -> Any:
            sending.body = reply.body
            return parse(reply) if parse is not None else None

        try:
            exchange = await self._endpoint.post(path, attempt, None if parse is None else read)
            self._in_flight.discard(sending)
            exchange.waited += await _wait_for_calls(tickets[-1])
        except RequestFailed as error:
            error.metadata["upstream_statuses"] = [call.status for ticket in tickets for call in ticket.calls]
            error.tapped = [self._record_failure(path, body, tickets)]
            raise
        finally:
            self._in_flight.discard(sending)
            self._close(tickets)
            for ticket in tickets:
                self._matcher.record(ticket)
        if not self._matcher.seen and not says_cache_hit(_read_headers(exchange.raw_headers)):
            await self._look_for_tap(path, body)
        exchange.tapped = [self._record(path, exchange, sending)]
        for ticket in tickets:  # the matcher remembers them for a while, so free their calls
            ticket.calls, ticket.unmatched = [], []
        if (gathered := _gathered.get()) is not None:
            gathered += exchange.tapped
        self.last_was_cached = exchange.tapped[0]["cache_hit"]
        self._answers += 1
        # The first answer may have stopped the run already.
        if not self._matcher.seen and not self.last_was_cached and self._answers == 2:
            warn(
                f"{self.place} has answered, but nothing has reached the tap: set the upstream of the proxy to the "
                "address of the tap"
            )
        return exchange

    async def _look_for_tap(self, path: str, body: Mapping[str, Any]) -> None:
        """Send a probe that the tap answers itself, to detect a proxy with another upstream."""
        self._matcher.probe = f"tap-{secrets.token_hex(12)}"
        message = {"role": "user", "content": f"context-bench looks for its tap: {self._matcher.probe}"}
        form = form_of_route(path)
        kept = {key: body[key] for key in ("model", *form.limit_fields) if key in body}
        asks = {key: value for key, value in form.build_request("", [message]).items() if key in form.prompt_fields}
        left = [{**kept, **asks}]

        def once() -> tuple[Any, tuple[str, ...]]:
            if not left:
                raise RequestFailed("it is asked once")
            return left.pop(), ()

        with suppress(RequestFailed):
            await self._endpoint.post(path, once)

    def _begin(self, sending: _Sending) -> None:
        """Register a request in flight; if there are several, none is `alone`."""
        others = self._in_flight - {sending}
        for each in (*others, sending) if others else ():
            each.alone = False
        self._in_flight.add(sending)

    def _close(self, tickets: Sequence[Ticket]) -> None:
        if tickets:
            self._matcher.close(tickets[-1])

    def _record(self, path: str, exchange: Exchange, sending: _Sending) -> dict[str, Any]:
        """Make the record for the row. If the tap has not seen any call yet, it is unknown whether one was needed."""
        *earlier, last = sending.tickets
        since = exchange.sent + time.perf_counter() - time.monotonic()  # calls use the finer clock
        before = _sort([call for ticket in earlier for call in ticket.calls])
        headers = _read_headers(exchange.raw_headers)
        if sending.body:
            returned = read_completion(sending.body.decode("utf-8", "replace"))
        else:
            returned = read_document_completion(exchange.document) if isinstance(exchange.document, Mapping) else None
        unmatched = _find_unmatched(sending.tickets)
        return Seen(
            sent=self._hide(sending.sent).decode("utf-8", "replace"),
            path=path,
            calls=_sort(last.calls),
            attempts=len(sending.tickets),
            seconds=exchange.seconds,
            alone=sending.alone,
            first_token=_read_first_token(exchange.document),
            claims=claim_headers(headers),
            cache_hit=says_cache_hit(headers),
            returned=returned,
            lost_calls=[call for call in before if call.asks_model and call.is_answered],
            earlier_calls=len(before),
            unmatched=len(unmatched) + sum(ticket.more_unmatched for ticket in sending.tickets),
            unmatched_bodies=_list_readable(unmatched),
            unmatched_bytes=sum(ticket.more_bytes for ticket in sending.tickets),
            unmatched_bills=[read_call_bill(call) for call in unmatched if call.asks_model and call.status < 300],
            silent=not self._matcher.seen,
            asked_before=last.digest in self._matcher.reached,
        ).as_dict(since)

    def _record_failure(self, path: str, body: Mapping[str, Any], tickets: Sequence[Ticket]) -> dict[str, Any]:
        """Record a failed request with all calls that its attempts caused."""
        calls = [call for ticket in tickets for call in ticket.calls]
        unmatched = _find_unmatched(tickets)
        return Seen(
            sent=self._hide(encode(body)).decode("utf-8", "replace"),
            path=path,
            calls=_sort(calls),
            attempts=len(tickets),
            unmatched=len(unmatched) + sum(ticket.more_unmatched for ticket in tickets),
            unmatched_bodies=_list_readable(unmatched),
            unmatched_bytes=sum(ticket.more_bytes for ticket in tickets),
            failed=True,
        ).as_dict(calls[0].started if calls else 0.0)


def _find_unmatched(tickets: Iterable[Ticket]) -> list[Call]:
    """List the calls that may belong to a request, but not certainly."""
    return list({id(call): call for ticket in tickets for call in ticket.unmatched}.values())


def _list_readable(calls: Iterable[Call]) -> list[str]:
    """List the call bodies that a model may have read."""
    return [call.body for call in calls if call.asks_model and call.status < 300]


def _sort(calls: Iterable[Call]) -> list[Call]:
    return sorted(calls, key=lambda call: call.started)


async def _wait_for_calls(ticket: Ticket) -> float:
    """Wait for the ends of the calls, since the last byte may arrive before the tap records it.

    Return the seconds waited.
    """
    started = time.perf_counter()
    while any(call.ended is None for call in ticket.calls) and time.perf_counter() < started + _TAP_TIMEOUT:
        await asyncio.sleep(0.001)
    return time.perf_counter() - started


def _read_first_token(document: Any) -> float | None:
    timings = document.get("timings_of_stream") if isinstance(document, Mapping) else None
    return timings.get("time_to_first_token") if timings else None


def _read_headers(raw: bytes) -> dict[str, str]:
    """Read a reply's headers with lower-case names."""
    pairs = (line.partition(":") for line in raw.decode("latin-1").split("\r\n"))
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}
