"""Between the pipeline and the store: which keys a job has, and what is kept under them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from context_bench import OpenAIProxy, Scores, aevaluate, evaluate
from context_bench.core.cache import Cache, ScoreMemory
from context_bench.core.examples import Item
from context_bench.core.judge import Scorer
from context_bench.core.row import Job
from context_bench.evaluators import AnswerQuality, ContextRecall
from context_bench.store import Store
from context_bench.systems import Oracle, Passthrough, Truncate
from numbered import expected, facts, numbered, right
from servers import Reply, Request, Server


def keys(tmp_path: Path, system: Any = None, example: dict[str, Any] | None = None, **options: Any) -> Any:
    """The keys of one job; keywords change one thing."""
    scorer = Scorer(options.pop("evaluators", [AnswerQuality()]))
    counting, repeat, tag = options.pop("counting", "words"), options.pop("repeat", 0), options.pop("tag", None)
    with Store(tmp_path) as store:
        cache = Cache(store, store.start_run({}), scorer, counting, reuse=True, tag=tag)
        item = Item({**numbered(1)[0], **(example or {})})
        job = Job(0, system or Passthrough(), item, repeat)
        return cache.keys_of(job)


def test_a_job_has_the_same_keys_in_every_run_and_place(tmp_path: Path) -> None:
    one, two = keys(tmp_path / "a"), keys(tmp_path / "b")
    assert (one.whole, one.answer, one.row) == (two.whole, two.answer, two.row)


@pytest.mark.parametrize(
    ("change", "answer_differs"),
    [
        ({"system": Truncate(ratio=0.5)}, True),
        ({"repeat": 1}, True),
        ({"tag": "v2"}, True),
        ({"example": {"context": "other"}}, True),
        ({"example": {"answer": "other"}}, False),
        ({"evaluators": [AnswerQuality(), ContextRecall()]}, False),
        ({"evaluators": []}, False),
        ({"counting": "letters"}, False),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_is_in_which_key(tmp_path: Path, change: dict[str, Any], answer_differs: bool) -> None:
    before, after = keys(tmp_path), keys(tmp_path, **change)
    assert (before.answer != after.answer) == answer_differs
    assert before.row != after.row


def test_who_reads_the_gold_depends_on_it(tmp_path: Path) -> None:
    before, after = keys(tmp_path, Oracle()), keys(tmp_path, Oracle(), {"answer": "other"})
    assert before.answer != after.answer


def test_what_cannot_be_told_has_no_key(tmp_path: Path) -> None:
    handle = object()

    class Judge:
        name = "judge"

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"x": float(id(handle))}

    assert keys(tmp_path, counting=None).row is None
    assert keys(tmp_path, counting=None).answer is not None
    with pytest.warns(UserWarning, match="scores of 'judge' are not reused"):
        assert keys(tmp_path, evaluators=[Judge()]).row is None


def test_a_fingerprint_is_taken_before_its_component_is_used() -> None:
    class Counts:
        name = "counts"

        def __init__(self) -> None:
            self.calls = 0

    counts, scorer = Counts(), Scorer()
    before = scorer.fingerprint(counts)
    counts.calls += 1
    assert scorer.fingerprint(counts) == before
    assert Scorer().fingerprint(counts) != before


def test_a_slow_evaluator_that_counts_its_calls_is_remembered(tmp_path: Path) -> None:
    with Server(right) as server:
        for calls in (3, 0):
            judge = Counting()
            evaluate(OpenAIProxy(server.url), numbered(1, 2, 3), evaluators=[judge], cache_dir=tmp_path)
            assert judge.calls == calls


class Counting:
    name = "counting"
    slow = True

    def __init__(self) -> None:
        self.calls = 0

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        self.calls += 1
        return {"score": 1.0}


def test_what_a_judge_said_comes_back_whole(tmp_path: Path) -> None:
    judge = Counting()
    said = Scores({"score": 0.5}, details={"why": "half"})
    with Store(tmp_path) as store:
        ScoreMemory(store, Scorer(), b"e", {"response": "x"}, reuse=True).keep(judge, said)
    with Store(tmp_path, readonly=True) as store:
        found = ScoreMemory(store, Scorer(), b"e", {"response": "x"}, reuse=True).find(judge)
        assert found == {"score": 0.5}
        assert isinstance(found, Scores)
        assert (found.details, found.reason) == ({"why": "half"}, None)
        assert ScoreMemory(store, Scorer(), b"e", {"response": "y"}, reuse=True).find(judge) is None
        assert ScoreMemory(store, Scorer(), b"f", {"response": "x"}, reuse=True).find(judge) is None
        assert ScoreMemory(store, Scorer(), b"e", {"response": "x"}, reuse=False).find(judge) is None


def test_two_runs_at_once_in_one_store(tmp_path: Path) -> None:
    async def main() -> list[Any]:
        with Store(tmp_path) as store:
            one = aevaluate(OpenAIProxy(server.url, name="one"), numbered(*range(20)), store=store)
            two = aevaluate(OpenAIProxy(server.url, name="two"), numbered(*range(10, 30)), store=store)
            return await asyncio.gather(one, two)

    with Server(right) as server:
        one, two = asyncio.run(main())
    assert facts(one.rows) == expected(*range(20))
    assert facts(two.rows) == expected(*range(10, 30))
    with Store(tmp_path, readonly=True) as store:
        for result in (one, two):
            assert list(store.run_rows(store.run(result.config["run"]))) == result.rows


def test_an_error_of_scoring_ends_the_run_before_all_is_paid_for(tmp_path: Path) -> None:
    """Two slow evaluators that emit one key: that is found while the requests go on, not after the last of them."""
    from context_bench.errors import ScoreClash

    class Other(Counting):
        name = "other"

    def answer(request: Request) -> Reply:
        given = right(request)
        given.delay = 0.01
        return given

    with Server(answer) as server, pytest.raises(ScoreClash, match="'score'"):
        evaluate(OpenAIProxy(server.url), numbered(*range(300)), evaluators=[Counting(), Other()], max_workers=2)
    assert len(server.chats) < 50


def test_latency_is_that_of_the_first_time(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        given = right(request)
        given.delay = 0.05
        return given

    with Server(answer) as server:
        proxy = OpenAIProxy(server.url, name="p")
        first = evaluate(proxy, numbered(1), cache_dir=tmp_path)
        again = evaluate(proxy, numbered(1), cache_dir=tmp_path)
        judged = evaluate(proxy, numbered(1, answer="other"), cache_dir=tmp_path)
    assert first.rows[0].latency >= 0.05
    assert again.rows[0].latency == judged.rows[0].latency == first.rows[0].latency
    assert again.timing == {"p": 0.0}
