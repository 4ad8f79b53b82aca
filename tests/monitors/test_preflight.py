"""The first request of each endpoint goes alone; what would fail for all examples is sent once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from command import called, shell
from context_bench import OpenAIProxy, evaluate
from context_bench.monitors.limits import Limits
from context_bench.systems import AnthropicProxy, WithReader
from context_bench.tap.scripted import Scripted
from context_bench.tap.system import Tapped
from numbered import asked, expected, facts, number_of, numbered, right, write
from servers import Reply, Request, Server, completion, free_port, raw, reply
from toy_proxies import toy_proxy

STOPPED = "was stopped after its first request"


def refusing(status: int, words: str, **headers: str) -> Reply:
    return reply(status, {"error": {"message": words}}, headers)


def overlaps(server: Server, first: int = 0) -> bool:
    """Whether anything was sent before the first request was answered."""
    answering = server.chats[first].answering  # before the reply is sent: whatever it sets off comes later
    assert answering is not None
    return any(chat.moment < answering for chat in server.chats[first + 1 :])


# Alone


def test_the_first_request_goes_alone_and_is_its_first_row() -> None:
    four = threading.Barrier(4, timeout=20)

    def answer(request: Request) -> Reply:
        if number_of(request):
            four.wait()  # it breaks unless four requests are there at once
        return completion(f"c{number_of(request)}", delay=0.0 if number_of(request) else 0.2)

    with Server(answer) as server:
        result = evaluate(OpenAIProxy(server.url), numbered(*range(9)), max_workers=4)
    assert facts(result.rows) == expected(*range(9))
    assert asked(server) == dict.fromkeys(range(9), 1)
    assert not overlaps(server)
    assert server.most_in_flight == 4
    assert result.config["stopped_systems"] == {}


def test_without_it_all_go_together() -> None:
    four = threading.Barrier(4, timeout=20)
    with Server(lambda request: completion(f"c{number_of(request) + four.wait() * 0}")) as server:
        evaluate(OpenAIProxy(server.url), numbered(*range(8)), max_workers=4, preflight=False)
    assert overlaps(server)


def test_each_endpoint_has_a_first_request_of_its_own_and_none_waits_for_another() -> None:
    with Server(right) as two:

        def answer(request: Request) -> Reply:
            for _ in range(2_000 if number_of(request) == 0 else 0):
                if len(two.chats) == 9:
                    break
                time.sleep(0.01)
            return completion(f"c{number_of(request)}")

        with Server(answer) as one:
            systems = [OpenAIProxy(one.url, name="one", timeout=60), OpenAIProxy(two.url, name="two", timeout=60)]
            result = evaluate(systems, numbered(*range(9)), max_workers=4)
    assert not overlaps(one)
    first = one.chats[0].answering
    assert first is not None
    assert sum(chat.moment < first for chat in two.chats) == 9, "the other lane went on meanwhile"
    assert len(result.rows) == 18


def test_repeats_and_conversations_wait_too() -> None:
    turns = [{"role": "user", "content": "code of item 7?"}, {"role": "user", "content": "and again, code of item 8?"}]
    with Server(completion("c7", delay=0.1)) as server:
        data = [*numbered(1, turns=turns), *numbered(2, 3)]
        result = evaluate(OpenAIProxy(server.url), data, max_workers=8, repeats=2)
    assert len(result.rows) == 6
    assert not overlaps(server)
    assert not overlaps(server, first=1), "both turns of the first example are its first job"


def test_systems_in_this_process_and_of_others_are_left_alone() -> None:
    gate = threading.Barrier(4, timeout=5)
    here = evaluate(lambda example: (gate.wait() and str(example["context"])) or "", numbered(*range(4)), max_workers=4)
    assert [row.error for row in here.rows] == [None] * 4

    class Mine:
        """It has something of that name, which is its own business."""

        name = "mine"
        in_flight = 0

        def stop_reason(self) -> str:
            raise AssertionError

        async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
            self.in_flight += 1
            await asyncio.sleep(0.05)
            return {"response": str(self.in_flight)}

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError

    rows = evaluate(Mine(), numbered(*range(4)), max_workers=4).rows
    assert [row.response for row in rows] == ["4"] * 4


def test_nothing_is_sent_when_nothing_is_left_to_ask(tmp_path: Path) -> None:
    with Server(right) as server:
        system = OpenAIProxy(server.url, name="p")
        evaluate(system, numbered(*range(5)), cache_dir=tmp_path)
        again = evaluate(system, numbered(*range(5)), cache_dir=tmp_path)
        assert len(server.chats) == 5
        assert again.config["reused"] == 5
        more = evaluate(system, numbered(*range(8)), cache_dir=tmp_path, max_workers=4)
        assert facts(more.rows) == expected(*range(8))
        assert asked(server) == dict.fromkeys(range(8), 1)


def test_known_answers_are_no_first_request(tmp_path: Path) -> None:
    """Answers that are only scored anew ask nobody: the first that is asked goes alone."""

    class Length:
        name = "length"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"score": float(len(processed["response"]))}

    with Server(lambda request: completion(f"c{number_of(request)}", delay=0.1)) as server:
        system = OpenAIProxy(server.url, name="p")
        evaluate(system, numbered(*range(5)), cache_dir=tmp_path)
        result = evaluate(system, numbered(*range(12)), [Length()], cache_dir=tmp_path, max_workers=4)
    assert [row.scores["score"] for row in result.rows] == [2.0] * 10 + [3.0] * 2
    assert not overlaps(server, first=5)


# What stops a system


@each_case(
    ("answer", "words"),
    [
        (refusing(401, "Incorrect API key provided."), ["answered 401: Incorrect API key provided:", "OPENAI_API_KEY"]),
        (refusing(403, "Forbidden"), ["answered 403: Forbidden:", "OPENAI_API_KEY"]),
        (refusing(402, "Insufficient credits"), ["answered 402: Insufficient credits:", "account"]),
        (refusing(404, "The model `gpt-3.5-turbo` does not exist"), ["answered 404", "'gpt-3.5-turbo'", "--model"]),
        (refusing(400, "Unknown model gpt-3.5-turbo"), ["answered 400", "--model"]),
        (refusing(422, "model 'gpt-3.5-turbo' is not supported"), ["answered 422", "--model"]),
        (refusing(400, "Unsupported value: 'temperature' does not support 0"), ["answered 400", "--temperature none"]),
        (raw(b"Not Found", 404), ["answered 404: Not Found:", "nothing answers at /v1/chat/completions"]),
        (raw(b"", 405), ["answered 405: (empty body):", "check the URL"]),
        (reply(308, headers={"Location": "https://elsewhere/"}), ["308: a redirect to https://elsewhere/:", "the URL"]),
        (raw(b"<html>Welcome</html>"), ["answered 200: <html>Welcome</html>:", "not JSON"]),
        (reply(200, {"message": {"content": "x"}}), ["not a chat completion", "check the URL"]),
    ],
)
def test_what_would_fail_for_all_is_sent_once(answer: Reply, words: Sequence[str]) -> None:
    with Server(answer) as server:
        system = OpenAIProxy(server.url, name="p", max_retries=0)
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(system, numbered(*range(200)), max_workers=8)
    assert len(server.chats) == 1
    assert [row.example_id for row in result.rows] == [0]
    reason = result.config["stopped_systems"]["p"]
    assert all(each in reason for each in words), reason
    if answer.status != 200 or b"html" in answer.body:
        assert f"{server.url}/v1/chat/completions answered" in reason
    assert result.config["stopped"] is None


@pytest.mark.parametrize(
    "answer",
    [
        refusing(429, "slow down"),
        refusing(500, "oops"),
        refusing(503, "overloaded"),
        refusing(400, "This model's maximum context length is 4097 tokens. However, you asked for an invalid 9000"),
        refusing(400, "messages: text content blocks must be non-empty"),
        refusing(413, "prompt is too long"),
        refusing(422, "input too large"),
        refusing(403, "Your input was flagged by moderation"),
        raw(b'{"choices": [{"mess'),
        reply(200, {"error": {"message": "upstream overloaded"}}),
        Reply(200, b"x" * 1000, cut_after=0),
    ],
)
def test_what_may_be_this_example_alone_stops_nothing(answer: Reply) -> None:
    with Server(lambda request: answer if number_of(request) == 0 else right(request)) as server:
        result = evaluate(OpenAIProxy(server.url, max_retries=0), numbered(*range(6)), max_workers=3)
    assert [row.error is None for row in result.rows] == [False, True, True, True, True, True]
    assert result.config["stopped_systems"] == {}


def test_a_time_out_stops_nothing() -> None:
    late = completion("c0", delay=5.0)
    with Server(lambda request: late if number_of(request) == 0 else right(request)) as server:
        result = evaluate(OpenAIProxy(server.url, max_retries=0, timeout=0.3), numbered(*range(4)), max_workers=3)
    assert [row.error is None for row in result.rows] == [False, True, True, True]


def test_with_preflight_off_all_are_sent() -> None:
    with Server(refusing(401, "no")) as server:
        result = evaluate(OpenAIProxy(server.url), numbered(*range(9)), max_workers=3, preflight=False)
    assert len(server.chats) == len(result.rows) == 9
    assert result.config["stopped_systems"] == {}


def test_the_other_systems_go_on() -> None:
    """Also where the stopped one came first, shares a lane, or would hold the others up."""
    with Server(refusing(401, "no")) as shut, Server(right) as live:
        systems = [
            OpenAIProxy(shut.url, name="shut"),
            OpenAIProxy(live.url, name="live"),
            WithReader(lambda example: example["context"], OpenAIProxy(shut.url), name="read"),
            lambda example: str(example["context"]),
        ]
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(systems, numbered(*range(60), dataset="d"), metrics=[], max_workers=2)
    counts = {name: values["num_examples"] for name, values in result.summary.items()}
    assert counts == {"shut": 1, "live": 60, "read": 1, "<lambda>": 60}
    assert result.config["stopped_systems"].keys() == {"shut", "read"}
    assert result.config["datasets"] == {"d": 60}
    assert len(shut.chats) == 2


def test_a_stopped_system_shares_its_lane_with_others() -> None:
    """Systems whose answers are made here take turns in one lane: one of them may leave it."""
    with Server(refusing(401, "no")) as shut, Server(right) as live:
        systems: list[Any] = [OpenAIProxy(shut.url, name="shut"), OpenAIProxy(live.url, name="live")]
        for system in systems:
            system.local = True
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(systems, numbered(*range(40)), max_workers=4)
    assert len(shut.chats) == 1
    assert facts(result.filter(system="live").rows) == expected(*range(40))


def test_what_a_stopped_system_owes_is_asked_later(tmp_path: Path) -> None:
    key = {"right": False}

    def answer(request: Request) -> Reply:
        return right(request) if key["right"] else refusing(401, "no")

    with Server(answer) as server:
        system = OpenAIProxy(server.url, name="p")
        with pytest.warns(UserWarning, match=STOPPED):
            evaluate(system, numbered(*range(7)), cache_dir=tmp_path)
        key["right"] = True
        result = evaluate(system, numbered(*range(7)), cache_dir=tmp_path, max_workers=3)
    assert facts(result.rows) == expected(*range(7))
    assert result.config["stopped_systems"] == {}
    assert len(server.chats) == 8


def test_a_limit_and_a_stop_are_told_apart() -> None:
    with Server(right) as live, Server(refusing(401, "no")) as shut:
        systems = [OpenAIProxy(live.url, name="live"), OpenAIProxy(shut.url, name="shut")]
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(systems, numbered(*range(50)), max_workers=4, limits=Limits(max_total_tokens=100))
    assert "the limit of 100 tokens is reached (96 used" in result.config["stopped"]
    assert result.config["stopped_systems"].keys() == {"shut"}


# On the command line


@pytest.fixture
def data(tmp_path: Path) -> str:
    return write(tmp_path / "data.jsonl", *range(30))


def run(*flags: str, cwd: Path) -> Any:
    return called("--dataset", "data.jsonl", "--output", "json", "--no-store", *flags, cwd=cwd)


@pytest.mark.usefixtures("data")
def test_a_wrong_key_is_one_sentence_and_exit_code_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-wrong-wrong-wrong")
    with Server(refusing(401, "Incorrect API key provided.")) as server:
        done = run("--proxy", server.url, "--name", "p", "--api-key-env", "MY_KEY", cwd=tmp_path)
        quiet = run("--proxy", server.url, "--name", "p", "--quiet", cwd=tmp_path)
        sent = len(server.chats)
        run("--proxy", server.url, "--no-preflight", cwd=tmp_path)
        assert len(server.chats) == sent + 30
    assert sent == 2
    assert done.returncode == quiet.returncode == 3
    assert done.stderr.count(STOPPED) == 1
    assert (
        f"context-bench: p {STOPPED}: {server.url}/v1/chat/completions answered 401: Incorrect API key provided: "
        "the key in MY_KEY is not accepted, so set the right one, or name its variable with --api-key-env\n"
    ) in done.stderr
    assert "sk-wrong" not in done.stderr + done.stdout
    assert quiet.stderr.count("\n") == 1
    assert (
        "no key was sent, so set OPENAI_API_KEY, or name the variable that has the key with --api-key-env"
        in quiet.stderr
    )
    assert list(json.loads(done.stdout)["config"]["stopped_systems"]) == ["p"]


@pytest.mark.usefixtures("data")
def test_a_stopped_run_is_recorded_as_such(tmp_path: Path) -> None:
    with Server(refusing(404, "nope")) as server:
        called("--proxy", server.url, "--dataset", "data.jsonl", cwd=tmp_path)
    assert "stopped" in called("runs", "list", cwd=tmp_path).stdout


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1", "", "/api/chat/completions", "/v1/chat/completions/"])
def test_a_url_with_the_whole_path_is_understood(tmp_path: Path, path: str) -> None:
    with Server(right) as server:
        done = run("--proxy", server.url + path, "--name", "p", "-n", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    wanted = "/api/chat/completions" if path.startswith("/api") else "/v1/chat/completions"
    assert {chat.path for chat in server.chats} == {wanted}


def test_interrupted_while_the_first_request_is_under_way(tmp_path: Path) -> None:
    """Ctrl-C finishes the first request, and sends none of those that wait for it."""
    import os
    import signal
    import subprocess
    import sys

    from command import environment

    write(tmp_path / "data.jsonl", *range(30))
    with Server(lambda request: completion(f"c{number_of(request)}", delay=1.5)) as server:
        flags = ["--proxy", server.url, "--dataset", "data.jsonl", "--output", "json", "--max-workers", "8"]
        command = [sys.executable, "-m", "context_bench", *flags]
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
        )
        deadline = time.monotonic() + 20
        while not server.chats and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert len(server.chats) == 1
    assert [row["response"] for row in json.loads(out)["rows"]] == ["c0"]


def test_a_server_that_speaks_no_tls(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(5))
    with Server(right) as server:
        url = server.url.replace("http:", "https:")
        done = shell("--proxy", url, "--dataset", "data.jsonl", "--no-store", "--max-retries", "0", cwd=tmp_path)
    assert done.returncode == 3
    assert "check the certificate, and whether the server speaks https at all" in done.stderr
    assert done.stderr.count("was stopped after its first request") == 1


# Behind a tap


def examples(count: int = 10) -> list[dict[str, Any]]:
    return numbered(*range(count))


def test_a_proxy_that_never_calls_the_tap_is_stopped_with_its_answer() -> None:
    with Server(right) as elsewhere, toy_proxy("passes", elsewhere.url) as url:
        system = Tapped(OpenAIProxy(url, name="astray"), Scripted.from_text("extract"), port=free_port())
        with pytest.warns(UserWarning, match=STOPPED) as told:
            result = evaluate(system, examples(), progress=False, max_workers=4)
    assert len(result.rows) == len(told) == 1
    assert len(elsewhere.chats) == 2, "the example, and one question whether the tap is there"
    reason = result.config["stopped_systems"]["astray"]
    assert reason.startswith(f"nothing has reached the tap at {system.tap.url}: set the upstream of the proxy to that")
    assert "the proxy answered 'c0'" in reason


def test_a_proxy_whose_upstream_is_dead_is_stopped_with_its_answer() -> None:
    with Server(refusing(502, "cannot reach http://10.9.8.7")) as proxy:
        system = Tapped(
            OpenAIProxy(proxy.url, name="p", retry_base_delay=0.01), Scripted.from_text("echo"), port=free_port()
        )
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(system, examples(), progress=False)
    assert len(proxy.chats) == 4, "one example, with its retries"
    assert "nothing has reached the tap" in result.config["stopped_systems"]["p"]
    assert "cannot reach http://10.9.8.7" in result.config["stopped_systems"]["p"]


@pytest.mark.parametrize("header", [{"X-Cache": "HIT"}, {"x-proxy-cache-status": "hit"}, {"Age": "12"}])
def test_a_first_answer_from_a_cache_stops_nothing(header: dict[str, str]) -> None:
    def cached(request: Request) -> Reply:
        answer = right(request)
        return Reply(200, answer.body, header)

    with Server(cached) as proxy:
        system = Tapped(OpenAIProxy(proxy.url, name="p"), Scripted.from_text("echo"), port=free_port())
        result = evaluate(system, examples(3), progress=False)
    assert len(result.rows) == 3
    assert result.summary["p"]["cached_answers"] == 3
    assert result.config["stopped_systems"] == {}


@pytest.mark.parametrize("header", [{"X-Cache": "MISS"}, {"Cache-Control": "no-store"}, {"Age": "0"}])
def test_a_header_that_tells_of_no_hit_is_none(header: dict[str, str]) -> None:
    with Server(lambda request: Reply(200, right(request).body, header)) as proxy:
        system = Tapped(OpenAIProxy(proxy.url, name="p"), Scripted.from_text("echo"), port=free_port())
        with pytest.warns(UserWarning, match=STOPPED):
            evaluate(system, examples(3), progress=False)
    # Beside the question whether the tap is there, which this server cannot answer.
    assert sum(b"looks for its tap" not in request.body for request in proxy.chats) == 1


def test_a_proxy_that_refuses_one_example_itself_is_not_stopped() -> None:
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as upstream:
        import urllib.request

        def answer(request: Request) -> Reply:
            if number_of(request) == 0:
                return refusing(400, "prompt is too long")
            forwarded = urllib.request.Request(upstream + request.path, request.body, dict(request.headers))
            with urllib.request.urlopen(forwarded) as passed:
                return Reply(200, passed.read())

        with Server(answer) as proxy:
            system = Tapped(OpenAIProxy(proxy.url, name="p"), Scripted.from_text("extract"), port=port)
            result = evaluate(system, examples(4), progress=False)
    assert [row.error is None for row in result.rows] == [False, True, True, True]


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_proxy_that_fails_on_its_own_stops_after_one_request(status: int) -> None:
    with Server(lambda request: refusing(status, "broken")) as proxy:
        answerer = Scripted.from_text("echo")
        system = Tapped(OpenAIProxy(proxy.url, name="p", max_retries=0), answerer, port=free_port())
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(system, examples(5), max_workers=4, progress=False)
    assert len(proxy.chats) == 1
    assert "broken" in result.config["stopped_systems"]["p"]


def test_anthropics_form_names_its_own_key() -> None:
    with Server(reply(401, {"type": "error", "error": {"message": "invalid x-api-key"}})) as server:
        with pytest.warns(UserWarning, match=STOPPED):
            result = evaluate(AnthropicProxy(f"{server.url}/v1/messages", name="a"), numbered(1, 2))
        assert [chat.path for chat in server.chats] == ["/v1/messages"]
    assert "set ANTHROPIC_API_KEY" in result.config["stopped_systems"]["a"]


# A system that has answered before


def test_examples_that_failed_before_do_not_stop_a_run_that_goes_on(tmp_path: Path) -> None:
    """They are asked again first, and may fail for ever; what the store knows of the system says that it works."""

    def busy_for_two(request: Request) -> Reply:
        return raw(b"<html>busy</html>") if number_of(request) in (1, 2) else right(request)

    with Server(busy_for_two) as server:
        proxy = OpenAIProxy(server.url, name="p", max_retries=0)
        evaluate(proxy, numbered(0, 1, 2), cache_dir=tmp_path)
        result = evaluate(proxy, numbered(*range(8)), cache_dir=tmp_path, max_workers=4)
    assert result.config["stopped_systems"] == {}
    assert [row.example_id for row in result.rows if row.error] == [1, 2]
    assert [row.example_id for row in result.rows] == list(range(8))


def test_the_more_a_system_has_answered_the_more_examples_may_fail_for_ever(tmp_path: Path) -> None:
    broken = [10, 30, 50, 70]

    def busy_for_some(request: Request) -> Reply:
        return raw(b"<html>busy</html>") if number_of(request) in broken else right(request)

    with Server(busy_for_some) as server:
        proxy = OpenAIProxy(server.url, name="p", max_retries=0)
        evaluate(proxy, numbered(*range(100)), cache_dir=tmp_path, max_workers=4)
        result = evaluate(proxy, numbered(*range(120)), cache_dir=tmp_path, max_workers=4)
    assert result.config["stopped_systems"] == {}
    assert [row.example_id for row in result.rows if row.error] == broken
    assert [row.example_id for row in result.rows] == list(range(120))


def test_a_key_that_is_refused_stops_a_run_that_goes_on(tmp_path: Path) -> None:
    with Server(right) as server:
        evaluate(OpenAIProxy(server.url, name="p"), numbered(0), cache_dir=tmp_path)
        server.script = [reply(401, {"error": {"message": "no such key"}})]
        before = len(server.chats)
        with pytest.warns(UserWarning, match="p was stopped"):
            result = evaluate(OpenAIProxy(server.url, name="p"), numbered(*range(20)), cache_dir=tmp_path)
        assert len(server.chats) - before == 3
    assert "p" in result.config["stopped_systems"]
