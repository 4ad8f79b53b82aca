"""The checks of `tools/soak.py`: each finds what it is there to find."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from soak_check import Death, check_asked_again, check_requests, check_rows
from soak_server import CODE_EVERY, HostileModel, Judge, expect_answer, expect_judge_score
from soak_watch import Watch, find_slope, list_descendants, measure_growth

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")


def make_good_row(number: int, **changes: Any) -> dict[str, Any]:
    text, field, value = expect_answer(number)
    scores = {field: value, "judge_score": expect_judge_score(number)}
    metadata = {"prompt_tokens": 700, "attempts": 1, "upstream_calls": 1}
    row = {"example_id": number, "response": text, "scores": scores, "metadata": metadata, "error": None}
    return {**row, "unscored": {}, **changes}


COUNT = 2 * CODE_EVERY
GOOD = [make_good_row(number) for number in range(COUNT)]


def make_servers(*answers: tuple[int, float, float]) -> tuple[HostileModel, Judge]:
    model, judge = HostileModel(0, 1.0, 0.0), Judge()
    for number, asked, answered in answers:
        for server in (model, judge):
            server.seen[number] += 1
            server.answers[number].append((asked, answered))
    return model, judge


def test_rows_as_they_should_be() -> None:
    assert check_rows(GOOD, COUNT, "a") == []
    failed = make_good_row(3, error="TimedOut: no answer", response="", scores={})
    unscored = make_good_row(4, unscored={"llm-judge": "the judge did not answer"})
    del unscored["scores"]["judge_score"]
    assert check_rows([*GOOD[:3], failed, unscored, *GOOD[5:]], COUNT, "a") == []
    model, judge = make_servers(*((number, 0.0, 1.0) for number in range(COUNT)))
    assert check_requests(GOOD, model, judge) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (GOOD[1:], "example 0 has no row"),
        ([*GOOD, GOOD[5]], "example 5 has 2 rows"),
        ([*GOOD, make_good_row(COUNT)], "which does not exist"),
        ([make_good_row(0, response="c7"), *GOOD[1:]], "the answer of another example"),
        ([make_good_row(0, scores={"contains": 0.0, "judge_score": 0.0}), *GOOD[1:]], "contains is 0.0, not 1.0"),
        ([make_good_row(0, scores={"contains": 1.0, "judge_score": 1.0}), *GOOD[1:]], "judge_score is 1.0, not 0.0"),
        ([make_good_row(0, metadata={"prompt_tokens": -5}), *GOOD[1:]], "prompt_tokens is -5"),
    ],
)
def test_rows_that_are_wrong(rows: list[dict[str, Any]], said: str) -> None:
    (wrong,) = check_rows(rows, COUNT, "a")
    assert said in wrong


def test_requests_that_nobody_recorded_or_answered() -> None:
    model, judge = make_servers((0, 0.0, 1.0))
    model.seen[0] += 1
    assert "1 attempts, 1 calls recorded, 2 seen by the server" in check_requests(GOOD[:1], model, judge)[0]
    model.seen[0] = 1
    given_up = make_good_row(0, metadata={"attempts": 2, "upstream_calls": 1, "earlier_upstream_calls": 1})
    assert check_requests([given_up], model, judge) == []
    model.answers.clear()
    assert check_requests(GOOD[:1], model, judge) == ["example 0 has an answer that the server never gave"]


def test_what_is_asked_again_needs_a_death() -> None:
    twice, _ = make_servers((0, 1.0, 2.0), (0, 8.0, 9.0))
    assert len(check_asked_again(twice, [])) == 1
    assert len(check_asked_again(twice, [Death(5.0, 5.0)])) == 1, "it had been answered three seconds before"
    assert check_asked_again(twice, [Death(1.5, 1.5)]) == []
    assert check_asked_again(twice, [Death(2.5, 2.5)]) == []
    assert len(check_asked_again(twice, [Death(8.5, 8.5)])) == 1
    assert check_asked_again(twice, [Death(2.0, 7.0)]) == [], "what arrives after the grace of SIGTERM may be lost"


def test_growth_and_slope() -> None:
    times = [float(second) for second in range(0, 600, 2)]
    leak = [100 + second / 60 for second in times]
    peaks = [300.0 if place % 50 == 0 else 100.0 for place, _ in enumerate(times)]
    assert find_slope(times, leak) == pytest.approx(1.0)
    assert measure_growth(leak) == pytest.approx(7.5, abs=0.1)
    assert (find_slope(times, peaks), measure_growth(peaks)) == (0.0, 0.0)


@needs_proc
def test_a_zombie_is_seen() -> None:
    program = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', '']); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", program])
    watch = Watch(process.pid, 0.05, "nothing")
    try:
        deadline = time.monotonic() + 20
        while not watch.zombies and time.monotonic() < deadline:
            time.sleep(0.05)
        assert process.pid in {each.pid for each in list_descendants(os.getpid())}
    finally:
        watch.stop()
        process.kill()
        process.wait()
    assert watch.zombies
    assert watch.samples[-1].rss_mb > 1
