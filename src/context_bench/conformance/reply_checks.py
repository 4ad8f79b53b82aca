"""Check that replies arrive as the model wrote them: texts, streams, errors, and concurrent requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from context_bench.conformance.bench import Bench, BenchExchange, Check, CheckFailed, check, require, user_message
from context_bench.tap.answering import Incoming, Outgoing, build_reply
from context_bench.wire.form import Answer
from context_bench.wire.prompts import Prompt

_PLAIN = 'The answer is 42.\n\n  - *first*\n  - `second`\twith a tab, "quotes" and a \\ backslash.\r\nTrailing space: '

UNICODE = (
    "emoji 👩‍👩‍👧‍👦🏽🇳🇴, CJK 漢字かな한국어, right to left שלום مرحبا, combining Z̷̛a\u0301\u0323, astral 𝕏𐍈, "
    "line \u2028 and paragraph \u2029 separators, no-break\u00a0space, zero\u200bwidth, bom \ufeff, "
    "controls \x01\x1b[31m\x7f\x85, <|endoftext|>, ￿"
)
_HALVES = "one half \ud83d of a pair, and the other \ude00 alone"

_LONG_INPUT = 200_000
_LONG_OUTPUT = 1_000_000


@check("plain reply text intact", "Is the text of a reply exactly what the model said?")
async def plain_reply(bench: Bench) -> None:
    said = (await bench.ask(Answer(_PLAIN))).read_reply()
    require(said.text == _PLAIN, "the text of the reply was changed", _PLAIN, said.text)


@check("short conversation reaches upstream", "Do the messages of a short conversation all reach the model, in order?")
async def conversation(bench: Bench) -> None:
    turns = [
        {"role": "system", "content": "You are a patient librarian."},
        user_message("Which book did I borrow?"),
        {"role": "assistant", "content": "You borrowed the atlas of clouds."},
        user_message("And when is it due? Please give the weekday."),
    ]
    exchange = await bench.ask(Answer("On Friday."), *turns)
    received = _list_turns(exchange.prompt)
    waiting = iter(received)
    for role, text in ((turn["role"], turn["content"]) for turn in turns):
        found = next((each for each, said in waiting if text in said), None)
        require(found is not None, f"the {role} message {text!r} is missing or changed", turns, received)
        require(found == role, f"a {role} message became one of the role {found!r}", turns, received)
    if [text for _, text in received] != [turn["content"] for turn in turns]:
        bench.note("adds text of its own to a short conversation")
    require(exchange.read_reply().text == "On Friday.", "the reply was changed", "On Friday.", exchange.arrived.text())


def _list_turns(prompt: Prompt) -> list[tuple[Any, str]]:
    """List the role and the text of each message that reached the upstream."""
    turns = [("system", "".join(Prompt(system=prompt.system).texts()))] if prompt.system is not None else []
    messages = [message for message in prompt.messages if isinstance(message, dict)]
    return turns + [(message.get("role"), "".join(Prompt(messages=[message]).texts())) for message in messages]


@check("unicode in requests intact", "Do emoji, CJK, right-to-left and combining characters reach the model?")
async def unicode_request(bench: Bench) -> None:
    _require_upstream(await bench.ask(Answer("ok"), user_message(UNICODE)), UNICODE)


@check("unicode in replies intact", "Do emoji, CJK, right-to-left and combining characters come back?")
async def unicode_reply(bench: Bench) -> None:
    said = (await bench.ask(Answer(UNICODE))).read_reply()
    require(said.text == UNICODE, "the text of the reply was changed", UNICODE, said.text)


@check("lone surrogates survive", "Does JSON with an escaped half of a surrogate pair pass, in both directions?")
async def surrogates(bench: Bench) -> None:
    exchange = await bench.ask(Answer(_HALVES), user_message(_HALVES))
    _require_upstream(exchange, _HALVES)
    said = exchange.read_reply()
    require(said.text == _HALVES, "the text of the reply was changed", ascii(_HALVES), ascii(said.text))


def _require_upstream(exchange: BenchExchange, text: str) -> None:
    """Fail unless the text reached the upstream, and the client got the reply."""
    received = exchange.prompt.texts()
    require(any(text in each for each in received), "the text did not reach the upstream intact", text, received)
    exchange.read_reply()


@check("very long input keeps its question", "Does the question after 200,000 characters still reach the model?")
async def long_input(bench: Bench) -> None:
    lines = (
        f"Entry {number:05d}: shelf {number * 7919 % 977}, box {number * 104729 % 613}.\n" for number in range(9999)
    )
    question = "Which shelf holds the lighthouse keeper's diary?"
    exchange = await bench.ask(Answer("Shelf 9."), user_message(f"{''.join(lines)[:_LONG_INPUT]}\n\n{question}"))
    received = exchange.prompt.texts()
    found = any(question in text for text in received)
    require(found, "the question did not reach the model", question, [text[-200:] for text in received])
    said = exchange.read_reply()
    require(said.text == "Shelf 9.", "the reply was changed", "Shelf 9.", said.text)


@check("long output intact", "Does a reply of a million characters come back whole?")
async def long_output(bench: Bench) -> None:
    text = "".join(f"{number}, " for number in range(150_000))[:_LONG_OUTPUT]
    said = (await bench.ask(Answer(text))).read_reply()
    arrived = f"{len(said.text):,} characters, ending in {said.text[-40:]!r}"
    require(said.text == text, "the reply was changed", f"{len(text):,} characters, ending in {text[-40:]!r}", arrived)


_HOLD_SECONDS = 3.0
_FIRST, _LAST = "first-piece", "last-piece"
_PIECES = [f"{_FIRST} ", *(f"piece {number} " for number in range(2, 12)), _LAST]
_LINES = [f"{number}: naïve café 漢字 👍🏽 שלום\n" for number in range(40)]


class _Hold:
    """Holds back the last piece of a stream until the client has the first piece, or until a time limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.in_vain = seconds, False
        self._first_came = asyncio.Event()
        self._heard = bytearray()

    def listen(self, piece: bytes) -> None:
        self._heard += piece
        if _FIRST.encode() in self._heard:
            self._first_came.set()

    async def answer(self, request: Incoming) -> Outgoing:
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
    hold = _Hold(min(_HOLD_SECONDS, bench.client.timeout / 4))
    exchange = await bench.ask(hold.answer, stream=True, heard=hold.listen)
    streamed = exchange.upstream.get("stream") is True
    require(streamed, "the model was not asked for a stream", '"stream": true', exchange.upstream.get("stream"))
    said = exchange.read_reply()
    sent = f"all pieces but the last at once; the last after the client had the first, or after {hold.seconds:g} s"
    arrived = f"nothing for {hold.seconds:g} s, then everything"
    require(not hold.in_vain, "nothing arrived before the model had written its last piece", sent, arrived)
    require(said.text == "".join(_PIECES), "the text was changed", "".join(_PIECES), said.text)


@check("streams complete and in order", "Does every piece of a stream arrive, in order, with the reason for its end?")
async def complete(bench: Bench) -> None:
    text = "".join(_LINES)
    finish = bench.form.samples.finish
    said = (await bench.ask(Answer(text, chunks=_LINES, finish="length"), stream=True)).read_reply()
    require(said.text == text, "the text of the stream was changed", text, said.text)
    require(said.finish == finish, "the reason for the end was changed", finish, said.finish)


@check("streamed usage passed on", "Does the usage at the end of a stream come back?")
async def streamed_usage(bench: Bench) -> None:
    said = (await bench.ask(Answer("ok", usage=(12345, 678)), stream=True)).read_reply()
    expected = {name: bench.form.samples.usage[name] for name in list(bench.form.samples.usage)[:2]}
    arrived = {name: said.usage.get(name) for name in expected}
    require(arrived == expected, "the usage of the stream was lost or changed", expected, said.usage or None)


@check("end of stream relayed", "Is the event that ends a stream passed on?")
async def end(bench: Bench) -> None:
    exchange = await bench.ask(Answer("ok"), stream=True)
    ending = bench.form.samples.end
    require(exchange.read_reply().ended, "the stream has no end", ending, exchange.arrived.text()[-200:])


STATUSES = (400, 401, 404, 429, 500, 503)

_RETRY_AFTER = "2"
_ADVISED = (429, 503)  # statuses that come with Retry-After


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
    more = " and Retry-After" if status in _ADVISED else ""
    return Check(
        f"error {status} relayed",
        f"Does a client see status {status}, its message{more}?",
        partial(_require_error, status=status),
    )


relayed = tuple(_make_check(status) for status in STATUSES)
relayed_before_stream = Check(
    "error before a stream relayed",
    "Does a client that asked for a stream see an error as an error?",
    partial(_require_error, status=429, stream=True),
)


_CROWD_SIZE = 32
_CROWD_TIMEOUT = 1.0  # seconds that the first replies wait for the last requests, so that all are in flight together

_MARK = re.compile(rb"visitor-(\d\d)")


@check(
    "concurrent requests not mixed up",
    f"Do {_CROWD_SIZE} requests at once, half of them streamed, get their own replies?",
)
async def concurrent(bench: Bench) -> None:
    all_here = asyncio.Event()
    seen: set[bytes] = set()

    async def answer(request: Incoming) -> Outgoing:
        marks = _MARK.findall(request.body)
        seen.update(marks)
        if len(seen) == _CROWD_SIZE:
            all_here.set()
        try:
            await asyncio.wait_for(all_here.wait(), _CROWD_TIMEOUT)
        except asyncio.TimeoutError:  # a proxy may limit the requests in flight
            all_here.set()
        return build_reply(Answer(f"hello {marks[0].decode()}" if marks else "hello nobody"), request)

    bench.upstream.expect(answer)
    replies = await asyncio.gather(*(_visit(bench, number) for number in range(_CROWD_SIZE)))
    bench.count_additions({}, _CROWD_SIZE)
    wrong = {f"visitor-{number:02d}": said for number, said in enumerate(replies) if said != f"hello {number:02d}"}
    first = next(iter(wrong), "")
    reason = f"{len(wrong)} of {_CROWD_SIZE} requests got no reply, or the reply to another"
    require(not wrong, reason, f"hello {first[-2:]} to {first}", wrong.get(first))


async def _visit(bench: Bench, number: int) -> str:
    """Send one of the requests, and return the text of the reply."""
    message = user_message(f"visitor-{number:02d}: please greet me by my number, and by no other number than mine.")
    try:
        exchange: BenchExchange = await bench.send(bench.build_request(message, stream=bool(number % 2)))
        return exchange.read_reply().text
    except CheckFailed as error:
        return f"{error.reason}: {error.arrived}"
