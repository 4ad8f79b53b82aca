"""Proxies of known manners, each number held against a recorder of the test's own behind the tap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from aiohttp import web

from context_bench import EvalResult, EvalRow, OpenAIProxy, evaluate
from context_bench.evaluators import AnswerQuality, EvidenceSurvival
from context_bench.metrics import EvidenceShares, UpstreamCost
from context_bench.output.tables import evidence, meters
from context_bench.tap.forward import Forward
from context_bench.tap.system import Tapped
from recording import Recorder, count_request, count_text, examples, facts, sent_tokens
from servers import free_port
from toy_callers import (
    SIDE_QUESTION,
    AnswersInOtherWords,
    Caches,
    CallsAside,
    CallsLate,
    DropsNull,
    Loses,
    Reorders,
    Splits,
)
from toy_proxies import Toy, toy_proxy


def run(kind: Callable[[str], Toy], data: Iterable[dict[str, Any]], recorder: Recorder, **settings: Any) -> EvalResult:
    port = free_port()
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        system = Tapped(
            OpenAIProxy(url, name="toy", retry_base_delay=0.01, **settings), Forward(recorder.url), port=port
        )
        result = evaluate(system, data, [AnswerQuality(), EvidenceSurvival()], progress=False)
    assert [row.error for row in result.rows] == [None] * len(result.rows)
    return result


def upstream(result: EvalResult) -> list[int | None]:
    return [row.upstream_tokens for row in result.rows]


SIDE = count_text(SIDE_QUESTION)


@pytest.mark.parametrize("stream", [False, True])
def test_a_side_call_after_the_answer(stream: bool) -> None:
    data = examples()
    with Recorder() as recorder:
        result = run(CallsAside, data, recorder, stream=stream)
    sent = [sent_tokens(example) for example in data]
    assert recorder.read == [tokens for each in sent for tokens in (each, SIDE)]
    assert facts(result, "sent_tokens") == facts(result, "downstream_tokens") == sent
    assert upstream(result) == [each + SIDE for each in sent]
    # Two answers for each row: what the client got, and what only the proxy read.
    assert facts(result, "written_tokens") == [sum(recorder.written[2 * place :][:2]) for place in range(3)]
    assert facts(result, "extra_upstream_calls") == [1, 1, 1]
    assert [row.scores["evidence_survived"] for row in result.rows] == [1.0] * 3
    values = result.summary["toy"]
    assert values["evidence_survival"] == 1.0
    assert values["prompt_savings"] == pytest.approx(1 - sum(recorder.read) / sum(sent))
    assert values["mean_sent_tokens"] == pytest.approx(sum(sent) / 3)
    passes = sum(row.scores["score"] >= 0.7 for row in result.rows)
    total = sum(recorder.read) + sum(recorder.written)
    assert values["upstream_cost_of_pass"] == (total / passes if passes else float("inf"))


def test_what_is_read_and_written_is_all_of_it() -> None:
    data = examples(1)
    with Recorder() as recorder:
        result = run(CallsAside, data, recorder)
    (row,) = result.rows
    row.scores["score"] = 1.0
    total = sum(recorder.read) + sum(recorder.written)
    assert UpstreamCost().compute([row]) == {"upstream_cost_of_pass": total}


@pytest.mark.parametrize("place", [0.1, 0.8])
def test_a_prompt_in_two_parts_has_two_answering_calls(place: float) -> None:
    data = examples(place=place)
    with Recorder() as recorder:
        result = run(Splits, data, recorder)
    assert len(recorder.chats) == 6
    assert upstream(result) == [sum(recorder.read[2 * place :][:2]) for place in range(3)]
    assert facts(result, "written_tokens") == [sum(recorder.written[2 * place :][:2]) for place in range(3)]
    assert result.rows[0].response == "\n".join(recorder.said[:2])
    assert [row.scores["evidence_survived"] for row in result.rows] == [1.0] * 3
    assert facts(result, "untouched") == [False] * 3


def test_what_cannot_be_told_is_unknown_and_never_lost() -> None:
    data = examples()
    with Recorder() as recorder:
        result = run(AnswersInOtherWords, data, recorder)
    reason = "it is unknown which of several calls gave the answer"
    assert [row.scores.get("evidence_survived") for row in result.rows] == [None] * 3
    assert [row.unscored["evidence-survival"] for row in result.rows] == [reason] * 3
    # What was read is known all the same.
    assert upstream(result) == [sum(recorder.read[2 * place :][:2]) for place in range(3)]
    assert "lost_by_system" not in result.summary["toy"]


def test_unknown_rows_beside_known_ones_give_bounds() -> None:
    with Recorder() as recorder, Recorder() as other:
        known = run(CallsAside, examples(3), recorder)
        unknown = run(AnswersInOtherWords, [*examples(1), {**examples(1)[0], "id": "x", "evidence": []}], other)
    rows = [*known.rows, *unknown.rows]
    values = EvidenceShares().compute(rows)
    # Three survived; of the two that cannot be told, one has evidence.
    assert (values["evidence_survival"], values["evidence_rows"]) == (1.0, 3.0)
    assert (values["evidence_survival_best"], values["evidence_survival_worst"]) == (1.0, 0.75)
    table = evidence(EvalResult(rows, {"toy": values}))
    cells = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    assert cells[0][2:8] == ["rows", "verbatim", "recoverable", "lost", "survived at best", "at worst"]
    assert cells[2][2:8] == ["3", "100.0%", "0.0%", "0.0%", "100.0%", "75.0%"]


def test_an_answer_that_the_proxy_lost_was_paid_for() -> None:
    data = examples()
    with Recorder() as recorder:
        result = run(Loses, data, recorder)
    sent = [sent_tokens(example) for example in data]
    assert recorder.read == [tokens for each in sent for tokens in (each, each)]
    assert facts(result, "attempts") == [2, 2, 2]
    assert upstream(result) == sent  # the attempt that gave the answer
    assert facts(result, "downstream_tokens") == sent
    assert facts(result, "lost_upstream_calls") == [1, 1, 1]
    lost = [sent[place] + recorder.written[2 * place] for place in range(3)]
    assert facts(result, "lost_upstream_tokens") == lost
    values = result.summary["toy"]
    assert values["prompt_savings"] == 0.0
    assert (values["lost_upstream_calls"], values["lost_upstream_tokens"]) == (3.0, float(sum(lost)))
    for row in result.rows:
        row.scores["score"] = 1.0
    paid = sum(recorder.read) + sum(recorder.written)
    assert UpstreamCost().compute(result.rows) == {"upstream_cost_of_pass": paid / 3}
    assert "lost calls" in meters(result)


def test_a_late_call_bounds_the_savings() -> None:
    data = examples(4)

    class Soon(CallsLate):
        pause = 0.05

    with Recorder() as recorder:
        # The late call of one example comes while the next one is under way, or after the last.
        result = run(Soon, _slowly(data), recorder)
    sent = sum(map(sent_tokens, data))
    late = [tokens for tokens in recorder.read if tokens == SIDE]
    assert 2 <= len(late) <= 4  # the tap may close before the last one
    report = result.config["reports"]["toy"]
    assert (report["unmatched"], report["late_calls"], report["late_tokens"]) == (len(late), len(late), sum(late))
    assert result.summary["toy"]["prompt_savings"] == 0.0  # as far as rows can tell
    assert result.summary["toy"]["prompt_savings_best"] == 0.0
    assert result.summary["toy"]["prompt_savings_worst"] == pytest.approx(1 - (sent + sum(late)) / sent)
    assert "uncertain" in result.notes["toy"]["prompt_savings"]
    assert EvalResult.from_json(result.to_json()).summary["toy"] == result.summary["toy"]


def _slowly(data: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for example in data:
        yield example
        time.sleep(0.12)


def test_calls_that_nobody_recognises_bound_the_savings() -> None:
    data = examples(3)

    class Strange(CallsAside):
        """Its side call carries no mark and no word of the client's."""

        async def read(self, request: Any, headers: dict[str, str], document: dict[str, Any]) -> Any:
            if document["messages"][0]["content"] == SIDE_QUESTION:
                headers = {"Content-Type": "application/json"}
                document = {key: value for key, value in document.items() if key != "user"}
            return await super().read(request, headers, document)

    with Recorder() as recorder:
        result = run(Strange, data, recorder)
    sent = [sent_tokens(example) for example in data]
    assert upstream(result) == [None] * 3
    assert facts(result, "least_upstream_tokens") == sent
    assert facts(result, "most_upstream_tokens") == [each + SIDE for each in sent]
    values = result.summary["toy"]
    assert math.isnan(values["prompt_savings"])
    assert "some calls at the tap could not be attributed to it" in result.notes["toy"]["prompt_savings"]
    assert values["prompt_savings_best"] == 0.0
    assert values["prompt_savings_worst"] == pytest.approx(1 - sum(recorder.read) / sum(sent))
    # The reply's id tells which call answered, whoever sent the other one.
    assert [row.scores["evidence_survived"] for row in result.rows] == [1.0] * 3


TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'}}
AGENT = {
    "id": "agent",
    "context": "",
    "tools": [TOOL],
    "turns": [
        {"role": "user", "content": "How is the weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "Sunny, 21 degrees, light wind."},
        {"role": "user", "content": "And what shall I wear there?"},
        {"role": "assistant", "content": "A jacket."},
        {"role": "user", "content": "And tomorrow?"},
    ],
}


@pytest.mark.parametrize("kind", [Reorders, DropsNull])
def test_another_spelling_of_the_same_request_is_untouched(kind: Callable[[str], Toy]) -> None:
    with Recorder() as recorder:
        result = run(kind, [AGENT], recorder)
    (row,) = result.rows
    (asked,) = [request.json for request in recorder.chats]
    if kind is Reorders:
        assert list(asked) != sorted(asked)
        assert list(asked["tools"][0]) == ["function", "type"]
    else:
        assert "content" not in asked["messages"][1]
    sent = {"tools": [TOOL], "messages": AGENT["turns"]}
    assert row.metadata["untouched"] is True
    assert row.metadata["sent_tokens"] == row.upstream_tokens == count_request(sent)
    assert row.metadata["prompt_savings"] == 0.0
    assert result.summary["toy"]["untouched_share"] == 1.0


TURNS = [{"role": "user", "content": f"Tell me about the number {number} please."} for number in range(3)]


def test_the_order_of_keys_breaks_no_prefix() -> None:
    class Alternates(Reorders):
        """Reorders every other request."""

        asked = 0

        def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
            self.asked += 1
            return super().changed(document, path) if self.asked % 2 else document

    with Recorder() as recorder:
        result = run(Alternates, [{"id": 1, "context": "", "turns": TURNS, "tools": [TOOL]}], recorder)
    orders = [list(request.json["messages"][0]) for request in recorder.chats]
    assert orders == [["content", "role"], ["role", "content"], ["content", "role"]]
    (row,) = result.rows
    assert row.metadata["prefix_stability"] == 1.0
    sizes = [prompt for prompt, _, _ in row.metadata["prefix_tokens"]]
    assert [kept for _, kept, _ in row.metadata["prefix_tokens"]] == [0, *sizes[:2]]
    assert result.summary["toy"]["cost_per_1k_cache_adjusted_usd"] > 0
    assert (row.metadata["first_message_changed"], row.metadata["rewritten_history"]) == (False, 0.0)


@pytest.mark.parametrize("header", ["x-cache", ""])
def test_a_cached_answer_is_counted_and_shown(header: str) -> None:
    class Cache(Caches):
        pass

    Cache.header = header
    data = examples(2)
    data.append({**data[0], "id": "again"})
    with Recorder() as recorder:
        result = run(Cache, data, recorder)
    sent = [sent_tokens(example) for example in data]
    assert recorder.read == sent[:2]
    assert facts(result, "answered_without_call") == [False, False, True]
    assert facts(result, "cached_answer") == [False, False, bool(header)]  # only by its own word
    assert upstream(result) == [*sent[:2], 0]
    assert result.rows[2].response == result.rows[0].response
    values = result.summary["toy"]
    assert (values["answers_without_call"], values["cached_answers"]) == (1.0, float(bool(header)))
    assert values["prompt_savings"] == pytest.approx(1 - sum(recorder.read) / sum(sent))
    assert "answers without a call" in meters(result)
    assert ("cached answers" in meters(result)) == bool(header)


def test_a_cache_that_is_warm_before_the_first_call_says_so() -> None:
    data = examples(1)
    with Recorder() as recorder:
        port = free_port()
        with toy_proxy(Caches, f"http://127.0.0.1:{port}") as url:
            rows: list[EvalRow] = []
            for _ in range(2):  # a new tap for the second run: nothing has reached it
                system = Tapped(OpenAIProxy(url, name="toy"), Forward(recorder.url), port=port)
                rows += evaluate(system, data, [AnswerQuality()], progress=False).rows
    assert len(recorder.chats) == 1
    assert [row.metadata["cached_answer"] for row in rows] == [False, True]
    assert [row.upstream_tokens for row in rows] == [sent_tokens(data[0]), 0]


def test_both_sides_of_a_failed_row_cover_the_same_attempts() -> None:
    class NeverAnswers(Loses):
        asked = -1

        async def answer(self, *arguments: Any) -> Any:
            self.asked = 0  # every request is lost
            return await super().answer(*arguments)

    data = examples(1)
    with Recorder() as recorder:
        port = free_port()
        with toy_proxy(NeverAnswers, f"http://127.0.0.1:{port}") as url:
            proxy = OpenAIProxy(url, name="toy", retry_base_delay=0.01, max_retries=2)
            result = evaluate(Tapped(proxy, Forward(recorder.url), port=port), data, [AnswerQuality()], progress=False)
    (row,) = result.rows
    assert row.error is not None
    sent = sent_tokens(data[0])
    assert recorder.read == [sent] * 3
    assert (row.metadata["sent_tokens"], row.metadata["downstream_tokens"]) == (sent, 3 * sent)
    assert row.upstream_tokens == 3 * sent
    assert row.metadata["written_tokens"] == sum(recorder.written)


def test_a_conversation_that_fails_late_was_paid_for_early_on() -> None:
    class Ends(Toy):
        """Answers twice, and no more."""

        asked = 0

        async def exchange(self, request: Any, headers: dict[str, str], body: bytes) -> Any:
            self.asked += 1
            if self.asked > 2:
                return web.Response(status=400, text="no more")
            return await super().exchange(request, headers, body)

    with Recorder() as recorder:
        port = free_port()
        with toy_proxy(Ends, f"http://127.0.0.1:{port}") as url:
            system = Tapped(OpenAIProxy(url, name="toy"), Forward(recorder.url), port=port)
            data = [{"id": 1, "context": "", "turns": TURNS}]
            (row,) = evaluate(system, data, [AnswerQuality()], progress=False).rows
    assert row.error is not None
    assert len(recorder.chats) == 2
    assert row.upstream_tokens == sum(recorder.read)
    # The third request was sent and never reached the model.
    third = sum(count_text(text) for text in (*(turn["content"] for turn in TURNS), *recorder.said))
    assert row.metadata["downstream_tokens"] == sum(recorder.read) + third
