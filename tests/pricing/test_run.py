"""Money in a run: rows priced by the table that ships, a tap's bills, estimates, judges, and what is not priced."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from command import called
from context_bench import OpenAIProxy, evaluate
from context_bench.evaluators import AnswerQuality, LLMJudge
from context_bench.pricing import Price, Prices, load_shipped_prices
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from context_bench.systems import AnthropicProxy, WithReader
from context_bench.tap.forward import Forward
from context_bench.tap.scripted import Scripted
from context_bench.tap.system import Tapped
from numbered import number_of, numbered, write
from servers import Reply, Request, Server, completion, free_port, message, reply
from toy_proxies import Toy, read_chat, toy_proxy

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 600}}
COST = (400 * 2.5 + 600 * 1.25 + 200 * 10) / 1e6
"""Of such a request to gpt-4o."""


def right_for_even(request: Request) -> Reply:
    number = number_of(request)
    return completion(f"c{number}" if number % 2 == 0 else "no idea", usage=USAGE)


def test_the_summary_by_hand() -> None:
    with Server(right_for_even) as server:
        result = evaluate(OpenAIProxy(server.url, model="gpt-4o", name="p"), numbered(1, 2, 3, 4, 6))
    assert [row.metadata["cost_usd"] for row in result.rows] == [pytest.approx(COST)] * 5
    values = result.summary["p"]
    assert values["cost_usd"] == pytest.approx(5 * COST)
    assert values["cost_per_1k_usd"] == pytest.approx(1000 * COST)
    assert values["cost_of_pass_usd"] == pytest.approx(5 * COST / 3)
    assert "cost_usd" not in result.notes.get("p", {})


def test_what_never_answered_has_no_price_for_a_thousand() -> None:
    with Server(Reply(500)) as server:
        proxy = OpenAIProxy(server.url, model="gpt-4o", name="p", max_retries=0)
        tapped = Tapped(proxy, Scripted.from_text("text:c1"), port=free_port())
        result = evaluate(tapped, numbered(1, 2), preflight=False, progress=False)
    assert math.isnan(result.summary["p"]["cost_per_1k_usd"])
    assert result.notes["p"]["cost_per_1k_usd"] == "not measured: no row succeeded"


def test_anthropic_pays_for_writing_to_the_cache() -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
        "cache_read_input_tokens": 3_000,
        "output_tokens": 7,
    }
    with Server(message("c1", usage)) as server:
        result = evaluate(AnthropicProxy(server.url, model="claude-sonnet-4-5", name="p"), numbered(1))
    (row,) = result.rows
    # 10 x 3 + 200 x 3.75 + 100 x 6 + 3,000 x 0.3 + 7 x 15
    assert row.metadata["cost_usd"] == pytest.approx(2_385e-6)
    assert result.summary["p"]["cache_hit_rate"] == pytest.approx(3_000 / 3_310)
    assert result.summary["p"]["cost_per_1k_uncached_usd"] == pytest.approx((3_310 * 3 + 7 * 15) / 1e3)


def test_turns_of_a_conversation_are_priced_one_by_one() -> None:
    usage = {"prompt_tokens": 150_000, "completion_tokens": 100}
    turns = [{"role": "user", "content": "code of item 1?"}, {"role": "user", "content": "and code of item 2?"}]
    with Server(completion("c2", usage=usage)) as server:
        proxy = OpenAIProxy(server.url, model="gemini/gemini-2.5-pro", name="p")
        (row,) = evaluate(proxy, [{"id": 1, "context": "", "turns": turns, "answer": "c2"}]).rows
    assert row.metadata["prompt_tokens"] == 300_000
    # 2 x (150,000 x 1.25 + 100 x 10): neither request is above 200,000
    assert row.metadata["cost_usd"] == pytest.approx(0.377)


def test_the_run_records_which_prices_it_had(tmp_path: Path) -> None:
    with Server(completion("c1", usage=USAGE)) as server:
        proxy = OpenAIProxy(server.url, model="openai/gpt-4o-2099-01-01", name="p")
        result = evaluate(proxy, numbered(1), cache_dir=tmp_path)
    told = {
        "model": "openai/gpt-4o-2099-01-01",
        "entry": "gpt-4o",
        "how": "without its provider and its date",
        "price": {"input": 2.5, "cached_input": 1.25, "output": 10.0},
    }
    prices = load_shipped_prices()
    assert result.config["prices"] == {"source": prices.source, "date": prices.date, "models": {"p": told}}
    assert result.notes["p"]["cost_usd"].startswith("openai/gpt-4o-2099-01-01 priced as gpt-4o")
    shown = called("runs", "export", "last", "--cache-dir", str(tmp_path), "--output", "json", cwd=tmp_path)
    document = json.loads(shown.stdout)
    assert document["config"]["prices"]["models"]["p"] == told
    assert document["summary"]["p"]["cost_usd"] == pytest.approx(COST)


# Not priced is not 0


def test_a_model_without_a_price_says_so() -> None:
    with Server(completion("c1", usage=USAGE)) as server:
        systems = [OpenAIProxy(server.url, model=model, name=model) for model in ("my-own", "gpt-4o")]
        result = evaluate(systems, numbered(1))
    values, notes = result.summary["my-own"], result.notes["my-own"]
    for key in ("cost_usd", "cost_per_1k_usd", "cost_of_pass_usd"):
        assert math.isnan(values[key])
        assert notes[key] == "not priced: no price for 'my-own'; add one to a file for --prices"
    assert "cost_usd" not in result.rows[0].metadata
    document = json.loads(result.to_json())
    assert document["summary"]["my-own"]["cost_of_pass_usd"] is None
    again = EvalResult.from_json(result.to_json())
    assert math.isnan(again.summary["my-own"]["cost_of_pass_usd"])
    assert again.filter(system="gpt-4o").summary["gpt-4o"]["cost_usd"] == pytest.approx(COST)
    table = TableReporter(wide=True).render(result)
    assert "not priced" in next(line for line in table.splitlines() if line.startswith("| my-own"))
    assert "$0.00375" in next(line for line in table.splitlines() if line.startswith("| gpt-4o"))


def test_a_table_in_which_nothing_is_priced_has_no_dollars() -> None:
    with Server(completion("c1", usage=USAGE)) as server:
        result = evaluate(OpenAIProxy(server.url, model="my-own", name="p"), numbered(1))
    assert "$" not in TableReporter(wide=True).render(result)


def test_a_server_that_reports_no_usage_was_not_free() -> None:
    with Server(completion("c1")) as server:
        result = evaluate(OpenAIProxy(server.url, model="gpt-4o", name="p"), numbered(1))
    assert math.isnan(result.summary["p"]["cost_usd"])
    assert result.notes["p"]["cost_usd"] == "not measured: the token usage of no row is known"


def test_a_system_without_a_model_has_no_dollars() -> None:
    result = evaluate("passthrough", numbered(1))
    assert not [key for key in result.summary["passthrough"] if key.endswith("_usd")]


# The judge


def test_what_a_judge_costs_stands_apart() -> None:
    verdict = completion('{"rating": 5}', usage={"prompt_tokens": 300, "completion_tokens": 10})
    with Server(completion("c1", usage=USAGE)) as server, Server(verdict) as bench:
        proxy = OpenAIProxy(server.url, model="gpt-4o", name="p")
        judge = LLMJudge(bench.url, model="gpt-4o-mini")
        result = evaluate(proxy, numbered(1, 2), evaluators=[AnswerQuality(), judge])
    judged = (300 * 0.15 + 10 * 0.6) / 1e6
    assert result.summary["p"]["cost_usd"] == pytest.approx(2 * COST)
    assert result.summary["p"]["judge_cost_usd"] == pytest.approx(2 * judged)
    assert result.config["prices"]["models"]["llm-judge"]["entry"] == "gpt-4o-mini"


# The tap


def run_tapped(kind: str | Callable[[str], Toy], upstream: str, prices: Prices | None = None) -> EvalResult:
    """Run two examples through a toy proxy with a tap behind it."""
    port = free_port()
    with toy_proxy(kind, f"http://127.0.0.1:{port}") as url:
        proxy = OpenAIProxy(url, model="gpt-4o", name="p")
        return evaluate(Tapped(proxy, Forward(upstream), port=port), numbered(1, 2), progress=False, prices=prices)


def test_calls_that_a_proxy_makes_on_top_are_on_the_bill() -> None:
    """The proxy asks for a summary first, and tells its client the usage of the second call alone."""
    with Server(right_for_even) as server:
        result = run_tapped("twice", server.url)
        assert len(server.chats) == 4
    assert [row.metadata["cost_usd"] for row in result.rows] == [pytest.approx(2 * COST)] * 2
    assert result.summary["p"]["cost_usd"] == pytest.approx(4 * COST)
    assert "cost_usd" not in result.notes["p"]
    counted = [row.upstream_tokens for row in result.rows]
    assert None not in counted
    # both rows are billed 2,000 tokens: the ratio is sum(2,000 c) / sum(c^2)
    first, second = (float(tokens or 0) for tokens in counted)
    expected = 2_000 * (first + second) / (first**2 + second**2)
    assert result.summary["p"]["billed_to_counted"] == pytest.approx(expected)


def test_without_a_bill_what_was_counted_is_an_estimate() -> None:
    with Server(lambda request: completion(f"c{number_of(request)}")) as server:
        result = run_tapped("passes", server.url)
    for row in result.rows:
        assert row.metadata["cost_is_estimate"] is True
        dollars = ((row.upstream_tokens or 0) * 2.5 + row.metadata["written_tokens"] * 10) / 1e6
        assert row.metadata["cost_usd"] == pytest.approx(dollars)
    assert result.notes["p"]["cost_of_pass_usd"].startswith("an estimate: 2 of 2 rows by tokens that we counted")
    assert "billed_to_counted" not in result.summary["p"]


def test_prices_of_this_run_hold_for_answers_of_an_earlier_one(tmp_path: Path) -> None:
    with Server(completion("c1", usage=USAGE)) as server:
        proxy = OpenAIProxy(server.url, model="gpt-4o", name="p")
        first = evaluate(proxy, numbered(1), cache_dir=tmp_path)
        dearer = evaluate(proxy, numbered(1), cache_dir=tmp_path, prices=Prices({"gpt-4o": Price(1_000.0, 0.0)}))
        again = evaluate(proxy, numbered(1), cache_dir=tmp_path)
        assert len(server.chats) == 1
    found = [result.rows[0].metadata["cost_usd"] for result in (first, dearer, again)]
    assert found == [pytest.approx(COST), pytest.approx(1.0), pytest.approx(COST)]


def test_a_limit_on_cost_needs_no_file(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(50))
    usage = {"prompt_tokens": 100_000, "completion_tokens": 0}  # a quarter of a dollar each
    with Server(lambda request: completion(f"c{number_of(request)}", usage=usage)) as server:
        run = ["--proxy", server.url, "--model", "gpt-4o", "--dataset", "data.jsonl", "--max-cost", "1", "--quiet"]
        done = called(*run, "--max-workers", "1", "--output", "json", "--no-store", cwd=tmp_path)
        asked = len(server.chats)
    assert done.returncode == 3
    assert "the limit of $1 is reached" in json.loads(done.stdout)["config"]["stopped"]
    assert 3 <= asked <= 5


def test_a_script_that_answers_is_not_paid() -> None:
    port = free_port()
    with toy_proxy("passes", f"http://127.0.0.1:{port}") as url:
        proxy = OpenAIProxy(url, model="gpt-4o", name="p")
        result = evaluate(Tapped(proxy, Scripted.from_text("text:c1"), port=port), numbered(1), progress=False)
    assert result.summary["p"]["cost_usd"] > 0
    said = "estimated at gpt-4o list prices: no API was called"
    assert result.notes["p"]["cost_usd"].startswith(said)


def test_a_script_that_reads_for_a_compressor_is_not_paid_either() -> None:
    port = free_port()
    model = OpenAIProxy(f"http://127.0.0.1:{port}", model="gpt-4o", name="reader")
    reader = Tapped(model, Scripted.from_text("text:c1"), port=port, known_as="reader")
    result = evaluate(WithReader(lambda example: example["context"], reader, "p"), numbered(1), progress=False)
    assert "no API was called" in result.notes["p"]["cost_usd"]


class Embeds(Toy):
    """Has the question embedded before it passes the request on."""

    async def exchange(self, request: web.Request, headers: dict[str, str], body: bytes) -> web.StreamResponse:
        document = read_chat(request, body)
        if document is not None:
            asked = {"model": "embedder", "input": document["messages"][-1]["content"]}
            async with self.session.post(f"{self.upstream}/v1/embeddings", json=asked, headers=headers) as found:
                await found.read()
        return await super().exchange(request, headers, body)


def answer_or_embed(request: Request) -> Reply:
    if request.path.endswith("/embeddings"):
        return reply(body={"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 5_000, "total_tokens": 5_000}})
    return completion(f"c{number_of(request)}", usage=USAGE)


def test_embeddings_stand_apart() -> None:
    with Server(answer_or_embed) as server:
        unpriced = run_tapped(Embeds, server.url)
    assert [row.metadata["cost_usd"] for row in unpriced.rows] == [pytest.approx(COST)] * 2
    assert math.isnan(unpriced.summary["p"]["embedding_cost_usd"])
    said = "not priced: 2 calls for embeddings (embedder; 10,000 tokens); they are in no other cost"
    assert unpriced.notes["p"]["embedding_cost_usd"] == said
    assert f"* embedding $: {said}." in TableReporter(wide=True).render(unpriced)
    prices = Prices({"gpt-4o": Price(2.5, 10.0, 1.25), "embedder": Price(0.02, 0.0)})
    with Server(answer_or_embed) as server:
        priced = run_tapped(Embeds, server.url, prices=prices)
    values = priced.summary["p"]
    assert (values["cost_usd"], values["embedding_cost_usd"]) == (pytest.approx(2 * COST), pytest.approx(200e-6))
    assert " embedding $ " in TableReporter(wide=True).render(priced).splitlines()[0]


def test_attempts_that_timed_out_are_counted_apart_with_an_upper_bound() -> None:
    """The first attempt of each example gets no answer in time. A prompt and 100 tokens of reply may be on the bill."""
    seen: Counter[int] = Counter()

    def answer(request: Request) -> Any:
        number = number_of(request)
        seen[number] += 1
        return completion("c1", usage=dict(USAGE), delay=3.0 if seen[number] == 1 else 0.0)

    with Server(answer) as server:
        system = OpenAIProxy(server.url, name="p", timeout=0.5, retry_base_delay=0.01, max_tokens=100)
        result = evaluate(system, numbered(1, 2), prices=Prices({"default": Price(10, 20)}))
    most = 2 * (1_000 * 10 + 100 * 20) / 1e6  # the server says that the prompt has 1,000 tokens
    values = result.summary["p"]
    assert (values["timed_out_attempts"], values["timed_out_cost_usd"]) == (2, pytest.approx(most))
    assert values["cost_usd"] == pytest.approx(2 * (1_000 * 10 + 200 * 20) / 1e6)


def test_without_a_bound_on_the_reply_what_timed_out_is_not_measured() -> None:
    with Server(completion("c1", delay=2.0)) as server:
        system = OpenAIProxy(server.url, name="p", timeout=0.3, max_retries=0)
        result = evaluate(system, numbered(1), prices=Prices({"default": Price(10, 20)}))
    values = result.summary["p"]
    assert values["timed_out_attempts"] == 1
    assert math.isnan(values["timed_out_cost_usd"])
    assert result.notes["p"]["timed_out_cost_usd"].startswith("1 attempt may have been billed anyway")
