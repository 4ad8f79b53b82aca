"""`context-bench tap` as a process: it listens, shows, records, and ends when it is told to."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command import called, environment
from context_bench.cli.tap import Log
from context_bench.store import Store
from context_bench.tap.answering import Incoming
from context_bench.traffic.calls import Call
from context_bench.utils.tokens import count_tokens
from servers import Server, completion, free_port, reply

KEY = "sk-live-0123456789abcdef"
BODY = {"model": "m", "messages": [{"role": "user", "content": "What is the capital of France?"}]}


class Process:
    """A tap in a process of its own."""

    def __init__(self, folder: Path, *arguments: str, host: str = "", **options: Any) -> None:
        self.port = free_port()
        self._err = (folder / "stderr.txt").open("w+b")
        command = [sys.executable, "-m", "context_bench", "tap", "--listen", f"{host}:{self.port}", *arguments]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": self._err}
        self._process = subprocess.Popen(command, cwd=folder, env=environment(), **pipes, **options)
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self._process.poll() is None, self.err
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    @property
    def err(self) -> str:
        self._err.seek(0)
        return self._err.read().decode()

    def post(self, body: Any = BODY, path: str = "/v1/chat/completions") -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def end(self, number: int = signal.SIGINT) -> tuple[int, bytes]:
        self._process.send_signal(number)
        out, _ = self._process.communicate(timeout=20)
        return self._process.returncode, out

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
        self._err.close()


@contextmanager
def tapping(folder: Path, *arguments: str, host: str = "", **options: Any) -> Iterator[Process]:
    process = Process(folder, *arguments, host=host, **options)
    try:
        yield process
    finally:
        process.close()


pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_by_a_script_and_records_what_came(tmp_path: Path, number: int) -> None:
    with tapping(tmp_path, "--reply", "text:Paris", "--verbose") as tap:
        status, document = tap.post({**BODY, "tools": [{"type": "function", "function": {"name": "look"}}]})
        assert (status, document["choices"][0]["message"]["content"]) == (200, "Paris")
        assert tap.post({"model": "m", "max_tokens": 9, "messages": BODY["messages"]}, "/v1/messages")[0] == 200
        code, out = tap.end(number)
        err = tap.err
    question = count_tokens("What is the capital of France?")
    tools = count_tokens('{"type":"function","function":{"name":"look"}}')
    assert (code, out) == (0, b"")
    assert f"the tap listens on http://127.0.0.1:{tap.port} " in err
    assert re.search(
        rf"^\d\d:\d\d:\d\d /v1/chat/completions: {question + tools} tokens, 1 tools, 200, \d\.\d\d s$", err, re.M
    )
    assert re.search(rf"^\d\d:\d\d:\d\d /v1/messages: {question} tokens, 0 tools, 200, \d\.\d\d s$", err, re.M)
    assert f"context-bench: 2 requests, {2 * question + tools} tokens, recorded as run " in err.splitlines()[-1]
    with Store(tmp_path / ".context-bench", readonly=True) as store:
        (run,) = store.runs()
        first, second = store.run_requests(run)
    assert (run.status, run.config["kind"]) == ("done", "tap")
    assert run.config["command"][:3] == ["context-bench", "tap", "--listen"]
    assert (first["path"], first["tokens"], first["status"]) == ("/v1/chat/completions", question + tools, 200)
    assert json.loads(first["body"])["messages"] == BODY["messages"]
    assert json.loads(first["reply"])["choices"][0]["message"]["content"] == "Paris"
    assert 0 < first["started"] <= first["first"] <= first["ended"] < second["started"] < 60
    assert run.id in called("runs", "list", cwd=tmp_path).stdout
    shown = called("runs", "show", "last", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_what_it_recorded_can_be_imported_and_run(tmp_path: Path) -> None:
    streamed = json.dumps({**BODY, "stream": True}).encode()
    with tapping(tmp_path, "--reply", "text:Paris") as tap:
        tap.post(BODY)
        with urllib.request.urlopen(f"http://127.0.0.1:{tap.port}/v1/chat/completions", streamed, timeout=20) as reply:
            reply.read()
        tap.post({"model": "m", "max_tokens": 9, "system": "Be brief.", **BODY}, path="/v1/messages")
        assert tap.end()[0] == 0
    written = called("runs", "requests", "last", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    (tmp_path / "traffic.jsonl").write_text(written.stdout)
    imported = called("datasets", "import", "traffic.jsonl", "--answers", "--out", "mine.jsonl", cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    assert "context-bench: 3 examples\n" in imported.stderr
    examples = [json.loads(line) for line in (tmp_path / "mine.jsonl").read_text().splitlines()]
    assert [each["turns"][-1] for each in examples] == [BODY["messages"][-1]] * 3
    assert examples[2]["turns"][0] == {"role": "system", "content": "Be brief."}
    assert [each["answer"] for each in examples] == ["Paris"] * 3
    done = called("--system", "passthrough", "--dataset", "mine.jsonl", "--output", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 3


def test_it_forwards_with_the_key_and_writes_it_nowhere(tmp_path: Path) -> None:
    echoing = completion(f"your key is {KEY}")
    with Server(echoing, reply(429, {"error": {"message": f"{KEY} is tired"}}, {"Retry-After": "3"})) as server:
        with tapping(tmp_path, "--forward", f"{server.url}/v1", "--cache-dir", "store", "--verbose") as tap:
            assert KEY in json.dumps(tap.post({**BODY, "key": KEY}))
            assert tap.post(path=f"/v1/chat/completions?key={KEY}")[0] == 429
            assert tap.end()[0] == 0
            err = tap.err
        assert [request.headers["authorization"] for request in server.chats] == [f"Bearer {KEY}"] * 2
    assert f"(forward {server.url})" in err
    assert "2 requests, " in err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "store.db" for path in files)
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
    with Store(tmp_path / "store", readonly=True) as store:
        replies = [record["reply"] for record in store.run_requests(store.run("last"))]
    assert "your key is ***" in replies[0]
    assert "*** is tired" in replies[1]


def test_nothing_is_kept_or_shown_when_nobody_asked_for_it(tmp_path: Path) -> None:
    with tapping(tmp_path, "--reply", "echo", "--no-store") as tap:
        tap.post()
        assert tap.end()[0] == 0
        lines = tap.err.splitlines()
    assert all(line.startswith("context-bench: ") for line in lines)
    assert lines[-1].endswith("tokens")
    assert [path.name for path in tmp_path.iterdir()] == ["stderr.txt"]


def test_a_client_that_left_is_told_apart(tmp_path: Path) -> None:
    with Server(completion(delay=20)) as server, tapping(tmp_path, "--forward", server.url, "--verbose") as tap:
        with socket.create_connection(("127.0.0.1", tap.port)) as client:
            client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
            while not server.chats:
                time.sleep(0.01)
        deadline = time.monotonic() + 10
        while "cut off" not in tap.err and time.monotonic() < deadline:
            time.sleep(0.02)
        tap.end()
        assert re.search(r"/v1/messages: not counted, 0 tools, no reply, cut off", tap.err)


def test_other_machines_are_let_in_with_a_warning(tmp_path: Path) -> None:
    with tapping(tmp_path, "--reply", "echo", "--no-store", host="0.0.0.0") as tap:
        assert tap.post()[0] == 200
        assert tap.end()[0] == 0
        lines = tap.err.splitlines()
    assert lines[0] == "context-bench: 0.0.0.0 is not a loopback address: anyone who can reach it can use your key"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "one of the arguments --forward --model --reply is required"),
        (["--reply", "echo", "--forward", "http://x"], "not allowed with argument"),
        (["--reply", "echo", "--no-store", "--cache-dir", "x"], "not allowed with argument"),
        (["--reply", "echo", "--listen", "9100"], "'9100' is not an address to listen on"),
        (["--reply", "echo", "--tokenizer", "nonsense"], "unknown tokenizer 'nonsense'"),
        (["--reply", "nonsense"], "'nonsense' is not a script"),
        (["--forward", "example.com"], "'example.com' is not the URL of a server: write https://example.com"),
        (["--forward", f"http://me:{KEY}@example.com"], "has a password"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = called("tap", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert KEY not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_one_sentence_and_no_run(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = called("tap", "--listen", f":{port}", "--reply", "echo", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"context-bench: port {port} of 127.0.0.1 is in use")
    assert len(done.stderr.splitlines()) == 1
    with Store(tmp_path / ".context-bench", readonly=True) as store:
        assert store.runs() == []


def test_a_full_disk_is_told_at_once_and_nothing_is_said_to_be_recorded_that_is_not(tmp_path: Path) -> None:
    """A file that may not grow does as a full disk does."""
    import resource

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    body = {"model": "m", "messages": [{"role": "user", "content": os.urandom(10_000).hex()}]}
    with tapping(tmp_path, "--reply", "text:Paris", preexec_fn=small) as tap:
        sent, deadline = 0, time.monotonic() + 60
        while "no longer recorded" not in tap.err:
            assert time.monotonic() < deadline, tap.err
            assert tap.post({**body, "n": sent})[0] == 200
            sent += 1
        assert tap.post(BODY)[0] == 200, "it still answers"
        code, _ = tap.end()
        lines = tap.err.splitlines()
    assert code == 2
    assert sum("no longer recorded" in line for line in lines) == 1
    (kept,) = (int(found[1]) for line in lines if (found := re.search(r"only (\d+) of the requests recorded", line)))
    with Store(tmp_path / ".context-bench", readonly=True) as store:
        assert len(list(store.run_requests(store.run("last")))) == kept
    assert 0 < kept < sent
    assert not any(re.search("tokens, recorded as run", line) for line in lines)


def test_a_long_prompt_is_counted_while_the_tap_goes_on_listening(tmp_path: Path) -> None:
    text = "The clerk counted the boxes in the hall. " * 100_000
    body = json.dumps({"messages": [{"role": "user", "content": text}]}).encode()
    call, held = Call("/v1/chat/completions", body.decode(), status=200), 0.0

    async def listen(work: Awaitable[None]) -> None:
        nonlocal held
        task = asyncio.ensure_future(work)
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0.001)
            held = max(held, time.thread_time() - before)

    with Store(tmp_path) as store:
        log = Log(store, shown=False)
        log.begin(["tap"], "text:ok")
        gc.disable()  # a collection of the whole test process can take longer than the work
        try:
            started = time.process_time()
            work = log.take(call, Incoming("POST", call.path, "", {}, body))
            assert work is not None
            asyncio.run(listen(work))
            spent = time.process_time() - started
        finally:
            gc.enable()
        log.close()
    with Store(tmp_path, readonly=True) as store:
        (kept,) = store.run_requests(store.run("last"))
    assert (kept["body"], kept["tokens"]) == (body.decode(), count_tokens(text))
    assert held < spent / 3, "the thread of the loop did the work itself"


def test_the_tap_waits_for_a_store_that_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call("/v1/chat/completions", json.dumps(BODY), status=200)
    behind = [True, True, True, False]
    with Store(tmp_path) as store:
        monkeypatch.setattr(Store, "is_behind", property(lambda _: behind.pop(0) if behind else False))
        log = Log(store, shown=False)
        log.begin(["tap"], "text:ok")
        work = log.take(call, Incoming("POST", call.path, "", {}, call.body.encode()))
        assert work is not None
        asyncio.run(asyncio.wait_for(work, 30))
        log.close()
    assert behind == []
    with Store(tmp_path, readonly=True) as store:
        assert [kept["body"] for kept in store.run_requests(store.run("last"))] == [call.body]
