"""A recorded run judged again, through the API of the engine."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from context_bench import OpenAIProxy, Scores, evaluate
from context_bench.core.judge import Scorer
from context_bench.core.record import rescore
from context_bench.evaluators import AnswerQuality
from context_bench.results import EvalRow
from context_bench.store import Store
from context_bench.systems import Passthrough
from numbered import number_of, numbered, right
from servers import Server, reply


def again(directory: Path, run: str, *evaluators: Any) -> list[EvalRow]:
    async def collect(store: Store) -> list[EvalRow]:
        old = store.run(run)
        return await rescore(store, old, store.start_run(old.config), Scorer(list(evaluators)))

    with Store(directory) as store:
        return asyncio.run(collect(store))


class Judge:
    name = "judge"
    version = 1
    slow = True
    score_fields = ("judged",)

    def __init__(self, pause: float = 0.0) -> None:
        self._pause, self._lock, self._now = pause, threading.Lock(), 0
        self._calls, self._most = 0, 0

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        with self._lock:
            self._calls += 1
            self._now += 1
            self._most = max(self._most, self._now)
        time.sleep(self._pause)
        with self._lock:
            self._now -= 1
        return Scores({"judged": float(original["answer"] in processed["response"])}, details={"id": original["id"]})


def test_rows_keep_everything_but_their_scores(tmp_path: Path) -> None:
    broken = reply(400, {"error": {"message": "no"}})
    with Server(lambda request: broken if number_of(request) == 2 else right(request)) as server:
        before = evaluate(OpenAIProxy(server.url), numbered(1, 2, 3), evaluators=[AnswerQuality()], cache_dir=tmp_path)
        requests = len(server.requests)
        rows = again(tmp_path, before.config["run"], Judge())
        assert len(server.requests) == requests
    assert [row.scores for row in rows] == [{"judged": 1.0, "score": 1.0}, {}, {"judged": 1.0, "score": 1.0}]
    assert rows[1] == before.rows[1]
    for old, new in zip(before.rows, rows):
        assert (new.example_id, new.response, new.latency, new.input_tokens, new.output_tokens, new.error) == (
            (old.example_id, old.response, old.latency, old.input_tokens, old.output_tokens, old.error)
        )
    assert rows[0].metadata["judge"] == {"id": 1}
    with Store(tmp_path, readonly=True) as store:
        assert list(store.run_rows(store.run("last"))) == rows
        assert list(store.run_rows(store.run(before.config["run"]))) == before.rows


def test_the_gold_is_that_of_the_run(tmp_path: Path) -> None:
    """The answer is shared with an earlier run that had another gold."""
    first = evaluate(Passthrough(), numbered(1), cache_dir=tmp_path)
    second = evaluate(Passthrough(), numbered(1, answer="zebra"), cache_dir=tmp_path)
    for result, right_answer in ((first, 1.0), (second, 0.0)):
        (row,) = again(tmp_path, result.config["run"], Judge())
        assert row.scores["judged"] == right_answer


def test_a_slow_judge_has_several_rows_at_once_and_none_twice(tmp_path: Path) -> None:
    result = evaluate(Passthrough(), numbered(*range(60)), cache_dir=tmp_path)
    judge = Judge(pause=0.005)
    rows = again(tmp_path, result.config["run"], judge)
    assert [row.example_id for row in rows] == list(range(60))
    assert judge._calls == 60
    assert judge._most > 1
    once_more = Judge()
    assert again(tmp_path, "last", once_more) == rows
    assert once_more._calls == 0, "what it said is remembered"


def test_details_of_an_evaluator_that_is_gone_are_gone(tmp_path: Path) -> None:
    evaluate(Passthrough(), numbered(1), evaluators=[Judge()], cache_dir=tmp_path)
    (row,) = again(tmp_path, "last", AnswerQuality())
    assert "judge" not in row.metadata
    assert row.metadata["output"] == "context"


def test_an_error_of_the_evaluators_ends_it_cleanly(tmp_path: Path) -> None:
    class Twin(Judge):
        name = "twin"
        score_fields = ()  # type: ignore[assignment]

    evaluate(Passthrough(), numbered(*range(40)), cache_dir=tmp_path)
    from context_bench.errors import ScoreClash

    with pytest.raises(ScoreClash):
        again(tmp_path, "last", Judge(), Twin())
