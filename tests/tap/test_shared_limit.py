"""One limit of requests per minute for all that use a server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from context_bench.tap.answering import Shared


def test_the_taps_and_the_reader_share_one_limit() -> None:
    """Six requests at 3,000 a minute, one each 20 ms: the last one is let through after 100 ms, whoever asks."""
    sent: list[float] = []

    class Model:
        async def answer(self, request: Any) -> None:
            sent.append(time.perf_counter())

    shared = Shared(Model(), max_rpm=3000)  # type: ignore[arg-type]

    async def ask_all() -> float:
        started = time.perf_counter()
        waits = (shared.wait_for_turn() for _ in range(3))
        await asyncio.gather(*(shared.answer(None) for _ in range(3)), *waits)  # type: ignore[arg-type]
        return time.perf_counter() - started

    assert asyncio.run(ask_all()) >= 0.1
    assert len(sent) == 3
    assert sent[-1] - sent[0] >= 0.039
