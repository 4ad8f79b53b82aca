"""An endpoint: one call, however many attempts it takes, and never more than it says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from itertools import pairwise
from typing import Any

import pytest

from context_bench.errors import ConnectionFailed, RequestFailed, TimedOut
from context_bench.http import Endpoint, Exchange, RetryPolicy, Secret
from context_bench.http.endpoint import encode, shorten_body
from context_bench.http.transport import join_shared_transport, leave_shared_transport
from servers import Reply, Request, Server, cut, free_port, hang, raw, reply
from timing import depends_on_time

KEY = "sk-test-0123456789abcdef"
FAST = RetryPolicy(max_retries=3, base_delay=0.01, deadline=10.0)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def main() -> Any:
        join_shared_transport()
        try:
            return await work
        finally:
            await leave_shared_transport()

    return asyncio.run(asyncio.wait_for(main(), 20))


def post(server: Server | str, body: Any = None, policy: RetryPolicy = FAST, **options: Any) -> Exchange:
    url = server if isinstance(server, str) else server.url

    async def main() -> Exchange:
        return await Endpoint(url, policy=policy, **options).post("/path", {} if body is None else body)

    exchange: Exchange = run(main())
    return exchange


def refusal(server: Server | str, **options: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as caught:
        post(server, **options)
    return caught.value


def test_a_reply_and_its_facts() -> None:
    with Server(reply(200, {"a": [1, "ü"]})) as server:
        exchange = post(server, {"q": "ä"}, headers={"X-Mine": "yes", "Authorization": Secret(f"Bearer {KEY}")})
    assert exchange.document == {"a": [1, "ü"]}
    assert exchange.attempts == 1
    assert exchange.waited < 5
    assert 0 < exchange.seconds < 5
    (request,) = server.requests
    assert (request.path, request.json) == ("/path", {"q": "ä"})
    assert request.headers["content-type"] == "application/json"
    assert (request.headers["x-mine"], request.headers["authorization"]) == ("yes", f"Bearer {KEY}")


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
def test_a_passing_fault_is_tried_again(status: int) -> None:
    with Server(reply(status), reply(status), reply(200, {"ok": 1})) as server:
        exchange = post(server)
    assert exchange.attempts == 3
    assert len(server.requests) == 3
    assert exchange.waited > 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_lasting_fault_fails_at_once_with_what_the_server_said(status: int) -> None:
    with Server(reply(status, {"error": {"message": "model 'x' does not exist"}})) as server:
        error = refusal(server)
        assert len(server.requests) == 1
        assert f"127.0.0.1:{server.port} answered {status}: model 'x' does not exist" in str(error)
    assert error.status == status
    assert error.metadata["attempts"] == 1


def test_retries_end() -> None:
    with Server(reply(500, {"error": "out of memory"})) as server:
        error = refusal(server)
    assert len(server.requests) == 4
    assert "out of memory" in str(error)
    assert "4 attempts" in str(error)
    assert (error.status, error.metadata["attempts"]) == (500, 4)


@depends_on_time("the seconds of the request itself are those of the clock on the wall")
def test_a_rate_limit_uses_up_no_retry_and_its_wish_is_heeded() -> None:
    slow_down = reply(429, headers={"Retry-After": "0.2"})
    with Server(slow_down, slow_down, slow_down, reply(200)) as server:
        exchange = post(server, policy=RetryPolicy(max_retries=1, base_delay=0.01, deadline=10))
    moments = [request.moment for request in server.requests]
    assert all(later - earlier >= 0.19 for earlier, later in pairwise(moments))
    assert exchange.waited >= 0.55
    assert exchange.seconds < 0.3


def test_a_rate_limit_for_ever_ends_at_the_deadline() -> None:
    with Server(reply(429)) as server:
        before = time.monotonic()
        error = refusal(server, policy=RetryPolicy(max_retries=1, base_delay=0.05, deadline=0.6))
    assert time.monotonic() - before < 30
    assert error.status == 429
    assert len(server.requests) >= 2


def test_without_retries_a_rate_limit_is_not_waited_out() -> None:
    with Server(reply(429, headers={"Retry-After": "60"})) as server:
        before = time.monotonic()
        error = refusal(server, policy=RetryPolicy(max_retries=0, base_delay=0.05, deadline=300))
    assert time.monotonic() - before < 30
    assert error.status == 429
    assert len(server.requests) == 1


def test_without_retries_a_rate_limit_holds_nobody_up() -> None:
    async def main(url: str) -> list[Any]:
        endpoint = Endpoint(url, policy=RetryPolicy(max_retries=0, deadline=300))
        return [await asyncio.gather(endpoint.post("/path", {}), return_exceptions=True) for _ in range(5)]

    with Server(reply(429, headers={"Retry-After": "60"})) as server:
        before = time.monotonic()
        failures = run(main(server.url))
    assert time.monotonic() - before < 30
    assert [failure[0].status for failure in failures] == [429] * 5


@depends_on_time("a deadline is a promise about the clock on the wall")
@pytest.mark.parametrize("limit", [None, 1])
def test_everybody_gives_up_on_an_endless_rate_limit_at_the_deadline(limit: int | None) -> None:
    """Most of them never get a turn: the server takes its time to refuse the one that has it."""

    async def main(url: str) -> list[Any]:
        policy = RetryPolicy(max_retries=3, base_delay=0.05, max_delay=0.4, deadline=1.0)
        endpoint = Endpoint(url, policy=policy, limit=limit)
        return await asyncio.gather(*(endpoint.post("/path", {}) for _ in range(30)), return_exceptions=True)

    with Server(reply(429, headers={"Retry-After": "0.4"}, delay=0.2)) as server:
        before = time.monotonic()
        failures = run(main(server.url))
        seconds = time.monotonic() - before
    assert {type(failure) for failure in failures} <= {RequestFailed, TimedOut}
    assert all("waited" in failure.metadata for failure in failures)
    assert seconds < 5.0  # one after the other they would take six and more


def test_our_own_rate_is_no_reason_to_give_up() -> None:
    """Eight requests at four a second take 1.75 seconds, however short the deadline of each is."""

    async def main(url: str) -> list[Any]:
        endpoint = Endpoint(url, policy=RetryPolicy(deadline=1.0), max_rpm=240)
        return await asyncio.gather(*(endpoint.post("/path", {}) for _ in range(8)))

    with Server(reply(200, delay=0.1)) as server:
        exchanges = run(main(server.url))
    assert [exchange.attempts for exchange in exchanges] == [1] * 8
    assert max(exchange.waited for exchange in exchanges) > 1.5


@pytest.mark.parametrize(("told", "seconds"), [(2_000, 1.0), (None, 1.0), (0, 0.0)])
def test_tokens_that_are_not_told_are_guessed_for_the_rate(told: int | None, seconds: float) -> None:
    """2,000 tokens take a second at 120,000 a minute; 8,000 bytes are taken for as many."""

    async def main(url: str) -> float:
        endpoint = Endpoint(url, max_tpm=120_000)
        await endpoint.post("/path", {})
        endpoint.settle(told, "x" * 5_998, "y" * 1_998)
        return (await endpoint.post("/path", {})).waited

    with Server(reply(200)) as server:
        assert run(main(server.url)) == pytest.approx(seconds, abs=0.3)


def test_a_wish_beyond_the_deadline_is_not_waited_for() -> None:
    with Server(reply(429, {"error": "quota exceeded"}, headers={"Retry-After": "86400"})) as server:
        before = time.monotonic()
        error = refusal(server, policy=RetryPolicy(base_delay=0.01, deadline=60.0))
    assert time.monotonic() - before < 30
    assert "quota exceeded" in str(error)


def test_a_rate_limit_slows_down_everyone() -> None:
    """A server that refuses everything is left alone until the time that it named is over."""

    async def main() -> None:
        endpoint = Endpoint(server.url, policy=FAST, limit=4)
        await asyncio.gather(*(endpoint.post("/", {}) for _ in range(12)))

    def over_the_limit(request: Request) -> Reply:
        over = request.moment - server.requests[0].moment < 0.35
        return reply(429, headers={"Retry-After": "0.4"}) if over else reply(200, delay=0.02)

    with Server(over_the_limit) as server:
        run(main())
    first, *others = [request.moment for request in server.requests]
    early = [moment for moment in others if moment - first < 0.35]
    assert len(early) <= 6  # three refusals tell, and as many were on their way


def test_a_single_refusal_holds_up_one_request_only() -> None:
    async def main() -> int:
        endpoint = Endpoint(server.url, limit=2)
        posts = {asyncio.ensure_future(endpoint.post("/", {})) for _ in range(20)}
        while len(posts) > 1:
            done, posts = await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
            assert all(each.result().attempts == 1 for each in done)
        sent = len(server.requests)
        posts.pop().cancel()
        return sent

    patient = [reply(200)] * 5
    with Server(*patient, reply(429, headers={"Retry-After": "60"}), reply(200)) as server:
        assert run(main()) == 20


@pytest.mark.parametrize("after", [0, 10])
def test_a_cut_connection_is_tried_again(after: int) -> None:
    with Server(cut(after), reply(200, {"ok": 1})) as server:
        assert post(server).document == {"ok": 1}


def test_a_connection_that_is_cut_each_time() -> None:
    with Server(cut(10)) as server:
        error = refusal(server)
    assert isinstance(error, ConnectionFailed)
    assert error.metadata["attempts"] == 4
    assert len(server.requests) == 4


@pytest.mark.parametrize("body", [b"", b'{"half": ', b"\xff\xfe", b"NaN"])
def test_garbage_is_tried_again_and_then_shown(body: bytes) -> None:
    with Server(raw(body), reply(200, {"ok": 1})) as server:
        assert post(server).document == {"ok": 1}
    with Server(raw(body)) as server:
        error = refusal(server)
    assert "not JSON" in str(error)
    assert len(server.requests) == 4


def test_a_web_page_is_not_asked_again_unless_the_api_has_answered_before() -> None:
    page = raw(b"\n <!DOCTYPE html><html>It works!</html>")
    with Server(page) as server:
        error = refusal(server)
    assert "It works!" in str(error)
    assert error.metadata["attempts"] == len(server.requests) == 1

    async def ask_twice(url: str) -> list[Exchange]:
        endpoint = Endpoint(url, policy=FAST)
        return [await endpoint.post("/path", {}) for _ in range(2)]

    with Server(reply(200, {"ok": 1}), page, reply(200, {"ok": 2})) as server:
        first, second = run(ask_twice(server.url))
    assert (first.document, second.document) == ({"ok": 1}, {"ok": 2})
    assert second.attempts == 2


@depends_on_time("a time-out is a promise about the clock on the wall")
def test_an_answer_that_comes_too_late() -> None:
    with Server(hang(5), reply(200)) as server:
        assert post(server, timeout=0.2).attempts == 2
    with Server(hang(5)) as server:
        before = time.monotonic()
        policy = RetryPolicy(max_retries=1, base_delay=0.01, deadline=5.0)
        assert isinstance(refusal(server, timeout=0.2, policy=policy), TimedOut)
        assert time.monotonic() - before < 4.8  # one answer alone would take five


def test_a_redirect_is_an_error_that_says_so() -> None:
    with Server() as elsewhere, Server(reply(307, headers={"Location": f"{elsewhere.url}/new"})) as server:
        error = refusal(server, headers={"Authorization": Secret(KEY)})
    assert elsewhere.requests == []
    assert f"{elsewhere.url}/new" in str(error)
    assert "not followed" in str(error)


def test_no_more_in_flight_than_the_limit() -> None:
    async def main() -> None:
        endpoint = Endpoint(server.url, limit=3)
        await asyncio.gather(*(endpoint.post("/", {}) for _ in range(20)))

    with Server(reply(200, delay=0.01)) as server:
        run(main())
    assert server.most_in_flight == 3
    assert len(server.requests) == 20


def test_a_body_that_cannot_be_made_takes_nobodys_place() -> None:
    def broken() -> Any:
        raise ValueError("no body")

    async def main() -> Exchange:
        endpoint = Endpoint(server.url, limit=1)
        with pytest.raises(ValueError, match="no body"):
            await endpoint.post("/", broken)
        return await endpoint.post("/", {})

    with Server(reply(200)) as server:
        assert run(main()).attempts == 1


def test_a_dead_server_is_found_out_before_the_first_example() -> None:
    async def main() -> tuple[float, list[Any]]:
        endpoint = Endpoint(f"http://127.0.0.1:{free_port()}")
        before = time.monotonic()
        await endpoint.probe()
        results = await asyncio.gather(*(endpoint.post("/", {}) for _ in range(50)), return_exceptions=True)
        return time.monotonic() - before, results

    seconds, results = run(main())
    assert seconds < 30  # each of them alone would be tried for minutes
    assert all(isinstance(each, ConnectionFailed) and "is down" in str(each) for each in results)


@pytest.mark.parametrize("answer", [reply(500), reply(401), hang(0.5)])
def test_whoever_answers_anything_is_alive(answer: Any) -> None:
    async def main() -> Exchange:
        endpoint = Endpoint(server.url, policy=FAST)
        await endpoint.probe()
        return await endpoint.post("/", {})

    with Server(reply(200)) as server:
        assert run(main()).attempts == 1


def test_a_server_that_comes_back_is_used_again() -> None:
    port = free_port()
    endpoint = Endpoint(f"http://127.0.0.1:{port}", policy=FAST)

    async def attempt() -> Any:
        await endpoint.probe()
        return await endpoint.post("/", {})

    with pytest.raises(ConnectionFailed):
        run(attempt())
    with Server(reply(200, {"ok": 1}), port=port):
        assert run(attempt()).document == {"ok": 1}


def test_a_server_that_dies_in_the_middle_costs_seconds() -> None:
    async def main() -> tuple[float, list[Any]]:
        endpoint = Endpoint(server.url, policy=RetryPolicy(max_retries=3, base_delay=0.05))
        await endpoint.post("/", {})
        server.stop()
        before = time.monotonic()
        results = [await asyncio.gather(endpoint.post("/", {}), return_exceptions=True) for _ in range(200)]
        return time.monotonic() - before, [each for (each,) in results]

    server = Server(reply(200))
    with server:
        seconds, results = run(main())
    assert all(isinstance(each, ConnectionFailed) for each in results)
    assert "is down" in str(results[-1])
    assert seconds < 30  # with its retries each of the 200 would take a third of a second


# What is shown and what is not


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "no such model", "code": 7}}', "no such model"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"message": "no such model"}', "no such model"),
        (b'{"detail": "no such model"}', '{"detail": "no such model"}'),
        (b"plain\n  text", "plain text"),
        (b"", "(empty body)"),
        (b"[1, 2]", "[1, 2]"),
        (b'"text"', '"text"'),
        (b"null", "null"),
        (b'{"error": null}', '{"error": null}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_what_a_server_said(body: bytes, text: str) -> None:
    assert shorten_body(body) == text


def test_a_long_answer_is_cut() -> None:
    assert len(shorten_body(b"x" * 100_000)) <= 400


def test_an_error_that_echoes_the_key_does_not_spread_it() -> None:
    said = {"error": {"message": f"bad header 'Bearer {KEY}' {'x' * 340} {KEY}"}}
    for status in (401, 500):
        with Server(reply(status, said)) as server:
            error = refusal(server, headers={"Authorization": Secret(f"Bearer {KEY}")})
        assert "bad header" in str(error)
        assert KEY not in str(error)
        assert KEY[:12] not in str(error)
    with Server(raw(f"not json {KEY}".encode())) as server:
        assert KEY not in str(refusal(server, headers={"Authorization": Secret(f"Bearer {KEY}")}))
    with Server(raw(b"", 302, {"Location": f"http://elsewhere/?key={KEY}"})) as server:
        assert KEY not in str(refusal(server, headers={"Authorization": Secret(f"Bearer {KEY}")}))


def test_an_endpoint_shows_no_key() -> None:
    endpoint = Endpoint("https://api.example.com", headers={"Authorization": Secret(f"Bearer {KEY}")})
    assert KEY not in repr(endpoint)
    assert KEY not in repr(vars(endpoint))
    with Server(reply(200, {"heard": KEY})) as server:
        used = Endpoint(server.url, headers={"Authorization": Secret(f"Bearer {KEY}")})
        assert run(used.post("/", {})).document == {"heard": "***"}
    assert KEY not in repr(vars(used))


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ({"a": "ü"}, '{"a":"ü"}'),
        ({"a": "\ud800x"}, '{"a":"?x"}'),
        ({"a": 2**70}, '{"a":"1180591620717411303424"}'),
    ],
)
def test_everything_can_be_sent(body: Any, sent: str) -> None:
    assert encode(body).decode() == sent


def test_a_byte_order_mark_before_a_body_is_no_part_of_it() -> None:
    with Server(raw(b'\xef\xbb\xbf{"a": 1}')) as server:
        assert post(server).document == {"a": 1}
