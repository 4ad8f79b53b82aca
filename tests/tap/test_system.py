"""A proxy under test with a tap behind it: real proxies of known manners, and what the rows say of each."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from context_bench import EvalResult, OpenAIProxy, evaluate
from context_bench.errors import UsageError
from context_bench.evaluators import AnswerQuality, EvidenceSurvival
from context_bench.http import Secret
from context_bench.store import Store
from context_bench.store.fingerprints import fingerprint_of
from context_bench.systems import AnthropicProxy
from context_bench.tap.scripted import Scripted
from context_bench.tap.system import Control, Launch, Tapped
from context_bench.utils.tokens import count_tokens
from servers import Server, completion, free_port
from toy_proxies import Toy, toy_proxy

TOYS = Path(__file__).parent.parent / "toy_proxies.py"

FILLER = [f"Note {number}: the clerk counted {number * 7} boxes in hall {number} before noon." for number in range(60)]
NAMES = ("Ada", "Bela", "Cleo", "Dora", "Egon", "Fritz")


def examples(place: float = 0.1) -> list[dict[str, Any]]:
    """A fact of its own in each context, near the start or near the end."""
    made = []
    for number, name in enumerate(NAMES):
        fact = f"The secret harbour of {name} is called Port{number}."
        lines = [*FILLER]
        lines.insert(int(place * len(lines)), fact)
        made.append(
            {
                "id": name,
                "context": "\n".join(lines),
                "question": f"What is the secret harbour of {name} called?",
                "answer": f"Port{number}",
                "evidence": [fact],
            }
        )
    return made


def run(kind: str, data: list[dict[str, Any]], reply: str = "extract", **settings: Any) -> EvalResult:
    port = free_port()
    keep = {key: settings.pop(key) for key in ("max_workers", "store", "cache_dir") if key in settings}
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        system = Tapped(OpenAIProxy(url, name=kind, **settings), Scripted.from_text(reply), port=port)
        return evaluate(system, data, [AnswerQuality(), EvidenceSurvival()], progress=False, **keep)


def facts(result: EvalResult, key: str) -> list[Any]:
    return [row.metadata.get(key) for row in result.rows]


def test_a_proxy_that_passes_is_untouched() -> None:
    result = run("passes", examples())
    assert facts(result, "untouched") == [True] * 6
    assert facts(result, "prompt_savings") == [0.0] * 6
    assert facts(result, "extra_upstream_calls") == [0] * 6
    example, row = examples()[0], result.rows[0]
    # The context is the system message, the question the user's: nothing else is sent.
    assert row.upstream_tokens == count_tokens(example["context"]) + count_tokens(example["question"])
    assert result.summary["passes"]["untouched_share"] == 1.0
    assert result.summary["passes"]["evidence_survival"] == 1.0
    assert result.summary["passes"]["mean_score"] > 0


def test_a_proxy_that_truncates_and_what_it_loses() -> None:
    early, late = run("truncates", examples(0.1)), run("truncates", examples(0.9))
    assert not any(facts(early, "untouched"))
    assert early.summary["truncates"]["prompt_savings"] == pytest.approx(0.5, abs=0.03)
    assert early.summary["truncates"]["evidence_survival"] == 1.0
    assert late.summary["truncates"]["evidence_survival"] == 0.0
    assert late.summary["truncates"]["lost_by_system"] == 1.0
    assert late.summary["truncates"]["right_without_evidence"] == 0.0


@pytest.mark.parametrize("workers", [1, 6])
def test_a_proxy_that_calls_twice(workers: int) -> None:
    result = run("twice", examples(), max_workers=workers)
    assert facts(result, "upstream_calls") == [2] * 6
    assert facts(result, "extra_upstream_calls") == [1] * 6
    assert all(savings <= -1 for savings in facts(result, "prompt_savings"))
    assert result.config["reports"]["twice"]["unmatched"] == 0


@pytest.mark.parametrize("workers", [1, 6])
def test_a_proxy_that_strips_headers_and_fields_is_followed_by_content(workers: int) -> None:
    result = run("strips", examples(), max_workers=workers)
    assert facts(result, "upstream_calls") == [1] * 6
    assert facts(result, "untouched") == [True] * 6
    for row in result.rows:
        assert row.response == f"Port{NAMES.index(str(row.example_id))}" or row.scores["contains"] == 1.0


def test_what_cannot_be_told_apart_is_unmatched_and_never_guessed(tmp_path: Path) -> None:
    same = [{"id": number, "context": "One two three four.", "question": "Which is the second?"} for number in range(4)]
    with Store(tmp_path) as store:
        result = run("strips", same, "text:two", max_workers=4, store=store)
    report = result.config["reports"]["strips"]
    assert report["unmatched"] >= 2  # those that were under way together
    for row in result.rows:
        assert row.upstream_tokens is None or row.metadata["upstream_calls"] == 1
    assert sum(row.upstream_tokens is None for row in result.rows) >= report["unmatched"]
    with Store(tmp_path, readonly=True) as store:
        kept = list(store.run_requests(store.run("last")))
    assert len(kept) == report["unmatched"]
    assert all("Which is the second?" in request["body"] for request in kept)


def test_a_tool_that_the_proxy_adds_is_named() -> None:
    result = run("injects", examples()[:2])
    assert all(names for names in facts(result, "injected_tools"))
    assert all(savings < 0 for savings in facts(result, "prompt_savings"))
    assert facts(result, "untouched") == [False, False]


def test_a_claim_is_set_beside_the_count() -> None:
    result = run("tells_lies", examples()[:3])
    assert result.summary["tells_lies"]["claimed_tokens_saved"] == 15000
    assert result.summary["tells_lies"]["counted_tokens_saved"] == 0


def test_a_proxy_that_retries_is_not_charged_for_what_was_refused(tmp_path: Path) -> None:
    rules = tmp_path / "rules.jsonl"
    rules.write_text('{"match": "Ada", "times": 1, "status": 500, "error": "not now"}\n{"reply": "Port0"}\n')
    result = run("retries", examples()[:1], str(rules), max_retries=0)
    (row,) = result.rows
    assert row.error is None
    assert row.metadata["failed_upstream_calls"] == 1
    assert row.metadata["upstream_calls"] == 2
    assert row.metadata["prompt_savings"] == 0.0


def test_our_own_retry_is_not_charged_to_the_proxy(tmp_path: Path) -> None:
    rules = tmp_path / "rules.jsonl"
    rules.write_text('{"times": 1, "status": 500, "error": "not now"}\n{"reply": "Port0"}\n')
    result = run("passes", examples()[:1], str(rules), retry_base_delay=0.01)
    (row,) = result.rows
    assert row.metadata["attempts"] == 2
    assert row.metadata["earlier_upstream_calls"] == 1
    assert row.metadata["upstream_calls"] == 1
    assert row.metadata["untouched"] is True


def test_an_error_tells_what_the_upstream_said(tmp_path: Path) -> None:
    rules = tmp_path / "rules.jsonl"
    rules.write_text('{"status": 400, "error": "too long for me"}\n')
    (row,) = run("passes", examples()[:1], str(rules)).rows
    assert row.error is not None
    assert "too long for me" in row.error
    assert row.metadata["upstream_statuses"] == [400]


def test_streams_are_timed_on_both_sides() -> None:
    result = run("passes", examples()[:2], stream=True)
    assert all(seconds >= 0 for seconds in facts(result, "first_token_overhead"))
    assert result.summary["passes"]["first_token_overhead_median"] < 5


def test_anthropic_too() -> None:
    port = free_port()
    with toy_proxy("truncates", f"http://127.0.0.1:{port}") as url:
        system = Tapped(AnthropicProxy(url, "m", name="cut"), Scripted.from_text("extract"), port=port)
        result = evaluate(system, examples(0.9)[:3], [AnswerQuality(), EvidenceSurvival()], progress=False)
    assert result.summary["cut"]["prompt_savings"] == pytest.approx(0.5, abs=0.03)
    assert result.summary["cut"]["lost_by_system"] == 1.0


CONVERSATION = {
    "id": 1,
    "context": "",
    "turns": [{"role": "user", "content": f"Tell me about the number {number} please."} for number in range(3)],
}


def test_conversations_keep_their_prefix_or_not() -> None:
    kept = run("passes", [CONVERSATION], "text:Well.").rows[0].metadata
    assert (kept["prefix_stability"], kept["first_message_changed"], kept["rewritten_history"]) == (1.0, False, 0.0)
    assert kept["upstream_calls"] == 3
    broken = run("rewrites", [CONVERSATION], "text:Well.").rows[0].metadata
    assert broken["first_message_changed"] is True
    assert broken["prefix_stability"] < 0.5


def test_a_started_proxy_is_stopped_and_known_by_its_command() -> None:
    command = f"{sys.executable} {TOYS} passes --port {{port}} --upstream {{tap}}"

    def started() -> Tapped:
        port = free_port()
        server = OpenAIProxy(f"http://127.0.0.1:{port}", name="toy")
        return Tapped(server, Scripted.from_text("extract"), launch=Launch(command, port))

    first, second = started(), started()
    assert fingerprint_of(first) == fingerprint_of(second)  # at another port
    result = evaluate(first, examples()[:2], [AnswerQuality()], progress=False)
    assert facts(result, "untouched") == [True, True]
    again = evaluate(first, examples()[:1], [AnswerQuality()], progress=False)  # a system can be used once more
    assert facts(again, "untouched") == [True]


def test_rows_are_reused_with_what_the_tap_saw(tmp_path: Path) -> None:
    command = f"{sys.executable} {TOYS} truncates --port {{port}} --upstream {{tap}}"
    seen = []
    for _ in range(2):
        port = free_port()
        server = OpenAIProxy(f"http://127.0.0.1:{port}", name="toy")
        system = Tapped(server, Scripted.from_text("extract"), launch=Launch(command, port))
        seen.append(evaluate(system, examples()[:2], [AnswerQuality()], progress=False, cache_dir=tmp_path))
    assert seen[1].config["reused"] == 2
    assert seen[1].rows == seen[0].rows
    assert seen[1].rows[0].upstream_tokens is not None


def test_another_script_is_another_answer() -> None:
    prints = {
        fingerprint_of(Tapped(OpenAIProxy("http://127.0.0.1:1", name="a"), Scripted.from_text(text), port=1))
        for text in ("echo", "extract", "text:a", "text:b")
    }
    assert len(prints) == 4
    assert None not in prints


def test_controls_ask_without_a_proxy() -> None:
    systems: list[Any] = []
    for name in ("floor", "ceiling", "direct"):
        port = free_port()
        server = OpenAIProxy(f"http://127.0.0.1:{port}", name=name)
        systems.append(Control(name, Tapped(server, Scripted.from_text("extract"), port=port)))
    result = evaluate(systems, examples(), [AnswerQuality(), EvidenceSurvival()], progress=False)
    scores = {name: values["mean_score"] for name, values in result.summary.items()}
    assert scores["floor"] == 0.0
    assert scores["direct"] > 0
    assert scores["ceiling"] > 0
    by_name = {row.system: row for row in result.rows}
    example = examples()[-1]
    asked = count_tokens(example["question"])
    assert by_name["floor"].upstream_tokens == asked
    assert by_name["ceiling"].upstream_tokens == asked + count_tokens(example["evidence"][0])
    assert by_name["direct"].upstream_tokens == asked + count_tokens(example["context"])


def test_a_system_cannot_say_what_a_tap_saw() -> None:
    def liar(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "x", "tapped": [{"sent": "{}", "calls": []}]}

    (row,) = evaluate(liar, examples()[:1], [AnswerQuality()], progress=False).rows
    assert row.error is None
    assert row.upstream_tokens is None
    assert "downstream_tokens" not in row.metadata


def test_a_port_that_is_taken_is_one_sentence() -> None:
    port = free_port()
    with toy_proxy("passes", "http://127.0.0.1:1") as url:
        taken = int(url.rsplit(":", 1)[1])
        system = Tapped(OpenAIProxy(f"http://127.0.0.1:{port}"), Scripted.from_text("echo"), port=taken)
        with pytest.raises(UsageError, match=str(taken)):
            evaluate(system, examples()[:1], [AnswerQuality()], progress=False)


def test_a_proxy_with_another_upstream_is_said_to_have_one() -> None:
    with Server(completion("Port0")) as elsewhere, toy_proxy("passes", elsewhere.url) as url:
        system = Tapped(OpenAIProxy(url, name="astray"), Scripted.from_text("extract"), port=free_port())
        with pytest.warns(UserWarning, match="nothing has reached the tap"):
            result = evaluate(
                system, examples()[:3], [AnswerQuality(), EvidenceSurvival()], progress=False, preflight=False
            )
    assert [row.upstream_tokens for row in result.rows] == [None] * 3
    assert facts(result, "prompt_savings") == [None] * 3
    assert "prompt_savings" not in result.summary["astray"]
    assert "evidence_survival" not in result.summary["astray"]


def test_what_a_failed_example_cost_is_on_the_bill(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def answer(document):\n    return {'reply': 'x', 'headers': {'content-type': 'text/html'}}\n")
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        proxy = OpenAIProxy(url, name="p", extra_body={"stream": True}, max_retries=0)  # a stream where none is read
        system = Tapped(proxy, Scripted.from_text(f"{script}:answer"), port=port)
        result = evaluate(system, examples()[:2], [AnswerQuality()], progress=False)
    assert all(row.error for row in result.rows)
    assert all(row.upstream_tokens for row in result.rows)
    assert result.summary["p"]["upstream_tokens"] == sum(row.upstream_tokens or 0 for row in result.rows)


def test_a_header_of_the_user_is_kept_nowhere_whatever_its_name(tmp_path: Path) -> None:
    word = "hunter2-hunter2"
    with Store(tmp_path) as store:
        run("passes", examples()[:2], store=store, headers={"X-Org-Pass": Secret(word)})
    assert not any(word.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_two_taps_behind_one_system_are_a_mistake() -> None:
    proxy = OpenAIProxy("http://127.0.0.1:1", name="p")
    Tapped(proxy, Scripted.from_text("echo"), port=1)
    with pytest.raises(UsageError, match="has a tap already"):
        Tapped(proxy, Scripted.from_text("echo"), port=2)


def test_a_proxy_that_was_changed_is_another_one(tmp_path: Path) -> None:
    program = tmp_path / "proxy.py"
    prints = set()
    for text in ("LIMIT = 6000", "LIMIT = 12000"):
        program.write_text(text)
        launch = Launch(f"python {program} {{port}} {{tap}}", 1)
        prints.add(fingerprint_of(Tapped(OpenAIProxy("http://127.0.0.1:1"), Scripted.from_text("echo"), launch=launch)))
    assert len(prints) == 2


def test_one_that_fails_to_finish_does_not_keep_others_from_it() -> None:
    ended = []

    class Fails:
        name = "fails"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"response": "x"}

        def finish(self) -> None:
            raise RuntimeError("stuck")

    class Ends(Fails):
        name = "ends"

        def finish(self) -> None:
            ended.append(True)

    with pytest.warns(UserWarning, match=r"fails failed in finish\(\): RuntimeError: stuck"):
        result = evaluate([Fails(), Ends()], examples()[:1], [AnswerQuality()], progress=False)
    assert ended == [True]
    assert len(result.rows) == 2


def test_a_dead_proxy_is_not_said_to_have_answered() -> None:
    system = Tapped(OpenAIProxy(f"http://127.0.0.1:{free_port()}", name="dead"), Scripted.from_text("echo"))
    with pytest.warns(UserWarning, match="is down") as told:
        (row,) = evaluate(system, examples()[:1], [AnswerQuality()], progress=False).rows
    assert ["tap" in str(warning.message) for warning in told] == [False]
    assert row.error is not None
    assert "is down" in row.error


class Holds(Toy):
    """Keeps the first request for itself, and passes it on when its sender has long asked again."""

    asked = 0

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        self.asked += 1
        if self.asked == 1:
            self.held = asyncio.ensure_future(self.pass_on(request, headers, body))
            await asyncio.sleep(5)
        await asyncio.sleep(0.6)
        return await super().exchange(request, headers, body)

    async def pass_on(self, request: web.Request, headers: dict[str, str], body: bytes) -> None:
        await asyncio.sleep(1.3)
        async with self.ask(request, headers, body) as reply:
            await reply.read()


def test_what_an_earlier_attempt_set_off_is_not_counted_for_the_next() -> None:
    port = free_port()
    with toy_proxy(Holds, f"http://127.0.0.1:{port}") as url:
        proxy = OpenAIProxy(url, name="holds", timeout=1.0, retry_base_delay=0.01)
        system = Tapped(proxy, Scripted.from_text("extract"), port=port)
        (row,) = evaluate(system, examples()[:1], [AnswerQuality()], progress=False).rows
    assert row.metadata["attempts"] == 2
    assert (row.metadata["upstream_calls"], row.metadata["prompt_savings"]) == (1, 0.0)
    assert row.metadata["untouched"] is True
    # It came too late for the attempt that it belongs to, and a model answered it all the same.
    assert row.metadata["earlier_upstream_calls"] == row.metadata["lost_upstream_calls"] == 1
    assert row.metadata["lost_upstream_tokens"] > row.metadata["sent_tokens"]
    assert list(system.unmatched) == []


class RoutedByHeader(Toy):
    """Has no upstream of its own: a header of each request names it."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        assert json.loads(body)["route"] == {"to": [headers["X-Upstream"]], "literal": "{port}"}
        self.upstream = headers.pop("X-Upstream")
        return await super().exchange(request, headers, body)


def test_a_gateway_is_told_its_upstream_in_a_header_and_in_the_body() -> None:
    extra = {"route": {"to": ["{tap}"], "literal": "{port}"}}
    with toy_proxy(RoutedByHeader, "http://127.0.0.1:9") as url:
        proxy = OpenAIProxy(url, headers={"X-Upstream": "{tap}"}, extra_body=extra)
        before = proxy.fingerprint
        # A prompt that speaks of the placeholder reaches the model as it is.
        data = [{"id": 1, "context": "Start it with --upstream {tap}.", "question": "How?"}]
        result = evaluate(Tapped(proxy, Scripted.from_text("echo")), data, progress=False)
    (row,) = result.rows
    assert (row.error, row.metadata["untouched"]) == (None, True)
    assert row.upstream_tokens == count_tokens("Start it with --upstream {tap}.") + count_tokens("How?")
    assert proxy.fingerprint == before  # the port of this run is no part of it
