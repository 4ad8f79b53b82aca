"""Proxies that answer themselves, remember, call late or aside, or change more than the prompt.

Each number is held against a recorder that shares no code with the tap.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from aiohttp import web

from context_bench import EvalResult, OpenAIProxy, evaluate
from context_bench.evaluators import AnswerQuality
from context_bench.metrics import default_metrics
from context_bench.metrics.dollar_cost import DollarCost
from context_bench.output.tables import meters
from context_bench.pricing import Price, Prices
from context_bench.tap.forward import Forward
from context_bench.tap.system import Tapped
from recording import Recorder, count_request, examples, facts, sent_tokens
from servers import Reply, Request, free_port, reply
from toy_callers import Asks, Caches, CallsAside, CallsLate, Loses
from toy_proxies import Toy, toy_proxy

PRICES = Prices({"big": Price(input=10.0, output=20.0), "small": Price(input=1.0, output=2.0)})


class Billing(Recorder):
    """Tells usage of its own: ten times the tokens that it counts."""

    def _answer(self, request: Request) -> Reply:
        answer = super()._answer(request)
        document = json.loads(answer.body)
        document["usage"] = {
            "prompt_tokens": 10 * count_request(request.json),
            "completion_tokens": 10 * self.written[-1],
        }
        return reply(200, document)

    def bill(self, price: Price) -> float:
        """Dollars of all requests."""
        return sum(price.input * read + price.output * wrote for read, wrote in zip(self.read, self.written)) / 1e5


def run(
    kind: Callable[[str], Toy], data: Iterable[dict[str, Any]], recorder: Recorder, repeats: int = 1, **settings: Any
) -> EvalResult:
    port = free_port()
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        proxy = OpenAIProxy(url, name="toy", model="big", **{"retry_base_delay": 0.01, **settings})
        return evaluate(
            Tapped(proxy, Forward(recorder.url), port=port),
            data,
            [AnswerQuality()],
            [*default_metrics(tapped=True, repeats=repeats), DollarCost()],
            repeats=repeats,
            prices=PRICES,
            progress=False,
        )


def _slowly(data: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for example in data:
        yield example
        time.sleep(0.12)


def test_dollars_have_bounds_where_calls_come_late() -> None:
    class Soon(CallsLate):
        pause = 0.05

        @staticmethod
        def aside(document: dict[str, Any]) -> dict[str, Any]:
            return {**document, "messages": [{"role": "user", "content": "Remember all of this. " * 200}]}

    with Billing() as recorder:
        result = run(Soon, _slowly(examples(4)), recorder)
        bill = recorder.bill(PRICES.of("big") or Price(0, 0))
        late = len(recorder.chats) - 4
    values = result.summary["toy"]
    assert late >= 2
    assert values["cost_per_1k_usd_best"] == values["cost_per_1k_usd"] < values["cost_per_1k_usd_worst"]
    assert values["cost_per_1k_usd_worst"] == pytest.approx(bill / 4 * 1000)
    assert "$ / 1k is between" in result.notes["toy"]["cost_per_1k_usd"]
    # A late call may be one more of any row.
    assert (values["untouched_share"], values["untouched_share_best"]) == (1.0, 1.0)
    assert values["untouched_share_worst"] == (4 - late) / 4
    assert (values["extra_upstream_calls_best"], values["extra_upstream_calls_worst"]) == (0.0, float(late))


class AnswersSome(Asks):
    """Answers every other captain's question itself, the first one's too."""

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        found = re.search(r"captain number (\d+) called\?", json.dumps(document["messages"]))
        if found and int(found[1]) % 2 == 0:
            message = {"role": "assistant", "content": f"It is Port{found[1]}."}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            return web.json_response({"id": "own", "object": "chat.completion", "choices": [choice]})
        return await super().answer(request, headers, document)


class EmbedsFirst(AnswersSome):
    """Asks for an embedding of each question before it decides, without any mark."""

    async def answer(
        self, request: web.Request, headers: dict[str, str], document: dict[str, Any]
    ) -> web.StreamResponse:
        body = {"model": "e", "input": "a question"}
        async with self.session.post(f"{self.upstream}/v1/embeddings", json=body) as answer:
            await answer.read()
        return await super().answer(request, headers, document)


class Embedding(Billing):
    def _answer(self, request: Request) -> Reply:
        return reply(200, {"data": []}) if request.path.endswith("/embeddings") else super()._answer(request)


@pytest.mark.parametrize("kind", [AnswersSome, EmbedsFirst])
def test_rows_that_a_proxy_answers_itself_are_part_of_the_saving(kind: Callable[[str], Toy]) -> None:
    data = examples(10)
    with Embedding() as recorder:
        result = run(kind, data, recorder)
        asked = [request for request in recorder.requests if request.path.endswith("/chat/completions")]
        assert len(asked) == 5, "no model heard of anything else"
        read = [len(request.json["messages"]) for request in asked]
    values = result.summary["toy"]
    assert read == [2] * 5
    assert [row.upstream_tokens for row in result.rows] == [
        sent_tokens(example) if place % 2 else 0 for place, example in enumerate(data)
    ]
    assert values["prompt_savings"] == pytest.approx(0.5, abs=0.01)
    assert (values["answers_without_call"], values["cached_answers"]) == (5.0, 0.0)
    assert "answers without a call" in meters(result)
    assert "cached answers" not in meters(result)
    assert [row.metadata["cost_usd"] == 0 for row in result.rows] == [True, False] * 5


def test_a_proxy_with_another_upstream_is_still_stopped() -> None:
    with Recorder() as elsewhere, Recorder() as recorder:
        port = free_port()
        with toy_proxy("passes", elsewhere.url) as url:
            system = Tapped(OpenAIProxy(url, name="toy"), Forward(recorder.url), port=port)
            with pytest.warns(UserWarning, match="nothing has reached the tap"):
                result = evaluate(system, examples(5), [AnswerQuality()], progress=False)
    assert len(result.rows) == 1
    assert recorder.chats == []


def test_a_saving_that_only_our_repetition_caused_is_left_out() -> None:
    data = examples(4)
    with Billing() as recorder:
        result = run(Caches, data, recorder, repeats=3)
        bill = recorder.bill(PRICES.of("big") or Price(0, 0))
        assert len(recorder.chats) == 4
    values, notes = result.summary["toy"], result.notes["toy"]
    assert sorted(str(row.metadata.get("saved_by_repeating")) for row in result.rows) == ["None"] * 4 + ["True"] * 8
    assert values["prompt_savings"] == 0.0
    assert values["cost_per_1k_usd"] == pytest.approx(bill / 4 * 1000)
    assert (values["answers_without_call"], values["cached_answers"]) == (8.0, 8.0)
    for key in ("prompt_savings", "cost_per_1k_usd"):
        assert "8 answers that needed no call only because --repeats asked again" in notes[key]


def test_what_a_proxy_answers_itself_is_its_own_saving_with_repeats_too() -> None:
    with Billing() as recorder:
        result = run(AnswersSome, examples(4), recorder, repeats=2)
        assert len(recorder.chats) == 4
    assert result.summary["toy"]["prompt_savings"] == pytest.approx(0.5, abs=0.01)
    assert facts(result, "saved_by_repeating") == [None] * 8


class ChangesSettings(Toy):
    """Asks a cheaper model for a shorter and warmer answer, and leaves the messages alone."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        return {**document, "model": "small", "max_tokens": 5, "temperature": 0.5, "tool_choice": "none"}


@pytest.mark.parametrize("told", [True, False])
def test_changed_settings_are_named_and_a_swapped_model_is_priced_as_what_was_sent(told: bool) -> None:
    with (Billing if told else Recorder)() as recorder:
        result = run(ChangesSettings, examples(3), recorder, max_tokens=100, temperature=0.0)
        small, big = (
            sum(price.input * read + price.output * wrote for read, wrote in zip(recorder.read, recorder.written))
            for price in (Price(1.0, 2.0), Price(10.0, 20.0))
        )
        assert {request.json["model"] for request in recorder.chats} == {"small"}
    times = 10 if told else 1
    values, notes = result.summary["toy"], result.notes["toy"]
    assert values["prompt_savings"] == 0.0
    assert values["untouched_share"] == 0.0
    assert result.rows[0].metadata["changed_settings"] == [
        "max_tokens: 100 became 5",
        "model: big became small",
        "temperature: 0 became 0.5",
        "tool_choice: none added",
    ]
    assert "model: big became small (3 rows)" in notes["untouched_share"]
    assert values["cost_per_1k_usd"] == pytest.approx(times * small / 1e6 / 3 * 1000)
    assert values["cost_per_1k_as_asked_usd"] == pytest.approx(times * big / 1e6 / 3 * 1000)
    assert "small (3 rows)" in notes["cost_per_1k_usd"]


class Spells(Toy):
    """Names the limit on the length anew, and takes the provider off the model."""

    def changed(self, document: dict[str, Any], path: str) -> dict[str, Any]:
        limit = document.pop("max_tokens")
        return {**document, "model": document["model"].rpartition("/")[2], "max_completion_tokens": limit, "seed": None}


def test_another_spelling_of_the_settings_is_untouched() -> None:
    with Billing() as recorder:
        port = free_port()
        with toy_proxy(Spells, f"http://127.0.0.1:{port}") as url:
            proxy = OpenAIProxy(url, name="toy", model="openai/big", max_tokens=100)
            system = Tapped(proxy, Forward(recorder.url), port=port)
            result = evaluate(system, examples(2), [AnswerQuality()], prices=PRICES, progress=False)
    assert facts(result, "untouched") == [True, True]
    assert facts(result, "changed_settings") == [None, None]
    assert "cost_per_1k_as_asked_usd" not in result.summary["toy"]


class Strange(CallsAside):
    """Its side call carries no mark and no word of the client's."""

    async def read(self, request: Any, headers: dict[str, str], document: dict[str, Any]) -> Any:
        if len(document["messages"]) == 1:
            headers = {"Content-Type": "application/json"}
            document = {key: value for key, value in document.items() if key != "user"}
        return await super().read(request, headers, document)


def test_side_calls_without_a_mark_bound_all_that_they_may_change() -> None:
    with Billing() as recorder:
        result = run(Strange, examples(3), recorder)
        bill = recorder.bill(PRICES.of("big") or Price(0, 0))
        own = sum(10.0 * recorder.read[place] + 20.0 * recorder.written[place] for place in (0, 2, 4)) / 1e5
    values = result.summary["toy"]
    assert (values["untouched_share_best"], values["untouched_share_worst"]) == (1.0, 0.0)
    assert math.isnan(values["untouched_share"])
    assert (values["extra_upstream_calls_best"], values["extra_upstream_calls_worst"]) == (0.0, 3.0)
    assert values["cost_per_1k_usd_best"] == pytest.approx(own / 3 * 1000)
    assert values["cost_per_1k_usd_worst"] == pytest.approx(bill / 3 * 1000)
    assert math.isnan(values["cost_per_1k_usd"])


def test_the_usage_column_holds_lost_calls_as_dollars_do() -> None:
    with Billing() as recorder:
        result = run(Loses, examples(3), recorder)
        assert len(recorder.chats) == 6
        bill = recorder.bill(PRICES.of("big") or Price(0, 0))
    values = result.summary["toy"]
    assert values["usage_prompt_tokens"] == 10 * sum(recorder.read)
    assert values["usage_rows"] == 3.0
    assert values["cost_usd"] == pytest.approx(bill)


def test_a_run_whose_rows_all_fail_has_both_sides() -> None:
    class NeverAnswers(Loses):
        async def answer(self, *arguments: Any) -> Any:
            self.asked = 0
            return await super().answer(*arguments)

    data = examples(2)
    with Billing() as recorder:
        result = run(NeverAnswers, data, recorder, max_retries=1)
        assert len(recorder.chats) == 4
    values = result.summary["toy"]
    assert values["upstream_tokens"] == values["downstream_tokens"] == sum(recorder.read)
    assert values["usage_prompt_tokens"] == 10 * sum(recorder.read)
    table = meters(result).splitlines()
    assert [cell.strip() for cell in table[0].split("|")][2:4] == ["sent", "reached the model"]
