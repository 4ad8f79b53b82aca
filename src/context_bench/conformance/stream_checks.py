"""Checks of streams: they stay streams, and everything in them arrives, in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from context_bench.conformance.bench import Bench
from context_bench.conformance.check_definition import check, require
from context_bench.tap.answering import Incoming, Outgoing, build_reply
from context_bench.wire.replies import Answer

__all__ = ["complete", "end", "stays_streaming", "usage"]

_HOLD = 3.0
_FIRST, _LAST = "first-piece", "last-piece"
_PIECES = [f"{_FIRST} ", *(f"piece {number} " for number in range(2, 12)), _LAST]
_LINES = [f"{number}: naïve café 漢字 👍🏽 שלום\n" for number in range(40)]


class _Hold:
    """Holds the last piece of a stream back until the client has the first, or for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.in_vain = seconds, False
        self._first_came = asyncio.Event()
        self._heard = bytearray()

    def listen(self, piece: bytes) -> None:
        """Listen to what the client receives."""
        self._heard += piece
        if _FIRST.encode() in self._heard:
            self._first_came.set()

    async def answer(self, request: Incoming) -> Outgoing:
        """Answer as the upstream."""
        reply = build_reply(Answer("".join(_PIECES), chunks=_PIECES), request)
        if not isinstance(reply.body, bytes):
            reply.body = self._hold_back(reply.body)
        return reply

    async def _hold_back(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for event in events:
            if _LAST.encode() in event:
                try:
                    await asyncio.wait_for(self._first_came.wait(), self.seconds)
                except asyncio.TimeoutError:
                    self.in_vain = True
            yield event


@check("streaming stays streaming", "Does the first piece of a reply arrive before the model has written the last?")
async def stays_streaming(bench: Bench) -> None:
    hold = _Hold(min(_HOLD, bench.client.timeout / 4))
    exchange = await bench.ask(hold.answer, stream=True, heard=hold.listen)
    streamed = exchange.upstream.get("stream") is True
    require(streamed, "the model was not asked for a stream", '"stream": true', exchange.upstream.get("stream"))
    said = exchange.read_reply()
    sent = f"all pieces but the last at once, the last when the client had the first, or after {hold.seconds:g} s"
    arrived = f"nothing for {hold.seconds:g} s, then everything"
    require(not hold.in_vain, "nothing arrived before the model had written its last piece", sent, arrived)
    require(said.text == "".join(_PIECES), "the text was changed", "".join(_PIECES), said.text)


@check("streams complete and in order", "Does every piece of a stream arrive, in order, with the reason for its end?")
async def complete(bench: Bench) -> None:
    text = "".join(_LINES)
    finish = {"openai": "length", "anthropic": "max_tokens"}[bench.form.api]
    said = (await bench.ask(Answer(text, chunks=_LINES, finish="length"), stream=True)).read_reply()
    require(said.text == text, "the text of the stream was changed", text, said.text)
    require(said.finish == finish, "the reason for the end was changed", finish, said.finish)


@check("streamed usage passed on", "Does the usage at the end of a stream come back?")
async def usage(bench: Bench) -> None:
    said = (await bench.ask(Answer("ok", usage=(12345, 678)), stream=True)).read_reply()
    expected = {name: bench.form.usage[name] for name in list(bench.form.usage)[:2]}
    arrived = {name: said.usage.get(name) for name in expected}
    require(arrived == expected, "the usage of the stream was lost or changed", expected, said.usage or None)


@check("end of stream relayed", "Is the event that ends a stream passed on?")
async def end(bench: Bench) -> None:
    exchange = await bench.ask(Answer("ok"), stream=True)
    ending = {"openai": "data: [DONE]", "anthropic": "message_stop"}[bench.form.api]
    require(exchange.read_reply().ended, "the stream has no end", ending, exchange.arrived.text()[-200:])
