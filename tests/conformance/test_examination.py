"""Each toy proxy is told by what it breaks, over real HTTP, in both APIs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import ClientResponse, web

from banks import each_case
from context_bench.conformance import CHECKS, Findings, choose_checks, examine
from context_bench.conformance.bench import Upstream
from context_bench.errors import UnknownName, UsageError
from context_bench.tap.server import Tap
from pages import ROOT
from servers import Server, free_port, raw
from toy_proxies import KINDS, Toy, toy_proxy

CUT = {
    "short conversation reaches upstream",
    "unicode in requests intact",
    "lone surrogates survive",
    "very long input keeps its question",
}
BROKEN: dict[str, set[str]] = {
    "passes": set(),
    "waits": set(),
    "truncates": CUT,
    "twice": set(),
    "strips": {"user and metadata passed", "API headers passed"},
    "buffers": {"streaming stays streaming"},
    "corrupts": {"tool calls in replies intact", "streamed tool calls intact"},
    "tells_lies": set(),
    "injects": set(),
    "retries": set(),
    "rewrites": set(),
    "mixes": {"concurrent requests not mixed up"},
}
NOTES = {
    "twice": ["{n} extra upstream calls, for {n} of {n} requests"],
    "injects": ["adds the tool 'toy_expand' to requests"],
    "retries": ["3 extra upstream calls, for 1 of {n} requests"],
    "rewrites": ["adds text of its own to a short conversation"],
}
REQUESTS = {"openai": 65, "anthropic": 64}
"""A first one to see who is there, one for each check (a single one is OpenAI's alone), and a crowd of 32."""


def examined(kind: str | Callable[[str], Toy], api: str, *names: str) -> Findings:
    async def run() -> Findings:
        upstream = Upstream()
        tap = Tap(upstream)
        await tap.start()
        try:
            with toy_proxy(kind, tap.url) as url:
                # A quarter of the time-out is how long a stream is held back.
                return await examine(url, upstream, tap=tap.url, api=api, checks=choose_checks(names), timeout=6.0)
        finally:
            await tap.stop()

    return asyncio.run(run())


def test_every_toy_is_known() -> None:
    assert set(BROKEN) == set(KINDS)


class DropsEncrypted(Toy):
    """Leaves out items that it cannot read, and forgets compactions."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        if request.path.endswith("/compact"):
            return web.json_response({"object": "response.compaction", "output": [{"type": "message"}]})
        document = json.loads(body) if body else {}
        if isinstance(document.get("input"), list):
            kept = [item for item in document["input"] if "encrypted_content" not in item]
            body = json.dumps({**document, "input": kept}).encode()
        return await super().exchange(request, headers, body)


@pytest.mark.parametrize(
    ("kind", "broken"), [("passes", set()), (DropsEncrypted, {"agent items passed", "compaction relayed"})]
)
def test_the_responses_api(kind: Any, broken: set[str]) -> None:
    findings = examined(kind, "responses")
    assert {outcome.name for outcome in findings.outcomes if outcome.status == "fail"} == broken
    assert [outcome.name for outcome in findings.outcomes if outcome.status == "skip"] == ["several choices relayed"]


@pytest.mark.long
@each_case("api", ["openai", "anthropic"])
@each_case("kind", BROKEN)
def test_a_toy_proxy_fails_exactly_the_checks_that_name_its_fault(kind: str, api: str) -> None:
    findings = examined(kind, api)
    failed = {outcome.name for outcome in findings.outcomes if outcome.status == "fail"}
    # It keeps `Authorization`, and Anthropic's key has a header of its own.
    assert failed == BROKEN[kind] | ({"key passed"} if (kind, api) == ("strips", "anthropic") else set())
    assert findings.count("skip") == (3 if api == "anthropic" else 2)
    assert findings.count("pass") + len(failed) + findings.count("skip") == len(CHECKS)
    notes = [note.format(n=REQUESTS[api]) for note in NOTES.get(kind, [])]
    assert findings.notes == [*notes, "/v1/models: GET 200, HEAD 200"]


def test_a_failure_shows_what_was_sent_and_what_arrived() -> None:
    (outcome,) = examined("corrupts", "openai", "streamed-tool-calls-intact").outcomes
    assert outcome.reason == "the arguments of a tool call are no longer JSON"
    assert outcome.sent[0]["arguments"].startswith('{"guests": 4')
    assert outcome.arrived[0]["arguments"].startswith("{'guests': 4")


def test_another_key_is_not_shown() -> None:
    (outcome,) = examined("strips", "anthropic", "key passed").outcomes
    assert outcome.arrived == "nothing"


def test_checks_are_chosen_by_name_in_their_own_order() -> None:
    names = [check.name for check in choose_checks(["Usage-passed-on", "plain reply text intact"])]
    assert names == ["plain reply text intact", "usage passed on"]
    assert choose_checks([]) == CHECKS
    with pytest.raises(UnknownName, match="did you mean streaming stays streaming"):
        choose_checks(["streaming stays steaming"])


def test_names_are_unique() -> None:
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def alone(url: str, upstream: Upstream | None = None) -> Findings:
    return asyncio.run(examine(url, upstream or Upstream(), tap="http://127.0.0.1:9100", timeout=3.0))


def test_a_dead_proxy_is_one_sentence() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(UsageError) as caught:
        alone(url)
    assert str(caught.value).startswith(f"no proxy answers at {url}: ")


def test_a_proxy_with_another_upstream_is_one_sentence() -> None:
    with Server(raw(b"", 502)) as server, pytest.raises(UsageError) as caught:
        alone(server.url)
    assert str(caught.value) == (
        f"{server.url} answered with status 502, and nothing reached the tap: "
        "make http://127.0.0.1:9100 the upstream of the proxy"
    )


def test_a_proxys_own_error_is_shown_with_its_body() -> None:
    body = b"no vocabulary:\n\x1b[31mtiktoken cannot reach the network" + b"x" * 900
    with Server(raw(body, 502)) as server, pytest.raises(UsageError) as caught:
        alone(server.url)
    said = str(caught.value)
    assert said.startswith(f"{server.url} answered with status 502 (no vocabulary:")
    assert "tiktoken cannot reach the network" in said
    assert "and nothing reached the tap: make http://127.0.0.1:9100 the upstream of the proxy" in said
    assert "\n" not in said
    assert "\x1b" not in said
    assert len(said) < 600


@pytest.mark.parametrize("url", ["localhost:7878", "ftp://x", "http://", "http://x:99999", "http://x:y", "http://[::1"])
def test_what_is_no_url_is_one_sentence(url: str) -> None:
    with pytest.raises(UsageError, match="is not the URL of a server: write http"):
        alone(url)


class Mumbles(Toy):
    """Passes every request on, and throws the reply away."""

    body = b""

    async def relay(self, request: web.Request, reply: ClientResponse) -> web.StreamResponse:
        await reply.read()
        return web.Response(body=self.body, content_type="application/json")


@pytest.mark.long
@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff",
        b'{"choices": {}, "content": 5}',
        b'{"choices": [{"message": 5}], "content": [5]}',
        b'{"choices": [{"message": {"content": [1], "tool_calls": [{}]}}], "content": [{"type": "tool_use"}]}',
        b"data: 5\n\ndata: [DONE]\n\n",
        b'data: {"choices": [5], "type": "content_block_delta", "delta": 7}\n\n',
    ],
)
def test_nonsense_is_a_failure_and_no_crash(monkeypatch: pytest.MonkeyPatch, body: bytes, api: str) -> None:
    monkeypatch.setattr(Mumbles, "body", body)
    findings = examined(Mumbles, api, *(check.name for check in CHECKS if check.name != "streaming stays streaming"))
    outcomes = {outcome.name: outcome for outcome in findings.outcomes if outcome.status != "skip"}
    # These two look at the request alone.
    fine = {outcomes.pop(name).status for name in ("key passed", "API headers passed")}
    assert fine == {"pass"}
    assert {outcome.status for outcome in outcomes.values()} == {"fail"}
    assert all(outcome.reason for outcome in outcomes.values())


class Drops(Toy):
    """Closes the connection in the middle of every reply."""

    async def relay(self, request: web.Request, reply: ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-length": "1000"})
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.close()
        return response


def test_a_reply_that_is_broken_off_is_told_as_such() -> None:
    (outcome,) = examined(Drops, "openai", "plain reply text intact").outcomes
    assert outcome.reason.startswith("the proxy cut the reply off")
    assert outcome.sent["messages"]


def test_the_page_names_every_check() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert [check.name for check in CHECKS if f"`{check.name}`" not in page] == []
