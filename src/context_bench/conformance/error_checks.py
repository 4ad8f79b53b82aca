"""Checks of errors: a client sees the status, the message and the advice that the model's provider gave."""

from __future__ import annotations

from typing import Any

from context_bench.conformance.bench import Bench
from context_bench.conformance.check_definition import Check, require
from context_bench.wire.replies import Answer

__all__ = ["STATUSES", "relayed", "relayed_before_stream"]

STATUSES = (400, 401, 404, 429, 500, 503)

_RETRY_AFTER = "2"
_ADVISED = (429, 503)
"""Statuses that come with Retry-After."""


async def _require_error(bench: Bench, status: int, **fields: Any) -> None:
    message = f"conformance says {status} on purpose"
    headers = {"retry-after": _RETRY_AFTER} if status in _ADVISED else {}
    arrived = (await bench.ask(Answer(message, status=status, headers=headers), **fields)).arrived
    shown = {"status": arrived.status, "retry-after": arrived.headers.get("retry-after"), "body": arrived.text()}
    sent = {"status": status, "retry-after": headers.get("retry-after"), "message": message}
    require(arrived.status == status, f"status {status} became {arrived.status}", sent, shown)
    require(message in arrived.text(), "the message of the error was lost", sent, shown)
    kept = shown["retry-after"] == sent["retry-after"] or status not in _ADVISED
    require(kept, "Retry-After was lost or changed", sent, shown)


def _make_check(status: int) -> Check:
    async def run(bench: Bench) -> None:
        await _require_error(bench, status)

    more = " and Retry-After" if status in _ADVISED else ""
    return Check(f"error {status} relayed", f"Does a client see status {status}, its message{more}?", run)


async def _before_stream(bench: Bench) -> None:
    await _require_error(bench, 429, stream=True)


relayed = tuple(_make_check(status) for status in STATUSES)
relayed_before_stream = Check(
    "error before a stream relayed", "Does a client that asked for a stream see an error as an error?", _before_stream
)
