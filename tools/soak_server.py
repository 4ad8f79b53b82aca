"""Servers of the soak, on loopback: a model that misbehaves in every way that servers do, and a judge.

Both are driven by the number of the example in the request, so that a stored row can be checked against what was
sent. They keep counters for each number and no bodies: their memory is not what is measured.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from attacks import DECEPTIONS, SUM

__all__ = ["HostileModel", "Judge", "expect_answer", "expect_judge_score", "make_example", "serve"]

CODE_EVERY = 10
"""One example in so many is a programming task."""

HUGE_BYTES, BIG_BYTES = 20_000_000, 500_000

QUIET_UNTIL = 5
"""The first examples are answered well: a run stops early when its first request says that all others will fail."""

_ATTACKS = sorted(name for name, attack in DECEPTIONS.items() if attack.test == SUM)
_NUMBER = re.compile(rb"code of item (\d+)\?")
_ODD_USAGE: tuple[Any, ...] = (
    {"prompt_tokens": -5, "completion_tokens": -1, "total_tokens": -6},
    {"prompt_tokens": 2 * 10**18, "completion_tokens": 2 * 10**18},
    {"prompt_tokens": "many", "completion_tokens": 1.5},
    {"prompt_tokens": None, "prompt_tokens_details": {"cached_tokens": 10**30}},
    [1, 2, 3],
)
_FAULTS = {
    "429": 0.03,
    "500": 0.02,
    "503": 0.02,
    "reset": 0.01,
    "closed": 0.01,
    "cut": 0.01,
    "garbage": 0.01,
    "nested": 0.005,
    "no http": 0.005,
    "drip without end": 0.003,
    "hang": 0.003,
}
"""Shares of attempts that fail, by kind."""

_ODDITIES = {"odd usage": 0.08, "drip": 0.02, "big": 0.005}
"""Shares of attempts that are answered in an odd way."""

_ALWAYS_FAILING = ("500", "garbage", "nested", "cut")


def make_example(number: int) -> dict[str, Any]:
    """Make the example of a number: a question, or a programming task."""
    if number % CODE_EVERY == CODE_EVERY - 1:
        question = f"Write add(a, b), their sum: what is the code of item {number}?"
        return {"id": number, "context": "", "question": question, "test": SUM, "entry_point": "add"}
    filler = " ".join(f"Line {number}.{line} says nothing of use." for line in range(20))
    context = f"{filler} Item {number} has the code c{number}. {filler}"
    return {"id": number, "context": context, "question": f"code of item {number}?", "answer": f"c{number}"}


def expect_answer(number: int) -> tuple[str, str, float]:
    """Give what a well-answered row of a number has: the start of its response, a score's name and its value."""
    if number % CODE_EVERY != CODE_EVERY - 1:
        return f"c{number}", "contains", 1.0
    chance = random.Random(f"code {number}")
    if chance.random() < 0.7:
        return "```python\ndef add(a, b):\n    return a + b\n```", "pass_at_1", 1.0
    return f"```python\n{DECEPTIONS[chance.choice(_ATTACKS)].program}\n```", "pass_at_1", 0.0


def expect_judge_score(number: int) -> float:
    """Give the score that the judge's rating of a number means."""
    return number % 5 / 4


class _Model(ABC):
    """Counts what comes, and answers by `answer`."""

    def __init__(self) -> None:
        self.seen: Counter[int] = Counter()
        self.answers: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        """For each number, when each good answer was asked for and when its last byte was written."""
        self.faults: Counter[str] = Counter()

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while (body := await _read_request(reader)) is not None:
                found = _NUMBER.search(body)
                if found is None:
                    await _send(writer, 404, b"{}")
                elif not await self.answer(int(found[1]), writer):
                    break
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the client has gone, or the soak is over
        finally:
            writer.close()

    @abstractmethod
    async def answer(self, number: int, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False ends the connection."""

    async def complete(self, number: int, text: str, writer: asyncio.StreamWriter, **manner: Any) -> None:
        """Send a chat completion, and note it once its last byte is written."""
        asked = time.monotonic()
        usage = manner.pop("usage", {"prompt_tokens": 700, "completion_tokens": 5, "total_tokens": 705})
        await _send(writer, 200, _encode_completion(text, usage), **manner)
        self.answers[number].append((asked, time.monotonic()))


class HostileModel(_Model):
    """Answers at most `rate` requests a second, and misbehaves by a draw for each number and attempt.

    Args:
        seed: Of the draws.
        rate: Good answers in a second.
        until: The moment (`time.monotonic`) from which on it answers at once and well.
        huge_every: One in so many answers is so long that reading it takes seconds; None has none of these.
    """

    def __init__(self, seed: int, rate: float, until: float, *, huge_every: int | None = None) -> None:
        super().__init__()
        self.seed, self.rate, self.until, self.huge_every = seed, rate, until, huge_every
        self._next = time.monotonic()

    async def answer(self, number: int, writer: asyncio.StreamWriter) -> bool:
        """Answer well, in an odd way, or not at all."""
        self.seen[number] += 1
        kind = self.draw(number, self.seen[number])
        text = expect_answer(number)[0]
        if kind:
            self.faults[kind] += 1
        if kind in _FAULTS:
            return await _fail(kind, writer)
        await self._wait_for_turn()
        if kind == "drip":
            await self.complete(number, text, writer, pause=0.02)
        elif kind == "odd usage":
            await self.complete(number, text, writer, usage=_ODD_USAGE[number % len(_ODD_USAGE)])
        elif kind in ("big", "huge"):
            size = BIG_BYTES if kind == "big" else HUGE_BYTES
            await self.complete(number, text + "\n" + f"Padding of item {number}. " * (size // 25), writer)
        else:
            await self.complete(number, text, writer)
        return True

    def draw(self, number: int, attempt: int) -> str:
        """Draw what to do with an attempt: a fault, an oddity, or "" for a plain answer."""
        if number < QUIET_UNTIL or time.monotonic() > self.until:
            return ""
        always = random.Random(f"always {self.seed} {number}")
        if always.random() < 0.02:
            return always.choice(_ALWAYS_FAILING)
        draw = random.Random(f"{self.seed} {number} {attempt}").random()
        for kind, share in _FAULTS.items():
            if draw < share:
                return kind
            draw -= share
        if number % CODE_EVERY == CODE_EVERY - 1:
            return ""  # a program with padding is another program
        if self.huge_every and number % self.huge_every == 20:
            return "huge"
        for kind, share in _ODDITIES.items():
            if draw < share:
                return kind
            draw -= share
        return ""

    async def _wait_for_turn(self) -> None:
        now = time.monotonic()
        if now > self.until:
            return
        self._next = max(self._next + 1 / self.rate, now)
        await asyncio.sleep(self._next - now)


class Judge(_Model):
    """Rates by the number alone; now and then it fails, or talks nonsense."""

    async def answer(self, number: int, writer: asyncio.StreamWriter) -> bool:
        """Rate, or fail."""
        self.seen[number] += 1
        draw = random.Random(f"judge {number} {self.seen[number]}").random()
        if draw < 0.03:
            self.faults["500"] += 1
            return await _fail("500", writer)
        if draw < 0.04:
            self.faults["reset"] += 1
            return await _fail("reset", writer)
        if draw < 0.05:
            self.faults["no rating"] += 1
            await self.complete(number, "It depends.", writer)
        else:
            await self.complete(number, json.dumps({"rating": number % 5 + 1, "rationale": "by the number"}), writer)
        return True


async def _read_request(reader: asyncio.StreamReader) -> bytes | None:
    """Read one request's body; None when the client has gone."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        return await reader.readexactly(int(length[1]) if length else 0)
    return None


async def _send(
    writer: asyncio.StreamWriter, status: int, body: bytes, *, head: str = "", pause: float = 0.0, length: int = -1
) -> None:
    size = len(body) if length < 0 else length
    writer.write(
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{head}Content-Length: {size}\r\n\r\n".encode()
    )
    if pause:
        step = max(1, len(body) // 40)
        for start in range(0, len(body), step):
            writer.write(body[start : start + step])
            await writer.drain()
            await asyncio.sleep(pause)
    else:
        writer.write(body)
    await writer.drain()


async def _fail(kind: str, writer: asyncio.StreamWriter) -> bool:
    """Fail in the way of that kind; whether the connection lives on."""
    if kind in ("429", "500", "503"):
        retry = "Retry-After: 0.05\r\n" if kind == "429" else ""
        await _send(writer, int(kind), b'{"error": {"message": "not now"}}', head=retry)
        return True
    if kind == "garbage":
        await _send(writer, 200, b"<html>busy \xff\xfe</html>")
        return True
    if kind == "nested":
        await _send(writer, 200, b"[" * 50_000)
        return True
    if kind == "no http":
        writer.write(b"\x00\x01\x02 this is not HTTP\r\n\r\n" * 5)
        await writer.drain()
    elif kind == "cut":
        await _send(writer, 200, b'{"choices": [{"mess', length=500)
    elif kind == "reset":
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    elif kind == "hang":
        await asyncio.sleep(30.0)
    elif kind == "drip without end":
        await _send(writer, 200, b" " * 40, pause=0.75, length=10**6)
    return False


def _encode_completion(text: str, usage: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


@contextmanager
def serve(converse: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> Iterator[str]:
    """Serve on a free port of loopback, in a thread; the URL."""
    loop, started, address = asyncio.new_event_loop(), threading.Event(), ""

    async def start() -> None:
        nonlocal address
        server = await asyncio.start_server(converse, "127.0.0.1", 0, limit=2**22, backlog=1024)
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait()
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
