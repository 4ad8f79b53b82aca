"""Servers that fail in every way that servers do: each row is right, or says what went wrong, and the run goes on."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command import environment, shell
from context_bench import OpenAIProxy, evaluate
from numbered import asked, expected, facts, number_of, numbered, right, write
from servers import Reply, Request, Server, completion, cut, free_port, raw, reply

SLOW = bool(os.environ.get("CONTEXT_BENCH_SLOW"))


# Many faults at once


class Unreliable:
    """10% refuse, 5% fail, 2% hang up, 1% talk nonsense and 1% never answer, by example and attempt."""

    def __init__(self) -> None:
        self.attempts: Counter[int] = Counter()
        self.right: Counter[int] = Counter()
        self.faults: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Reply:
        number = number_of(request)
        with self._lock:
            self.attempts[number] += 1
            draw = random.Random(f"{number} {self.attempts[number]}").random()
        for share, kind, answer in (
            (0.10, "429", reply(429, {"error": {"message": "slow down"}}, headers={"Retry-After": "0.01"})),
            (0.15, "500", reply(500, {"error": {"message": "oops"}})),
            (0.16, "cut at once", cut()),
            (0.17, "cut in the middle", cut(after=100)),
            (0.18, "garbage", raw(b"<html>busy</html>")),
            (0.19, "never", Reply(delay=60.0)),
        ):
            if draw < share:
                with self._lock:
                    self.faults[kind] += 1
                return answer
        with self._lock:
            self.right[number] += 1
        return right(request)


def test_an_unreliable_server_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    count = 10_000 if SLOW else 2_000
    behaviour = Unreliable()
    with Server(behaviour) as server:
        proxy = OpenAIProxy(server.url, name="proxy", max_retries=8, retry_base_delay=0.005, timeout=0.5, deadline=60.0)
        result = evaluate(proxy, numbered(*range(count)), max_workers=32, cache_dir=tmp_path)
    assert set(behaviour.faults) == {"429", "500", "cut at once", "cut in the middle", "garbage", "never"}
    assert [row.error for row in result.rows if row.error] == []
    assert facts(result.rows) == expected(*range(count))
    assert set(behaviour.right.values()) == {1}, "an example was answered and asked again"
    assert len(behaviour.right) == count
    assert asked(server) == behaviour.attempts
    # No more attempts were made than the server saw; fewer only where the client resent one by itself.
    assert sum(row.metadata["attempts"] for row in result.rows) <= len(server.chats)
    assert result.summary["proxy"]["num_errors"] == 0


# One fault, one example: the others are answered


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (raw(b'{"choices": [{"message": {"content": "caf\xe9"}}]}'), "not JSON"),
        (raw(b""), "not JSON"),
        (raw(b"null"), "not a chat completion"),
        (raw(b"[" * 100_000), "not JSON"),
        (reply(200, {"choices": []}), "not a chat completion"),
        (reply(500, {"error": {"message": "the model is on fire"}}), "the model is on fire"),
        (reply(418, {"detail": "short and stout"}), "short and stout"),
        (cut(), ""),
        (cut(after=200), ""),
    ],
)
def test_a_fault_is_the_row_of_its_example(fault: Reply, said: str) -> None:
    with Server(lambda request: fault if number_of(request) == 2 else right(request)) as server:
        proxy = OpenAIProxy(server.url, max_retries=1, retry_base_delay=0.0, timeout=2.0)
        result = evaluate(proxy, numbered(1, 2, 3), max_workers=3)
    first, failed, last = result.rows
    assert facts([first, last]) == expected(1, 3)
    assert failed.error is not None
    assert said in failed.error
    assert (failed.scores, failed.response) == ({}, "")


def test_text_that_is_escaped_badly_is_still_text() -> None:
    """A lone surrogate is valid JSON by its letters; it is an answer, and it can be reported."""
    body = b'{"choices": [{"message": {"content": "c1 \\ud800"}}]}'
    with Server(raw(body)) as server:
        proxy = OpenAIProxy(server.url, max_retries=0, timeout=2.0)
        (row,) = (result := evaluate(proxy, numbered(1))).rows
    assert row.error is None or "not JSON" in row.error
    assert result.to_json()


def test_a_server_that_closes_connections_at_will() -> None:
    """Every second reply ends its connection without a word: the next request on it must not suffer."""

    def closing(request: Request) -> Reply:
        answer = right(request)
        if number_of(request) % 2:
            answer.headers["Connection"] = "close"
        return answer

    with Server(closing) as server:
        result = evaluate(OpenAIProxy(server.url, retry_base_delay=0.0), numbered(*range(60)), max_workers=4)
    assert facts(result.rows) == expected(*range(60))


@contextmanager
def bare_server(talk: Any) -> Iterator[str]:
    """A server without HTTP: `talk` gets each connection after the request, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                while data := connection.recv(65536):
                    if b"\r\n\r\n" in data:
                        talk(connection, data, done)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def _answer(connection: socket.socket, data: bytes) -> None:
    body = right(Request("POST", "", {}, data, 0.0)).body if b"code of item" in data else b"{}"
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_a_server_that_sends_a_byte_now_and_then() -> None:
    def loris(connection: socket.socket, data: bytes, done: threading.Event) -> None:
        if b"code of item 2?" not in data:
            _answer(connection, data)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not done.wait(0.05):
            connection.sendall(b" ")

    with bare_server(loris) as url:
        started = time.monotonic()
        proxy = OpenAIProxy(url, max_retries=1, retry_base_delay=0.0, timeout=0.5)
        result = evaluate(proxy, numbered(1, 2, 3), max_workers=3)
        seconds = time.monotonic() - started
    assert facts([result.rows[0], result.rows[2]]) == expected(1, 3)
    assert "TimedOut" in (result.rows[1].error or "")
    assert "bytes of the reply had arrived" in (result.rows[1].error or "")
    assert seconds < 30  # two attempts of half a second; the whole reply would take an hour


def test_a_reply_without_end_is_refused_and_not_kept_in_memory() -> None:
    sent = Counter[str]()
    megabyte = b"x" * 2**20

    def flood(connection: socket.socket, data: bytes, done: threading.Event) -> None:
        if b"code of item 2?" not in data:
            _answer(connection, data)
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(500):
                connection.sendall(b"100000\r\n%s\r\n" % megabyte)
                sent["MB"] += 1
        except OSError:
            return

    with bare_server(flood) as url:
        proxy = OpenAIProxy(url, max_retries=3, retry_base_delay=0.0, timeout=20.0)
        result = evaluate(proxy, numbered(1, 2, 3), max_workers=3)
    assert facts([result.rows[0], result.rows[2]]) == expected(1, 3)
    assert "larger than 64 MB" in (result.rows[1].error or "")
    assert sent["MB"] < 100  # hung up on, and not asked again: no retry makes it smaller


def test_an_announced_size_is_enough_to_refuse() -> None:
    def announce(connection: socket.socket, data: bytes, done: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n" + b"x" * 1000)

    with bare_server(announce) as url:
        started = time.monotonic()
        (row,) = evaluate(OpenAIProxy(url, timeout=60.0), numbered(1)).rows
    assert "larger than 64 MB" in (row.error or "")
    assert time.monotonic() - started < 40


def test_a_redirect_is_not_followed_and_the_key_stays_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-0123456789")
    with Server(completion("stolen")) as elsewhere:
        away = reply(307, headers={"Location": f"{elsewhere.url}/v1/chat/completions"})
        with Server(lambda request: away if number_of(request) == 2 else right(request)) as server:
            result = evaluate(OpenAIProxy(server.url), numbered(1, 2, 3), max_workers=3)
            assert all("sk-loopback-0123456789" in request.headers["authorization"] for request in server.chats)
    assert elsewhere.requests == []
    assert facts([result.rows[0], result.rows[2]]) == expected(1, 3)
    assert "redirect" in (result.rows[1].error or "")
    assert elsewhere.url in (result.rows[1].error or "")
    assert asked(server)[2] == 1


def test_a_slow_server_is_not_a_dead_one() -> None:
    """Time-outs on connections that were kept open are no failed connections, however many there are."""
    quick = threading.Event()

    def slow(request: Request) -> Reply:
        answer = right(request)
        answer.delay = 0.0 if quick.is_set() or number_of(request) < 4 else 30.0
        if number_of(request) >= 30:
            quick.set()
        return answer

    with Server(slow) as server:
        result = evaluate(OpenAIProxy(server.url, max_retries=0, timeout=0.1), numbered(*range(40)), max_workers=4)
    failed = [row for row in result.rows if row.error]
    assert 20 < len(failed) < 32
    assert all("TimedOut" in (row.error or "") for row in failed)
    assert facts(result.rows[-4:]) == expected(36, 37, 38, 39)


def test_a_server_that_dies_in_the_middle_and_its_neighbour() -> None:
    """The one is said to be dead within seconds; the other goes on to the end."""
    answered = Counter[str]()

    def dies(request: Request) -> Reply:
        answered["one"] += 1
        if answered["one"] == 10:
            threading.Thread(target=one.stop).start()
        return right(request)

    with Server(right) as two:
        one = Server(dies)
        one.__enter__()
        started = time.monotonic()
        systems = [
            OpenAIProxy(one.url, name="dies", retry_base_delay=0.01, timeout=2.0),
            OpenAIProxy(two.url, name="lives"),
        ]
        result = evaluate(systems, numbered(*range(80)), max_workers=4)
        seconds = time.monotonic() - started
    dead = result.filter(system="dies").rows
    assert facts(result.filter(system="lives").rows) == expected(*range(80))
    assert dead[-1].error is not None
    assert "is down" in dead[-1].error
    assert seconds < 60


# Nobody there


def test_a_dead_endpoint_beside_a_live_one(tmp_path: Path) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    with Server(right) as live:
        started = time.monotonic()
        systems = [OpenAIProxy(dead, name="dead", timeout=5.0), OpenAIProxy(live.url, name="live")]
        with pytest.warns(UserWarning, match="dead was stopped after its first request: .* is down"):
            result = evaluate(systems, numbered(*range(100)), max_workers=4)
        seconds = time.monotonic() - started
    assert facts(result.filter(system="live").rows) == expected(*range(100))
    assert {row.error is not None and "is down" in row.error for row in result.filter(system="dead").rows} == {True}
    assert result.summary["dead"]["num_errors"] == 1, "the others need not be tried"
    assert seconds < 30


def test_the_look_at_an_endpoint_before_the_run_costs_no_request() -> None:
    with Server(right) as server:
        evaluate(OpenAIProxy(server.url), numbered(*range(5)))
        assert [request.method for request in server.requests] == 5 * ["POST"]


def test_a_reader_that_several_compressors_share_gets_their_requests_alone(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1, 2)
    with Server(right) as server:
        systems = ["--system", "passthrough", "--system", "closed-book", "--system", "truncate:ratio=0.9"]
        done = shell(*systems, "--reader", server.url, "--dataset", "data.jsonl", "--no-store", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == len(server.chats) == 6


# Keys


KEY = "sk-env-0123456789/abcdef+XYZ=="
HEADER = "tok_9876543210fedcba"
COOKIE = 'session=c00kie-0123456789"x; theme=dark'
SECRETS = (KEY, HEADER, "c00kie-0123456789")


def tells_all(request: Request) -> Reply:
    """Repeats everything that it was sent, as an answer or as an error."""
    if number_of(request) == 2:
        return reply(400, {"error": {"message": f"bad headers {request.headers}"}}, headers={"X-Echo": KEY})
    if number_of(request) == 3:
        return reply(302, headers={"Location": f"http://127.0.0.1:1/{KEY}/{HEADER}"})
    if number_of(request) == 4:
        return raw(str(request.headers).encode())
    if number_of(request) == 5:  # as PHP writes JSON
        return raw(completion(f"c5 {request.headers}").body.replace(b"/", b"\\/"))
    return completion(f"c1 {request.headers}", reasoning=KEY)


@pytest.mark.parametrize("by_file", [False, True], ids=["flags", "run file"])
def test_keys_are_nowhere_on_disk_or_on_the_screen(tmp_path: Path, by_file: bool) -> None:
    write(tmp_path / "data.jsonl", 1, 2, 3, 4, 5)
    with Server(tells_all) as server:
        arguments = ["--proxy", server.url, "--dataset", "data.jsonl", "--max-retries", "0", "--verbose"]
        if by_file:
            (tmp_path / "bench").mkdir()
            run_file = tmp_path / "bench" / "bench.toml"
            run_file.write_text(f"header = ['X-Secret: {HEADER}', 'Cookie: {COOKIE}']\n")
            arguments = ["run", str(run_file), *arguments]
        else:
            arguments += ["--header", f"X-Secret: {HEADER}", f"--header=Cookie: {COOKIE}"]
        for more in ([], ["--resume", "--output", "json", "--out", "out.json"]):
            done = shell(*arguments, *more, cwd=tmp_path, env=environment(OPENAI_API_KEY=KEY))
            assert done.returncode == 3, done.stderr
            for secret in SECRETS:
                assert secret not in done.stdout
                assert secret not in done.stderr
            assert "POST" in done.stderr
        assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.chats)
        assert all(request.headers["x-secret"] == HEADER for request in server.chats)
        assert all(request.headers["cookie"] == COOKIE for request in server.chats)
    shown = shell("runs", "export", "last", "--output", "json", cwd=tmp_path)
    assert "bad headers" in shown.stdout, "the error is there, without the key"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "bench.toml"]
    assert any(path.suffix == ".db" for path in files)
    for path in files:
        content = path.read_bytes()
        for secret in SECRETS:
            assert secret.encode() not in content, path
            assert secret.encode().replace(b"/", b"\\/") not in content, path
