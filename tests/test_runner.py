"""evaluate(): what is read, in which order things run, what a row counts, and what becomes of failures."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from itertools import count, pairwise
from typing import Any

import pytest

from context_bench import OpenAIProxy, Scores, aevaluate, count_tokens, evaluate
from context_bench.errors import DataError, ScoreClash, UsageError
from context_bench.metrics import MeanScore
from servers import Server, completion
from timing import depends_on_time


def words(text: str) -> int:
    """A tokenizer that can be followed by hand."""
    return len(text.split())


def example(identity: str | int, context: str = "one two three four", **fields: Any) -> dict[str, Any]:
    return {"id": identity, "context": context, **fields}


class Recorder:
    """A system that notes when it is called, by whom and with what."""

    def __init__(self, name: str, calls: list[tuple[str, Any]], pause: float = 0.0) -> None:
        self.name, self.calls, self.pause = name, calls, pause

    def process(self, item: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((self.name, item["id"]))
        time.sleep(self.pause)
        return {"response": f"{self.name} {item['id']}"}


class Crowd:
    """Counts how many calls are inside at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def system(self, name: str) -> Any:
        def process(item: dict[str, Any]) -> dict[str, Any]:
            with self._lock:
                self.now += 1
                self.most = max(self.most, self.now)
            time.sleep(0.01)
            with self._lock:
                self.now -= 1
            return {"response": "x"}

        process.__name__ = name
        return process


class Length:
    """An evaluator with one score that is easy to work out."""

    name = "length"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {"length": float(len(processed["response"]))}


# What is read


def test_an_endless_input_is_read_no_further_than_asked() -> None:
    given: list[int] = []

    def endless() -> Any:
        for number in count():
            given.append(number)
            yield example(number)

    result = evaluate(lambda item: {"response": "x"}, endless(), max_examples=5)
    assert [row.example_id for row in result.rows] == [0, 1, 2, 3, 4]
    assert given == [0, 1, 2, 3, 4]


def test_input_is_not_read_far_ahead_of_the_work() -> None:
    read = done = furthest = 0

    def source() -> Any:
        nonlocal read, furthest
        for number in range(300):
            read += 1
            furthest = max(furthest, read - done)
            yield example(number)

    def slow(item: dict[str, Any]) -> str:
        nonlocal done
        time.sleep(0.0005)
        done += 1
        return item["context"]

    evaluate(slow, source(), max_workers=2)
    assert read == 300
    assert furthest <= 10


def test_a_fast_endpoint_does_not_run_away_from_a_slow_one() -> None:
    read, slow_done = 0, 0
    furthest = 0

    class Endpoint:
        def __init__(self, name: str, pause: float) -> None:
            self.name, self.pause = name, pause

        def process(self, item: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError("aprocess is there")

        async def aprocess(self, item: dict[str, Any]) -> dict[str, Any]:
            nonlocal slow_done
            await asyncio.sleep(self.pause)
            slow_done += self.pause > 0
            return {"response": "x"}

    def source() -> Any:
        nonlocal read, furthest
        for number in range(60):
            read += 1
            furthest = max(furthest, read - slow_done)
            yield example(number)

    result = evaluate([Endpoint("fast", 0), Endpoint("slow", 0.002)], source(), max_workers=2)
    assert len(result.rows) == 120
    assert furthest <= 12


def test_no_examples_at_all() -> None:
    with pytest.warns(UserWarning, match="the dataset gave no examples, so nothing was measured"):
        result = evaluate(lambda item: {"response": "x"}, [])
    assert result.rows == []
    (values,) = result.summary.values()
    assert values["num_examples"] == 0
    assert math.isnan(values["mean_score"])
    assert math.isnan(values["cost_of_pass"])
    assert result.notes["<lambda>"]["mean_score"] == "not measured: there are no rows to score"
    assert evaluate(lambda item: "", [example(1)], max_examples=0).rows == []


# Order


def test_rows_stand_in_the_order_of_the_input_whatever_finishes_first() -> None:
    def uneven(item: dict[str, Any]) -> str:
        time.sleep(0.02 if item["id"] % 4 == 0 else 0)
        return ""

    result = evaluate(uneven, [example(number) for number in range(24)], max_workers=6)
    assert [row.example_id for row in result.rows] == list(range(24))


def test_systems_take_turns_example_by_example() -> None:
    calls: list[tuple[str, Any]] = []
    evaluate([Recorder("a", calls), Recorder("b", calls)], [example(number) for number in range(3)])
    assert calls == [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_endpoints_take_turns_within_a_few_examples() -> None:
    with Server(completion()) as one, Server(completion()) as two:
        systems = [OpenAIProxy(one.url, name="one"), OpenAIProxy(two.url, name="two")]
        evaluate(systems, [example(number) for number in range(30)])
    moments = sorted([(r.moment, 1) for r in one.chats] + [(r.moment, 2) for r in two.chats])
    lead = 0
    for _, who in moments:
        lead += 1 if who == 1 else -1
        assert abs(lead) <= 6
    assert len(moments) == 60


def test_repeats_are_rows_of_their_own_and_interleaved() -> None:
    calls: list[tuple[str, Any]] = []
    result = evaluate([Recorder("a", calls), Recorder("b", calls)], [example(1), example(2)], repeats=2)
    assert [(row.example_id, row.system, row.repeat) for row in result.rows] == [
        (1, "a", 0),
        (1, "a", 1),
        (1, "b", 0),
        (1, "b", 1),
        (2, "a", 0),
        (2, "a", 1),
        (2, "b", 0),
        (2, "b", 1),
    ]
    assert calls[:4] == [("a", 1), ("b", 1), ("a", 1), ("b", 1)]
    assert result.config["datasets"] == {"": 2}


# How much runs at once


def test_systems_in_process_run_one_at_a_time_by_default() -> None:
    crowd = Crowd()
    evaluate([crowd.system("a"), crowd.system("b"), crowd.system("c")], [example(n) for n in range(6)])
    assert crowd.most == 1


def test_max_workers_bounds_what_runs_in_threads() -> None:
    crowd = Crowd()
    evaluate([crowd.system("a"), crowd.system("b")], [example(n) for n in range(12)], max_workers=3)
    assert crowd.most == 3


def test_max_workers_bounds_requests_to_each_endpoint() -> None:
    with Server(completion(delay=0.02)) as server:
        evaluate(OpenAIProxy(server.url), [example(n) for n in range(20)], max_workers=4)
        assert server.most_in_flight == 4
        assert len(server.chats) == 20


# Event loops


def test_inside_a_running_loop() -> None:
    async def notebook() -> Any:
        return evaluate(lambda item: {"response": "x"}, [example(1)])

    assert asyncio.run(notebook()).rows[0].response == "x"


def test_errors_inside_a_running_loop_reach_the_caller() -> None:
    async def notebook() -> Any:
        return evaluate([], [example(1)])

    with pytest.raises(UsageError, match="no system"):
        asyncio.run(notebook())


def test_awaited_it_leaves_the_loop_free() -> None:
    async def main() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticker = asyncio.create_task(tick())
        result = await aevaluate(lambda item: time.sleep(0.01) or "", [example(n) for n in range(10)])
        ticker.cancel()
        return len(result.rows), ticks

    rows, ticks = asyncio.run(main())
    assert rows == 10
    assert ticks >= 5


def test_two_runs_at_once_on_one_loop_do_not_disturb_each_other() -> None:
    async def main() -> list[Any]:
        quick, slow = OpenAIProxy(one.url, max_retries=0), OpenAIProxy(two.url, max_retries=0)
        return await asyncio.gather(aevaluate(quick, [example(1)]), aevaluate(slow, [example(n) for n in range(3)]))

    with Server(completion()) as one, Server(completion(delay=0.1)) as two:
        results = asyncio.run(main())
    assert [row.error for result in results for row in result.rows] == [None] * 4


def test_one_proxy_serves_several_runs() -> None:
    with Server(completion()) as server:
        proxy = OpenAIProxy(server.url)
        for _ in range(2):
            assert evaluate(proxy, [example(1)]).rows[0].error is None


# Systems


def test_a_function_is_a_system_and_its_text_a_new_context() -> None:
    def halve(item: dict[str, Any]) -> str:
        return " ".join(item["context"].split()[:2])

    (row,) = evaluate(halve, [example(1)], tokenizer=words).rows
    assert (row.system, row.response, row.input_tokens, row.output_tokens) == ("halve", "one two", 4, 2)


def test_each_system_gets_a_copy_of_its_own() -> None:
    def vandal(item: dict[str, Any]) -> dict[str, Any]:
        item["context"] = "gone"
        item["answers"].append("gone")
        item["meta"]["deep"]["list"].clear()
        item["turns"][0]["content"] = "gone"
        del item["question"]
        return {"response": "x"}

    def witness(item: dict[str, Any]) -> dict[str, Any]:
        seen.append(item)
        return {"response": "x"}

    seen: list[dict[str, Any]] = []
    given = example(
        1,
        question="q",
        answers=["a"],
        meta={"deep": {"list": [1]}},
        turns=[{"role": "user", "content": "hello"}],
    )
    before = json.dumps(given)
    evaluate([vandal, witness], [given], repeats=2)
    assert json.dumps(given) == before
    assert [json.dumps(item) for item in seen] == [before, before]


def test_two_systems_of_one_name_are_refused_before_any_call() -> None:
    calls: list[tuple[str, Any]] = []
    with pytest.raises(UsageError, match="'twin'"):
        evaluate([Recorder("twin", calls), Recorder("twin", calls)], [example(1)])
    assert calls == []


def test_a_class_instead_of_an_instance_is_named() -> None:
    with pytest.raises(UsageError, match=r"Recorder is a class.*Recorder\("):
        evaluate(Recorder, [example(1)])


@pytest.mark.parametrize("wrong", [None, 3, "no-such-system", object(), []])
def test_what_is_no_system_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="system"):
        evaluate(wrong, [example(1)])


@pytest.mark.parametrize("name", ["", 3])
def test_a_name_must_be_a_text(name: Any) -> None:
    with pytest.raises(UsageError, match="name"):
        evaluate(Recorder(name, []), [example(1)])


# Failures are data


def test_a_failing_example_is_a_row_and_the_run_goes_on() -> None:
    def picky(item: dict[str, Any]) -> str:
        if item["id"] == 2:
            raise ValueError("two is\ntoo much")
        return item["context"]

    result = evaluate(picky, [example(1, answer="one"), example(2, answer="one"), example(3, answer="one")])
    assert [row.error for row in result.rows] == [None, "ValueError: two is too much", None]
    failed = result.rows[1]
    assert (failed.scores, failed.response, failed.output_tokens) == ({}, "", 0)
    assert failed.input_tokens > 0
    values = result.summary["picky"]
    assert (values["num_examples"], values["num_errors"], values["num_unscored"]) == (3, 1, 0)
    assert values["error_rate"] == pytest.approx(1 / 3)


def test_an_error_counts_as_zero_and_an_unscored_row_not_at_all() -> None:
    class HalfOfThem:
        name = "own"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"score": 1.0} if original["id"] != 3 else Scores(reason="nothing to judge")

    def fails_once(item: dict[str, Any]) -> str:
        if item["id"] == 2:
            raise RuntimeError
        return "x"

    result = evaluate(fails_once, [example(n) for n in (1, 2, 3)], evaluators=[HalfOfThem()])
    values = result.summary["fails_once"]
    assert values["mean_score"] == 0.5  # (1 + 0) / 2
    assert (values["num_errors"], values["num_unscored"]) == (1, 1)
    assert result.rows[2].unscored == {"own": "nothing to judge"}


# Counting tokens


def test_the_tokenizer_in_use_is_recorded() -> None:
    assert evaluate(lambda item: "", [example(1)]).config["tokenizer"] == "cl100k_base"
    assert evaluate(lambda item: "", [example(1)], tokenizer="o200k_base").config["tokenizer"] == "o200k_base"
    own = evaluate(lambda item: "", [example(1)], tokenizer=words).config["tokenizer"]
    assert own not in ("cl100k_base", "o200k_base")


def test_an_unknown_tokenizer_is_refused_before_any_call() -> None:
    calls: list[tuple[str, Any]] = []
    with pytest.raises(UsageError, match="nonsense"):
        evaluate(Recorder("a", calls), [example(1)], tokenizer="nonsense")
    assert calls == []


# Input that cannot be used


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"context": "x"}, "'id'"),
        ({"id": 9}, "'context'"),
        ({"id": 9, "context": None}, "'context' must be text"),
        ({"id": True, "context": ""}, "'id' must be"),
        ({"id": 1.5, "context": ""}, "'id' must be"),
        (["id", "context"], "object"),
        ("text", "object"),
        (None, "object"),
        ({"id": 2, "context": "again"}, "duplicate id 2"),
        ({"id": 9, "context": "", "answers": "one"}, "'answers' must be a list"),
        ({"id": 9, "context": "", "turns": ["hello"]}, "'turns'"),
    ],
)
def test_a_bad_example_ends_the_input_and_keeps_what_was_done(bad: Any, said: str) -> None:
    calls: list[tuple[str, Any]] = []
    with pytest.raises(DataError, match=said) as caught:
        evaluate([Recorder("a", calls), Recorder("b", calls)], iter([example(1), example(2), bad, example(4)]))
    assert "example 3" in str(caught.value)
    result = caught.value.result  # type: ignore[attr-defined]
    assert [(row.system, row.example_id) for row in result.rows] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert result.summary["a"]["num_examples"] == 2
    assert not any(identity == 4 for _, identity in calls)


def test_input_that_raises_keeps_what_was_done() -> None:
    def broken() -> Any:
        yield example(1)
        raise OSError("disk on fire")

    with pytest.raises(DataError, match="disk on fire") as caught:
        evaluate(lambda item: "", broken())
    assert len(caught.value.result.rows) == 1  # type: ignore[attr-defined]


def test_one_and_its_text_are_two_ids() -> None:
    result = evaluate(lambda item: item["context"], [example(1, "number"), example("1", "text")])
    assert [(row.example_id, row.response) for row in result.rows] == [(1, "number"), ("1", "text")]


def test_an_id_may_come_again_in_another_dataset() -> None:
    result = evaluate(lambda item: "", [example(1, dataset="a"), example(1, dataset="b")])
    assert [row.dataset for row in result.rows] == ["a", "b"]
    with pytest.raises(DataError, match="duplicate"):
        evaluate(lambda item: "", [example(1, dataset="a"), example(1, dataset="a")])


def test_an_example_that_cannot_be_copied_does_not_end_the_run() -> None:
    result = evaluate(lambda item: "", [example(1, handle=threading.Lock()), example(2)])
    assert result.rows[0].error
    assert result.rows[1].error is None


# Evaluators and metrics


def test_a_clash_of_scores_is_found_before_any_call() -> None:
    class Other(Length):
        name = "other"
        score_fields = ("length",)

    class Declared(Length):
        score_fields = ("length",)

    calls: list[tuple[str, Any]] = []
    with pytest.raises(ScoreClash, match="'length'"):
        evaluate(Recorder("a", calls), [example(1)], evaluators=[Declared(), Other()])
    assert calls == []


def test_a_clash_that_nobody_declared_is_an_error_too() -> None:
    class Other(Length):
        name = "other"

    with pytest.raises(ScoreClash, match="'length'"):
        evaluate(lambda item: "x", [example(1)], evaluators=[Length(), Other()])


@pytest.mark.parametrize("wrong", [[Length], [object()], ["f1"], 3])
def test_what_is_no_list_of_evaluators_is_refused_before_any_call(wrong: Any) -> None:
    calls: list[tuple[str, Any]] = []
    with pytest.raises(UsageError, match="evaluator"):
        evaluate(Recorder("a", calls), [example(1)], evaluators=wrong)
    assert calls == []


@pytest.mark.parametrize("wrong", [[MeanScore], [object()], ["no-such-metric"], "no-such-metric"])
def test_what_is_no_metric_is_refused_before_any_call(wrong: Any) -> None:
    calls: list[tuple[str, Any]] = []
    with pytest.raises(UsageError, match="metric"):
        evaluate(Recorder("a", calls), [example(1)], metrics=wrong)
    assert calls == []


def test_a_metric_of_ones_own() -> None:
    class MaxScore:
        __slots__ = ("score_field",)
        name = "max-score"

        def __init__(self, score_field: str) -> None:
            self.score_field = score_field

        def compute(self, rows: list[Any]) -> dict[str, float]:
            return {"max_score": max((row.scores.get(self.score_field, 0.0) for row in rows), default=0.0)}

    result = evaluate(
        lambda item: item["context"],
        [example(1, "ab"), example(2, "abcd")],
        evaluators=[Length()],
        metrics=[MaxScore("length")],
    )
    assert next(iter(result.summary.values()))["max_score"] == 4.0


def test_the_default_metrics_and_a_rank_for_several_systems() -> None:
    given = [example(1, "the answer is blue here", answer="blue")]

    def whole(item: dict[str, Any]) -> str:
        return item["context"]

    def useful(item: dict[str, Any]) -> str:
        return "blue"

    def useless(item: dict[str, Any]) -> str:
        return ""

    alone = evaluate(whole, given).summary["whole"]
    expected = {"mean_score", "pass_rate", "compression_ratio", "cost_of_pass", "num_passing", "latency_p95"}
    assert expected <= alone.keys()
    together = evaluate([whole, useful, useless], given).summary
    assert together["useful"]["pareto_rank"] == 1.0
    assert together["whole"]["pareto_rank"] > 1.0
    assert together["useless"]["pareto_rank"] > together["useful"]["pareto_rank"]


# Time


def test_latency_is_the_time_of_the_call_and_timing_the_whole_span() -> None:
    def naps(item: dict[str, Any]) -> str:
        time.sleep(0.03)
        return ""

    result = evaluate(naps, [example(n) for n in range(3)])
    assert all(0.029 <= row.latency < 10 for row in result.rows)
    assert result.timing["naps"] >= 0.09


def test_timing_covers_calls_that_failed() -> None:
    def fails(item: dict[str, Any]) -> str:
        time.sleep(0.03)
        raise ValueError

    assert evaluate(fails, [example(1), example(2)]).timing["fails"] >= 0.06


# Same input, same output


def test_two_runs_differ_in_their_times_only() -> None:
    given = [example(n, f"the value is {n}", question="which value", answer=str(n)) for n in range(8)]

    def run(workers: int) -> Any:
        document = json.loads(evaluate([lambda item: item, halve], given, max_workers=workers).to_json())
        document.pop("timing")
        for key in ("max_workers", "workers"):
            document["config"].pop(key)
        for row in document["rows"]:
            row.pop("latency")
        for values in (*document["summary"].values(), *document["intervals"].values()):
            for key in [key for key in values if key.startswith("latency")]:
                values.pop(key)
        return document

    def halve(item: dict[str, Any]) -> str:
        return item["context"][: len(item["context"]) // 2]

    first, *others = [run(workers) for workers in (1, 1, 4)]
    assert all(other == first for other in others)


def test_memory_does_not_grow_with_a_lazy_input() -> None:
    # Examples of 1 MB each: were they kept, 60 of them would show. Quick systems are handed up to 64 at a time.
    import tracemalloc

    big = 1_000_000

    def source() -> Any:
        for number in range(60):
            yield example(number, "", payload=bytearray(big))

    def answer(_: Any) -> dict[str, Any]:
        time.sleep(0.003)
        return {"response": "x"}

    tracemalloc.start()
    try:
        evaluate([answer, Recorder("b", [])], source(), text_fields=["context"])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 15 * big


def test_order_of_calls_is_the_order_of_the_input() -> None:
    calls: list[tuple[str, Any]] = []
    evaluate(Recorder("a", calls), [example(n) for n in range(20)], max_workers=1)
    assert all(first[1] < second[1] for first, second in pairwise(calls))


class Quick:
    """An asynchronous system that answers after a moment."""

    name, fingerprint = "quick", "1"

    def __init__(self, pause: float = 0.002) -> None:
        self.pause = pause

    def process(self, item: dict[str, Any]) -> dict[str, Any]:
        return asyncio.run(self.aprocess(item))

    async def aprocess(self, item: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(self.pause)
        return {"response": "x"}


class Costly:
    """An evaluator that keeps the processor busy."""

    name, fingerprint = "costly", "1"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        until = time.perf_counter() + 0.02
        while time.perf_counter() < until:
            pass
        return {"score": 1.0}


@depends_on_time("latency is what the clock on the wall says")
def test_the_time_of_an_evaluator_is_no_latency_of_a_system() -> None:
    given = [example(number) for number in range(12)]
    rows = evaluate(Quick(), given, evaluators=[Costly()], max_workers=1, tokenizer=words).rows
    assert sorted(row.latency for row in rows)[6] < 0.012


@depends_on_time("latency is what the clock on the wall says")
def test_costly_evaluators_do_not_hold_up_replies_for_long() -> None:
    given = [example(number) for number in range(64)]
    rows = evaluate(Quick(), given, evaluators=[Costly()], max_workers=16, tokenizer=words).rows
    # Each of the sixteen waits for its turn, and not for a batch of them in addition. The median, as a busy machine may
    # hold up any one of them.
    assert sorted(row.latency for row in rows[32:])[16] < 16 * 0.02 * 2


def test_an_answer_that_cannot_be_written_down_is_an_error_of_its_row_alone(tmp_path: Any) -> None:
    class Circular(Quick):
        async def aprocess(self, item: dict[str, Any]) -> dict[str, Any]:
            result = await super().aprocess(item)
            if item["id"] == 3:
                result["self"] = result
            return result

    given = [example(number, answer="x") for number in range(12)]
    rows = evaluate(Circular(), given, max_workers=8, tokenizer=words, cache_dir=tmp_path).rows
    assert [row.example_id for row in rows if row.error] == [3]
    assert "its result cannot be stored" in str(rows[3].error)
    again = evaluate(Circular(), given, max_workers=8, tokenizer=words, cache_dir=tmp_path)
    assert again.config["reused"] == 11


def test_a_score_that_is_too_large_for_a_number_is_a_missing_score() -> None:
    class Huge:
        name = "huge"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, Any]:
            return {"score": 10**400}

    (row,) = evaluate(Quick(), [example(1)], evaluators=[Huge()], tokenizer=words).rows
    assert row.scores == {}
    assert "is not a number" in row.unscored["huge"]


def test_a_conversation_needs_no_context_beside_it() -> None:
    turns = [{"role": "user", "content": "Where is Paris?"}]
    example = {"id": 1, "turns": turns, "answer": "France"}
    seen: list[dict[str, Any]] = []

    def answer(given: dict[str, Any]) -> dict[str, Any]:
        seen.append(given)
        return {"response": "France"}

    result = evaluate(answer, [example], progress=False)
    assert seen[0]["turns"] == turns
    assert result.rows[0].scores["f1"] == 1.0
    result = evaluate(["passthrough", "truncate:ratio=0.5"], [example], progress=False)
    assert [row.error for row in result.rows] == [None] * 2
    assert {row.input_tokens for row in result.rows} == {count_tokens("Where is Paris?")}
