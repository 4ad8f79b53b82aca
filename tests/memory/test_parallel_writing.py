"""Conversations written and asked at the same time: the same memories, answers and costs as one after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from command import environment
from context_bench import Price, Prices, Scripted, evaluate_memory
from context_bench.processes.started_proxy import find_program
from context_bench.results import EvalResult
from toy_memories import Clinging, Counted, Remembering, Writing, make_conversations
from vendor_relay import relay

TESTS = Path(__file__).parents[1]
PRICES = Prices({"m": Price(input=1.0, output=2.0), "e": Price(input=0.5, output=0.0)})


def run(systems: Any, workers: int, count: int = 5, **options: Any) -> EvalResult:
    given = {"progress": False, "budgets": [500], "quiet": 0.05, "max_workers": workers}
    return evaluate_memory(systems, make_conversations(count), **{**given, **options})


def list_facts(result: EvalResult) -> list[Any]:
    """What a run must find however many conversations are open: rows in order, without times."""
    facts = []
    for row in result.rows:
        about = json.loads(json.dumps(row.metadata["memory"]))
        for costs in (about["ingest"].get("spent"), about["ingest"].get("background"), about["query"].get("spent")):
            costs and costs.pop("seconds")
        for part in about.values():
            part.pop("seconds")
            part.pop("searchable_seconds", None)
        facts.append((row.system, row.example_id, row.response, row.error, row.scores, row.upstream_tokens, about))
    return facts


@pytest.mark.filterwarnings("ignore:nothing in conversations could be scored")
def test_it_finds_and_costs_the_same_as_one_after_the_other() -> None:
    given: dict[str, Any] = {"model": "m", "embedding_model": "e", "prices": PRICES}
    one, several = (
        run([Remembering, Writing], workers, answerer=Scripted.from_text("text:noted"), **given) for workers in (1, 3)
    )
    assert list_facts(one) == list_facts(several)
    assert several.config["reports"]["writing[budget=500]"]["memory"]["at_a_time"] == 3
    for name, values in one.summary.items():
        for key in ("mean_score", "retrieval_recall", "ingest_calls", "ingest_tokens", "ingest_usd", "query_usd"):
            assert several.summary[name].get(key, 0.0) == pytest.approx(values.get(key, 0.0), nan_ok=True)


class Meeting(Remembering):
    """Waits while it writes until three others write too."""

    name = "meeting"
    barrier = Barrier(4)

    def ingest(self, turns: list[dict[str, Any]]) -> None:
        self.barrier.wait(60)
        super().ingest(turns)


def test_conversations_are_written_at_the_same_time() -> None:
    result = run(Meeting, 4, count=4)
    assert {row.error for row in result.rows} == {None}


def test_a_reset_that_keeps_something_is_seen_though_each_memory_has_one_conversation() -> None:
    seen = run(Clinging, 3, count=3).config["reports"]["clinging[budget=500]"]["memory"]["inspected"]
    assert seen["survived"] == 3


@pytest.mark.parametrize("reason", ["it is an object", "one_at_a_time", "would share"])
def test_a_system_that_cannot_be_made_twice_says_so(reason: str, tmp_path: Path) -> None:
    system: Any = Remembering()
    if reason != "it is an object":
        about = {"one_at_a_time": True} if reason == "one_at_a_time" else {"storage": tmp_path}
        system = type("Only", (Remembering,), {"name": "only", **about})
    with pytest.warns(UserWarning, match=f"written one at a time, because .* allows only one instance: .*{reason}"):
        result = run(system, 3)
    assert list_facts(result)[0][2] == list_facts(run(Remembering, 1))[0][2]
    assert len(result.rows) == 60


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from context_bench import evaluate_memory
from toy_memories import Counted, make_conversations
class Sleepy(Counted):
    def __init__(self): super().__init__({folder!r}, "ingest [2 May 2023, 10:00] The code of room4")
evaluate_memory(Sleepy, make_conversations(3), progress=False, budgets=[500], answers=["reader"], granularity="turn",
                cache_dir={store!r}, max_workers=3)
"""


def test_killed_in_the_middle_of_three_conversations_nothing_is_written_twice(tmp_path: Path) -> None:
    folder, store = tmp_path / "memory", tmp_path / "store"
    code = SCRIPT.format(tests=str(TESTS), folder=str(folder), store=str(store))
    process = subprocess.Popen([sys.executable, "-c", code], env=environment())
    log, deadline = folder / "log.txt", time.monotonic() + 120
    try:
        while not (log.exists() and log.read_text().count("room4") == 3):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()

    class Sleepy(Counted):
        def __init__(self) -> None:
            super().__init__(str(folder))

    given: dict[str, Any] = {"answers": ["reader"], "granularity": "turn"}
    result = run(Sleepy, 3, count=3, cache_dir=store, **given)
    written = [line for line in log.read_text().splitlines() if line.startswith("ingest")]
    assert len(written) == len(set(written)) == 18
    about = result.config["reports"]["counted[budget=500]"]["memory"]
    assert (about["continued"], about["written_again"], about["restored"]) == (3, 0, 0)
    assert [row.response for row in result.rows] == [row.response for row in run(Remembering, 1, 3, **given).rows]


@pytest.mark.memory_vendors
@pytest.mark.skipif(find_program("python", home="memory-mem0") is None, reason="make memory-vendors")
def test_mem0_finds_and_costs_the_same_at_the_same_time() -> None:
    from context_bench import Forward

    with relay() as server:
        one, several = (
            list_facts(run("mem0", workers, 3, answers=["reader"], answerer=Forward(server.url), model="m"))
            for workers in (1, 3)
        )
    assert one == several
