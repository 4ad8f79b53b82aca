"""Checks many requests at once: each gets its own reply."""

from __future__ import annotations

import asyncio
import re

from context_bench.conformance.bench import Bench, Exchange, user_message
from context_bench.conformance.check_definition import CheckFailed, check, require
from context_bench.tap.answering import Incoming, Outgoing, build_reply
from context_bench.wire.replies import Answer

__all__ = ["concurrent"]

_CROWD = 32
_PATIENCE = 1.0
"""Seconds that the first replies wait for the last requests, so that all are in flight together."""

_MARK = re.compile(rb"visitor-(\d\d)")


@check(
    "concurrent requests not mixed up", f"Do {_CROWD} requests at once, half of them streamed, get their own replies?"
)
async def concurrent(bench: Bench) -> None:
    all_here = asyncio.Event()
    seen: set[bytes] = set()

    async def answer(request: Incoming) -> Outgoing:
        marks = _MARK.findall(request.body)
        seen.update(marks)
        if len(seen) == _CROWD:
            all_here.set()
        try:
            await asyncio.wait_for(all_here.wait(), _PATIENCE)
        except asyncio.TimeoutError:  # a proxy may let in only so many at once
            all_here.set()
        return build_reply(Answer(f"hello {marks[0].decode()}" if marks else "hello nobody"), request)

    bench.upstream.expect(answer)
    replies = await asyncio.gather(*(_visit(bench, number) for number in range(_CROWD)))
    bench.count_additions({}, _CROWD)
    wrong = {f"visitor-{number:02d}": said for number, said in enumerate(replies) if said != f"hello {number:02d}"}
    first = next(iter(wrong), "")
    reason = f"{len(wrong)} of {_CROWD} requests got no reply or another's"
    require(not wrong, reason, f"hello {first[-2:]} to {first}", wrong.get(first))


async def _visit(bench: Bench, number: int) -> str:
    """Send one of the requests, and return what the reply says."""
    message = user_message(f"visitor-{number:02d}: please greet me by my number, and by no other number than mine.")
    try:
        exchange: Exchange = await bench.send(bench.form.build_request([message], stream=bool(number % 2)))
        return exchange.read_reply().text
    except CheckFailed as error:
        return f"{error.reason}: {error.arrived}"
