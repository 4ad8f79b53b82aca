"""Whether a request of a system was alone in flight, and what a proxy adds to it then."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from context_bench import EvalResult, OpenAIProxy, evaluate
from context_bench.evaluators import AnswerQuality
from context_bench.metrics import ProxyOverhead
from context_bench.summary import fold
from context_bench.tap.forward import Forward
from context_bench.tap.system import Tapped
from recording import Recorder, examples, facts
from servers import free_port
from toy_proxies import Toy, toy_proxy


def test_requests_at_once_are_not_alone() -> None:
    data = examples(8)
    with Recorder() as recorder:
        port = free_port()
        with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:

            def measure(workers: int) -> EvalResult:
                system = Tapped(OpenAIProxy(url, name="toy"), Forward(recorder.url), port=port)
                return evaluate(system, data, [AnswerQuality()], progress=False, max_workers=workers)

            one, many = measure(1), measure(8)
    assert facts(one, "alone") == [True] * 8
    assert facts(many, "alone").count(True) < 4


class OneAtATime(Toy):
    """Works 20 ms on each request, and on no two at once."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.turn = asyncio.Lock()

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        async with self.turn:
            await asyncio.sleep(0.02)
        return await super().exchange(request, headers, body)


def test_waiting_for_other_requests_is_not_what_a_proxy_adds() -> None:
    alone, crowd = examples(20), [{**example, "id": f"again {example['id']}"} for example in examples(24)]
    with Recorder() as recorder:
        port = free_port()
        with toy_proxy(OneAtATime, f"http://127.0.0.1:{port}") as url:

            def measure(data: list[dict[str, Any]], workers: int) -> EvalResult:
                system = Tapped(OpenAIProxy(url, name="toy"), Forward(recorder.url), port=port)
                return evaluate(system, data, [AnswerQuality()], progress=False, max_workers=workers)

            one, many = measure(alone, 1), measure(crowd, 8)
    assert many.summary["toy"]["proxy_overhead_median"] > 0.08
    assert 0.02 < one.summary["toy"]["proxy_overhead_median"] < 0.08
    tally = ProxyOverhead().start()
    both = fold(tally, [*many.rows, *one.rows])
    assert 0.02 < both["proxy_overhead_median"] < 0.08
    assert 20 <= both["proxy_overhead_rows"] < 30
    assert tally.notes() == {}
    tally = ProxyOverhead().start()
    fold(tally, many.rows)
    assert tally.notes()["proxy_overhead_median"].startswith("includes waiting: ")


def test_one_connection_is_one_request_in_flight_however_many_wait_for_it() -> None:
    with Recorder() as recorder:
        port = free_port()
        with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
            system = Tapped(OpenAIProxy(url, name="toy", max_connections=1), Forward(recorder.url), port=port)
            result = evaluate(system, examples(6), [AnswerQuality()], progress=False, max_workers=6)
    assert facts(result, "alone") == [True] * 6
