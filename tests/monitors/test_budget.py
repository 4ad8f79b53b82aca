"""Limits on money and tokens hold with many requests in flight, and cannot be switched off by what a server says."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from command import called
from context_bench import OpenAIProxy, evaluate
from context_bench.core.call import Outcome
from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.errors import UsageError
from context_bench.evaluators.llm_judge import LLMJudge
from context_bench.monitors.budget import NOT_JUDGED, Budget
from context_bench.monitors.limits import Limits
from context_bench.pricing import Price, Prices
from context_bench.systems import AnthropicProxy, WithReader
from context_bench.tap.scripted import Scripted
from context_bench.tap.system import Tapped
from context_bench.utils.tokens import LONG_TEXT
from numbered import number_of, numbered, right, write
from servers import Request, Server, chunk, completion, message, raw, reply, stream

PRICES = Prices({"default": Price(10, 20)})
"""Dollars per million tokens."""


def costs(rows: list[Any]) -> list[float]:
    return [row.metadata["cost_usd"] for row in rows if "cost_usd" in row.metadata]


def told(prompt: int, completion_tokens: int, delay: float = 0.0) -> Callable[[Request], Any]:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt + completion_tokens,
    }
    return lambda request: completion(f"c{number_of(request)}", usage=usage, delay=delay)


# Whole runs


def test_forty_workers_do_not_pass_the_limit(tmp_path: Path) -> None:
    """Each costs 0.0002: without reservations forty of them are in flight when the fiftieth is one too many."""
    write(tmp_path / "data.jsonl", *range(400))
    (tmp_path / "prices.toml").write_text('["gpt-3.5-turbo"]\ninput = 10\noutput = 20\n')

    def answer_when_many_wait(request: Request) -> Any:
        """The first five teach what a request costs; the others wait for one another."""
        deadline = time.monotonic() + 30
        while len(server.chats) > 5 and server.most_in_flight <= 30 and time.monotonic() < deadline:
            time.sleep(0.01)
        return told(10, 5)(request)

    with Server(answer_when_many_wait) as server:
        done = called(
            *("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--output", "json", "--no-store"),
            *("--max-workers", "40", "--prices", "prices.toml", "--max-cost", "0.01"),
            cwd=tmp_path,
        )
        asked = len(server.chats)
        most = server.most_in_flight
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    spent = sum(row["metadata"]["cost_usd"] for row in document["rows"])
    assert 0.01 - 0.0002 <= spent <= 0.01 + 1e-12
    assert len(document["rows"]) == asked == 50
    assert most > 30, "they still go together"
    assert f"(${spent:.4f} spent" in document["config"]["stopped"]
    assert f"stopped early: the limit of $0.01 is reached (${spent:.4f} spent" in done.stderr


def test_forty_workers_do_not_pass_a_limit_of_tokens() -> None:
    with Server(told(10, 5, delay=0.2)) as server:
        system = OpenAIProxy(server.url, name="p")
        result = evaluate(system, numbered(*range(200)), max_workers=40, limits=Limits(max_total_tokens=1_000))
    used = sum(row.metadata["total_tokens"] for row in result.rows)
    assert used == 15 * (1_000 // 15)
    assert f"({used:,} used; the next request may take 15)" in result.config["stopped"]
    assert len(server.chats) == len(result.rows)


def test_the_longest_reply_is_reserved_before_anything_is_known() -> None:
    """With `max_tokens` no reply can be longer: not even the first ones pass the limit, and all go together."""
    with Server(told(10, 5, delay=0.2)) as server:
        system = OpenAIProxy(server.url, max_tokens=100)
        limits = Limits(max_cost=0.005)
        result = evaluate(system, numbered(*range(60)), max_workers=40, limits=limits, prices=PRICES)
    assert result.config["stopped"]
    assert sum(costs(result.rows)) <= 0.005
    assert server.most_in_flight == 2, "0.002 for the reply and about as much again for a prompt of 20 tokens"


def test_replies_that_grow_pass_the_limit_by_one_request_at_the_most() -> None:
    """A server whose first answers teach nothing of the later ones, one request at a time."""
    with Server(lambda request: told(10, 5 * (1 + number_of(request)))(request)) as server:
        result = evaluate(OpenAIProxy(server.url), numbered(*range(60)), limits=Limits(max_cost=0.01), prices=PRICES)
    spent = costs(result.rows)
    assert result.config["stopped"]
    assert sum(spent[:-1]) <= 0.01


def test_several_endpoints_share_the_limit() -> None:
    """The first request of each is unknown: they go one after the other, so that one at the most is too many."""
    with Server(told(10, 1_000, delay=0.05)) as one, Server(told(10, 1_000, delay=0.05)) as two:
        systems = [OpenAIProxy(one.url, name="one"), OpenAIProxy(two.url, name="two")]
        result = evaluate(systems, numbered(*range(30)), max_workers=8, limits=Limits(max_cost=0.01), prices=PRICES)
    assert sum(costs(result.rows)) == pytest.approx(0.0201)
    assert len(result.rows) == 1


def test_a_run_that_fits_is_not_stopped() -> None:
    with Server(told(10, 5)) as server:
        limits = Limits(max_cost=8 * 0.0002 + 1e-9, max_total_tokens=8 * 15)
        result = evaluate(OpenAIProxy(server.url), numbered(*range(8)), max_workers=4, limits=limits, prices=PRICES)
    assert result.config["stopped"] is None
    assert len(result.rows) == 8


def test_one_line_says_it_though_all_be_quiet(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(9))
    with Server(told(10, 5)) as server:
        flags = ("--proxy", server.url, "--dataset", "data.jsonl", "--output", "json", "--no-store", "--quiet")
        done = called(*flags, "--max-total-tokens", "50", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("context-bench: stopped early: the limit of 50 tokens is reached (45 used")


# Judges


def judged(prompt: int, completion_tokens: int, delay: float = 0.0) -> Callable[[Request], Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion_tokens}
    return lambda _: completion('{"rationale": "it agrees", "rating": 5}', usage=usage, delay=delay)


def answer_right(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"]}


@pytest.mark.parametrize("workers", [1, 16])
def test_the_judge_counts_against_the_limit(workers: int) -> None:
    """Each verdict costs 0.002 and each answer nothing: ten fit."""
    with Server(judged(100, 50, delay=0.02)) as server:
        judge = LLMJudge(server.url, "gpt-4")
        limits = Limits(max_cost=0.0201)
        result = evaluate(
            answer_right, numbered(*range(40)), evaluators=[judge], max_workers=workers, limits=limits, prices=PRICES
        )
        asked = len(server.chats)
    spent = sum(row.metadata.get("judge_cost_usd", 0.0) for row in result.rows)
    assert (asked, spent) == (10, pytest.approx(0.02))
    assert "$0.0200 spent, $0.0200 of it on judging" in result.config["stopped"]
    left = [row.unscored["llm-judge"] for row in result.rows if "judge_score" not in row.scores]
    assert set(left) <= {NOT_JUDGED}


def test_a_judge_and_a_system_share_the_limit() -> None:
    """An answer costs 0.0002 and its verdict 0.002: four pairs are 0.0088, and a fifth would pass 0.01."""
    with Server(told(10, 5)) as server, Server(judged(100, 50)) as judging:
        result = evaluate(
            OpenAIProxy(server.url, name="p"),
            numbered(*range(40)),
            evaluators=[LLMJudge(judging.url, "gpt-4")],
            limits=Limits(max_cost=0.01),
            prices=PRICES,
        )
    judges = [row.metadata.get("judge_cost_usd", 0.0) for row in result.rows]
    assert sum(costs(result.rows)) + sum(judges) <= 0.01
    assert [cost for cost in judges if cost] == pytest.approx([0.002] * 4)


def test_tokens_of_the_judge_count_too() -> None:
    with Server(judged(100, 50)) as server:
        limits = Limits(max_total_tokens=600)
        result = evaluate(answer_right, numbered(*range(9)), evaluators=[LLMJudge(server.url, "m")], limits=limits)
    assert len(server.chats) == 3
    assert "(518 used, 450 of them by judges; the next request may take 151)" in result.config["stopped"]


def test_a_judge_without_usage_is_counted_by_our_own_count() -> None:
    with Server(completion('{"rationale": "it agrees", "rating": 5}')) as server:
        limits = Limits(max_total_tokens=2_000)
        result = evaluate(answer_right, numbered(*range(40)), evaluators=[LLMJudge(server.url, "m")], limits=limits)
    assert 1 <= len(server.chats) < 10, "the prompt of the judge alone has some 400 tokens"
    assert result.config["stopped"]


def test_a_verdict_from_the_store_costs_nothing(tmp_path: Path) -> None:
    with Server(judged(100, 50)) as server:

        def run() -> Any:
            judge = LLMJudge(server.url, "gpt-4")
            limits = Limits(max_cost=0.02)
            return evaluate(
                answer_right, numbered(*range(8)), evaluators=[judge], limits=limits, prices=PRICES, cache_dir=tmp_path
            )

        assert [run().config["stopped"] for _ in range(3)] == [None] * 3
        assert len(server.chats) == 8


def test_what_the_limit_left_unjudged_is_judged_on_resume(tmp_path: Path) -> None:
    with Server(judged(100, 50)) as server:

        def run(limit: float) -> Any:
            judge = LLMJudge(server.url, "gpt-4")
            limits = Limits(max_cost=limit)
            return evaluate(
                answer_right, numbered(*range(8)), evaluators=[judge], limits=limits, prices=PRICES, cache_dir=tmp_path
            )

        assert run(0.01).config["stopped"]
        whole = run(1)
    assert len(server.chats) == 8
    assert [row.scores["judge_score"] for row in whole.rows] == [1.0] * 8


def test_answers_in_flight_are_judged_when_something_else_stops_the_run() -> None:
    """The second answer comes after two errors have stopped the run: no limit on spending is near."""
    failed = threading.Event()

    def answer(request: Request) -> Any:
        number = number_of(request)
        if number == 1:
            failed.wait(30)
        if number < 2:  # the first goes alone, since nothing is known of its cost; the second comes late
            return told(10, 5, delay=0.5 * number)(request)
        if number == 3:
            failed.set()
        return reply(422, {"error": {"message": "this one fails"}})

    with Server(answer) as server, Server(judged(100, 50)) as judging:
        result = evaluate(
            OpenAIProxy(server.url, name="p"),
            numbered(*range(40)),
            evaluators=[LLMJudge(judging.url, "gpt-4")],
            max_workers=2,
            limits=Limits(max_cost=1.0, max_errors="1"),
            prices=PRICES,
        )
    assert result.config["stopped"]
    assert [row.scores.get("judge_score") for row in result.rows if row.error is None] == [1.0, 1.0]


def test_a_judge_without_a_price_is_refused_under_a_limit_on_cost() -> None:
    with pytest.raises(UsageError, match="'some-judge' has no price, so --max-cost cannot be enforced"):
        evaluate(
            answer_right,
            numbered(1),
            evaluators=[LLMJudge("http://127.0.0.1:9", "some-judge")],
            limits=Limits(max_cost=1),
            prices=Prices({"gpt-4": Price(1, 1)}),
        )


# What counts


def test_a_failed_request_counts_where_its_usage_is_known() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    empty = raw(json.dumps({"choices": [], "usage": usage}).encode())
    with Server(empty) as server:
        result = evaluate(OpenAIProxy(server.url), numbered(*range(9)), limits=Limits(max_cost=0.005), prices=PRICES)
    assert [row.error is not None for row in result.rows] == [True, True]
    assert costs(result.rows) == pytest.approx([0.002, 0.002])
    assert "$0.0040 spent" in result.config["stopped"]


def test_the_turns_before_a_failed_one_were_paid_for() -> None:
    turns = [{"role": "user", "content": "code of item 1?"}, {"role": "user", "content": "and of item 2?"}]
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    refused = reply(400, {"error": {"message": "no"}})
    with Server(completion("c1", usage=usage), refused) as server:
        (row,) = evaluate(OpenAIProxy(server.url), numbered(1, turns=turns), prices=PRICES).rows
    assert row.error is not None
    assert row.metadata["cost_usd"] == pytest.approx(0.002)
    assert row.metadata["attempts"] == 2


@each_case("value", [-5, 0, 2 * 10**18, "5", 1.5, True, None, [1]])
@each_case("streamed", [False, True])
def test_no_usage_switches_a_limit_off(value: Any, streamed: bool) -> None:
    """What a server tells and cannot be, or does not tell, is replaced by our own count of prompt and reply."""
    usage = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), value)
    if streamed:
        last = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
        answer = stream(chunk("word " * 50, finish="stop"), last, b"data: [DONE]\n\n")
    else:
        answer = completion("word " * 50, usage=usage)
    with Server(answer) as server:
        system = OpenAIProxy(server.url, name="p", stream=streamed)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = evaluate(system, numbered(*range(50)), limits=Limits(max_cost=0.01), prices=PRICES)
            limited = evaluate(system, numbered(*range(50)), limits=Limits(max_total_tokens=500))
    assert 4 <= len(result.rows) <= 9, "about 20 tokens of prompt and 50 of reply: 0.0012 dollars"
    assert "by our own count" in result.config["stopped"]
    assert costs(result.rows) == [], "what was not told is not measured"
    assert 4 <= len(limited.rows) <= 8
    ignored = [warning for warning in warned if "impossible token usage" in str(warning.message)]
    assert len(ignored) == (0 if value is None else 2), "once for each run"
    noted = [row.metadata.get("ignored_usage", {}).keys() for row in result.rows]
    assert all(each == (set() if value is None else usage.keys()) for each in noted)


def test_a_retried_request_keeps_its_reservation() -> None:
    """Nobody else gets the room of a request that is tried again."""
    behaviour = {n: [reply(500), told(10, 5)] for n in range(40)}

    def answer(request: Request) -> Any:
        script = behaviour[number_of(request)]
        chosen = script.pop(0) if len(script) > 1 else script[0]
        return chosen(request) if callable(chosen) else chosen

    with Server(answer) as server:
        system = OpenAIProxy(server.url, retry_base_delay=0.05)
        result = evaluate(system, numbered(*range(40)), max_workers=40, limits=Limits(max_cost=0.0021), prices=PRICES)
    assert len(result.rows) == 10
    assert {row.metadata["attempts"] for row in result.rows} == {2}
    assert sum(costs(result.rows)) == pytest.approx(0.002)


# Models without a price


def unpriced(server: Server) -> list[Any]:
    proxy = OpenAIProxy(server.url, model="unlisted", name="p")
    return [
        proxy,
        AnthropicProxy(server.url, model="unlisted", name="p"),
        WithReader(lambda example: example["context"], proxy, name="p"),
        Tapped(OpenAIProxy(server.url, model="unlisted", name="p"), Scripted.from_text("echo")),
    ]


@pytest.mark.parametrize("place", range(4))
def test_a_limit_on_cost_needs_a_price_for_every_model(place: int) -> None:
    with Server(right) as server:
        limits, prices = Limits(max_cost=1.0), Prices({"listed": Price(1, 2)})
        with pytest.raises(UsageError, match="'unlisted' has no price, so --max-cost cannot be enforced"):
            evaluate(unpriced(server)[place], numbered(1), limits=limits, prices=prices)
        with pytest.raises(UsageError, match="'unlisted' has no price, so"):  # by the table that ships
            evaluate(unpriced(server)[place], numbered(1), limits=limits)
        assert server.requests == []


def test_prices_alone_warn_once_for_each_model() -> None:
    with Server(right) as server:
        systems = [OpenAIProxy(server.url, model="unlisted", name=name) for name in ("a", "b")]
        with pytest.warns(UserWarning, match="'unlisted' has no price, so its cost is not shown") as told:
            result = evaluate(systems, numbered(1, 2), prices=Prices({"listed": Price(1, 2)}))
    assert len(told) == 1
    assert costs(result.rows) == []


@pytest.mark.filterwarnings("ignore:.*reports no token usage")
@pytest.mark.parametrize("limits", [Limits(max_cost=1e6), Limits(max_total_tokens=10**9)], ids=["dollars", "tokens"])
def test_the_tokens_of_long_texts_are_not_counted_on_the_event_loop(limits: Limits) -> None:
    counted: list[tuple[int, bool]] = []

    def count(text: str) -> int:
        counted.append((len(text), threading.current_thread() is threading.main_thread()))
        return len(text) // 4

    context, response = "a long note. " * 5_000, "a long reply. " * 4_000
    with Server(lambda _: completion(response)) as server:  # it tells no usage: we count ourselves
        data = [{"id": n, "context": f"{n} {context}", "answer": "x"} for n in range(3)]
        result = evaluate(OpenAIProxy(server.url), data, max_workers=2, limits=limits, prices=PRICES, tokenizer=count)
    assert [row.error for row in result.rows] == [None] * 3
    long = [here for size, here in counted if size >= LONG_TEXT]
    assert len(long) >= 3 * 4, "each context for its estimate and its row, each reply for the budget and its row"
    assert not any(long)


# One request at a time


class Asks:
    """A system that has a model and is asked over the network."""

    name, model = "asks", "m"

    async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": example["context"]}

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": example["context"]}


def job(order: int, context: str = "one two three") -> Job:
    return Job(order, Asks(), Item({"id": order, "context": context}))


def answered(prompt: Any, completion_tokens: Any, **more: Any) -> Outcome:
    return Outcome({"response": "a b"}, {"prompt_tokens": prompt, "completion_tokens": completion_tokens, **more})


def words(text: str) -> int:
    return len(text.split())


def test_an_unknown_request_goes_alone_and_teaches() -> None:
    async def run() -> None:
        budget = Budget(Limits(max_total_tokens=100), None, words)
        assert await budget.admit(job(0))
        second = asyncio.ensure_future(budget.admit(job(1)))
        await asyncio.sleep(0.01)
        assert not second.done(), "nothing is known of what the first will cost"
        await budget.settle(job(0), answered(6, 24))  # twice our count of three words
        assert await second
        assert await budget.admit(job(2, "one two three four"))  # 30 spent, 30 and 32 reserved
        third = asyncio.ensure_future(budget.admit(job(3)))
        await asyncio.sleep(0.01)
        assert not third.done()
        await budget.settle(job(1), answered(6, 1))
        assert await third  # 37 spent, 32 and 30 reserved

    asyncio.run(run())


def test_what_waits_is_let_go_when_the_run_stops() -> None:
    async def run() -> None:
        reasons: list[str] = []
        budget = Budget(Limits(max_total_tokens=10), None, words, reasons.append)
        assert await budget.admit(job(0))
        waiting = [asyncio.ensure_future(budget.admit(job(n))) for n in (1, 2)]
        await asyncio.sleep(0.01)
        budget.stop()
        assert await asyncio.gather(*waiting) == [False, False]
        assert reasons == [], "it was somebody else who stopped it"

    asyncio.run(run())


def test_a_total_that_is_less_than_its_parts_is_not_believed() -> None:
    async def run() -> None:
        budget = Budget(Limits(max_total_tokens=100), None, words)
        assert await budget.admit(job(0))
        await budget.settle(job(0), answered(30, 20, total_tokens=0))
        assert budget.spent.tokens == 50

    asyncio.run(run())


def test_a_failure_without_usage_is_not_known_to_cost() -> None:
    async def run() -> None:
        budget = Budget(Limits(max_cost=1.0), Prices({"m": Price(10, 20)}), words)
        assert await budget.admit(job(0))
        await budget.settle(job(0), Outcome(error="TimedOut: no answer"))
        assert (budget.spent.dollars, budget.spent.tokens) == (0.0, 0)

    asyncio.run(run())


def test_the_reason_names_the_limit_that_was_met() -> None:
    reasons = []
    for limits in (Limits(max_cost=0.0), Limits(max_total_tokens=0), Limits(max_cost=9.0, max_total_tokens=0)):

        async def run(limits: Limits = limits) -> None:
            budget = Budget(limits, PRICES, words, reasons.append)
            assert not await budget.admit(job(0))

        asyncio.run(run())
    assert [re.sub(r"\(.*", "", reason) for reason in reasons] == [
        "the limit of $0 is reached ",
        "the limit of 0 tokens is reached ",
        "the limit of 0 tokens is reached ",
    ]


def test_anthropics_form_reserves_its_longest_reply() -> None:
    with Server(lambda _: message("x", usage={"input_tokens": 10, "output_tokens": 5})) as server:
        system = AnthropicProxy(server.url, max_tokens=100)
        result = evaluate(system, numbered(*range(30)), max_workers=8, limits=Limits(max_total_tokens=300))
    assert sum(row.metadata["total_tokens"] for row in result.rows) <= 300
    assert len(result.rows) >= 12
    assert server.most_in_flight <= 2
