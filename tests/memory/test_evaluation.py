"""Memory systems through the engine: rows, errors, what is asked again, what is kept and found again."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from command import environment
from context_bench import DataError, Scripted, UsageError, evaluate, evaluate_memory
from context_bench.memory.findings import list_findings
from context_bench.memory.scoring import STOOD_IN
from context_bench.results import EvalResult
from toy_memories import Broken, BrokenAsync, Forgetful, Persistent, Remembering, Writing, make_conversations

TESTS = Path(__file__).parents[1]


def run(systems: Any, conversations: Any = None, **options: Any) -> EvalResult:
    """A run of one budget, with no progress shown."""
    given = make_conversations() if conversations is None else conversations
    return evaluate_memory(systems, given, **{"progress": False, "budgets": [500], "quiet": 0.1, **options})


def score(result: EvalResult, name: str) -> float:
    return result.summary[name]["mean_score"]


def test_each_question_is_a_row_of_its_conversation() -> None:
    result = run(Remembering(), answers=["reader"])
    assert [row.example_id for row in result.rows] == [f"c{number}/q{room}" for number in range(3) for room in range(6)]
    assert {row.metadata["cluster"] for row in result.rows} == {"c0", "c1", "c2"}
    assert [row.metadata["question_type"] for row in result.rows[:6]] == ["early"] * 3 + ["late"] * 3
    assert result.rows[0].error is None
    assert result.summary["remembering[budget=500]"]["type:early"] == pytest.approx(
        sum(row.scores["score"] for row in result.rows if row.metadata["question_type"] == "early") / 9
    )


def test_who_forgets_scores_less_than_who_remembers() -> None:
    result = run([Remembering(), Forgetful()], answers=["reader"])
    assert score(result, "remembering[budget=500]") > 0.9
    # It has the last of six turns: 1 of 6 questions.
    assert score(result, "forgetful[budget=500]") == pytest.approx(1 / 6)


class Hoarding(Remembering):
    """Returns everything, best first, and heeds no budget."""

    name = "hoarding"

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        return super().retrieve(question, k or len(self.turns))


def test_recall_is_of_what_the_reader_got_within_the_budget() -> None:
    # Six lines of 20 tokens and more: 50 have room for two of them, 500 for all; the last one names what it is about.
    rows = run(Hoarding(), budgets=[50, 500], answers=["reader"]).rows
    by_budget = {budget: [row for row in rows if row.system == f"hoarding[budget={budget}]"] for budget in (50, 500)}
    assert {row.scores["retrieval_precision"] for row in by_budget[50]} == {0.5}
    assert {row.scores["retrieval_precision"] for row in by_budget[500]} == {1 / 6}
    assert {row.scores["retrieval_recall"] for row in rows} == {1.0}


@pytest.mark.filterwarnings("ignore:nothing in conversations could be scored")
@pytest.mark.parametrize("system", [Writing, Remembering])
def test_quality_is_not_measured_where_a_script_stood_in_for_the_model(system: Any) -> None:
    result = run(system, answerer=Scripted.from_text("text:noted"), quiet=0.05, answers=["reader"])
    name = f"{system.name}[budget=500]"
    asks = system is Writing
    assert {row.error for row in result.rows} == {None}
    assert {bool(row.scores) for row in result.rows} == {not asks}
    assert math.isnan(score(result, name)) is asks
    assert ("retrieval_recall" in result.summary[name]) is not asks
    said = "writing: a script replaced its model, so only costs are measured, not quality."
    assert (said in list_findings(result)) is asks
    if asks:
        assert set(result.rows[0].unscored.values()) == {STOOD_IN}
        assert result.summary[name]["ingest_calls"] == pytest.approx(1000)


def test_abstention_is_not_measured_while_a_script_reads() -> None:
    talks = make_conversations(2)
    for talk in talks:
        talk["questions"][0]["pair"] = talk["questions"][1]["pair"] = "p"
        talk["questions"][1] |= {"unanswerable": True}
    result = run(Remembering(), talks)
    read, own = (result.summary[f"remembering[{how}]"]["abstention"] for how in ("budget=500", "own query"))
    assert math.isnan(read)
    assert own == 0.5  # it has an answer of its own, and never refuses
    assert "a script answered" in result.notes["remembering[budget=500]"]["abstention"]


def test_evaluate_takes_a_memory_system_as_it_takes_any_other() -> None:
    one, two = (
        evaluate(Remembering(), make_conversations(), progress=False),
        run(Remembering(), budgets=[500, 2000, 8000]),
    )
    assert (
        one.systems
        == two.systems
        == [
            "remembering[budget=500]",
            "remembering[budget=2000]",
            "remembering[budget=8000]",
            "remembering[own query]",
        ]
    )
    assert [row.response for row in one.rows] == [row.response for row in two.rows]


def test_the_history_counts_as_input_and_is_stored_nowhere() -> None:
    (row, *_) = run(Remembering(), answers=["reader"]).rows
    # "[1 May 2023, 10:00] Ana: The code of room0 is 000." and five more lines, and the question
    assert row.metadata["history_tokens"] > 6 * 15
    assert row.input_tokens > row.metadata["history_tokens"]
    assert row.output_tokens < row.input_tokens


def test_a_conversation_is_ingested_once_for_all_ways_of_asking(tmp_path: Path) -> None:
    run(Persistent(str(tmp_path)), budgets=[500, 2000])
    calls = (tmp_path / "log.txt").read_text().splitlines()
    assert sum(call.startswith("ingest") for call in calls) == 3 * 2  # two sessions in each of three conversations


@pytest.mark.parametrize(("granularity", "calls"), [("turn", 6), ("pair", 4), ("session", 2)])
def test_the_granularity_says_how_many_turns_a_call_brings(granularity: str, calls: int, tmp_path: Path) -> None:
    # Sessions of three turns: 3 + 3 turns, 2 + 1 and 2 + 1 pairs, 2 sessions.
    result = run(Persistent(str(tmp_path)), make_conversations(1), granularity=granularity)
    assert result.rows[0].metadata["memory"]["ingest"]["writes"] == calls


def test_two_granularities_beside_each_other() -> None:
    result = run(Remembering, granularity=["session", "turn"], answers=["reader"])
    assert result.systems == ["remembering/session[budget=500]", "remembering/turn[budget=500]"]
    writes = {row.system: row.metadata["memory"]["ingest"]["writes"] for row in result.rows}
    assert writes == {"remembering/session[budget=500]": 2, "remembering/turn[budget=500]": 6}


# --- what goes wrong


@each_case("kind", [Broken, BrokenAsync])
@each_case(
    ("where", "how", "said"),
    [
        ("ingest", "interrupt", "ingest() of conversation 'c1' failed: KeyboardInterrupt"),
        ("retrieve", "interrupt", "retrieve() failed: KeyboardInterrupt"),
        ("retrieve", "exit", "retrieve() failed: SystemExit: 3"),
        ("ingest", "raise", "ingest() of conversation 'c1' failed: ValueError: something broke"),
        ("ingest", "exit", "ingest() of conversation 'c1' failed: SystemExit: 3"),
        ("retrieve", "raise", "retrieve() failed: ValueError: something broke"),
        ("retrieve", "none", "retrieve() returned None; it must return a list of objects with 'text'"),
        ("retrieve", "number", "retrieve() returned a int; it must return a list of objects with 'text'"),
    ],
)
def test_what_goes_wrong_is_an_error_of_those_rows_alone(kind: Any, where: str, how: str, said: str) -> None:
    word = "111." if where == "ingest" else "room1"
    result = run([Remembering(), kind(where, how, word)], answers=["reader"], timeout=5)
    assert {row.error for row in result.rows if row.system == "remembering[budget=500]"} == {None}
    broken = [row for row in result.rows if row.system == "broken[budget=500]"]
    wrong = [row for row in broken if ("c1/" in row.example_id if where == "ingest" else "q1" in row.example_id)]
    assert len(wrong) == (6 if where == "ingest" else 3)
    assert all(row.error is not None and row.error.endswith(f"broken: {said}") for row in wrong)
    assert {row.error for row in broken if row not in wrong} == {None}


@pytest.mark.parametrize(
    ("how", "said"), [("none", "returned None; it must return a text"), ("number", "returned a int; it must")]
)
def test_an_answer_that_is_no_text_is_an_error(how: str, said: str) -> None:
    result = run(Broken("query", how, "room2"), answers=["own"])
    wrong = [row for row in result.rows if row.error]
    assert [row.example_id for row in wrong] == ["c0/q2", "c1/q2", "c2/q2"]
    assert all(said in str(row.error) for row in wrong)


def test_a_system_that_hangs_costs_its_own_rows_alone() -> None:
    result = run(
        [Remembering(), Broken("retrieve", "hang", "room3?")], make_conversations(1), answers=["reader"], timeout=1
    )
    errors = {row.example_id: row.error for row in result.rows if row.system == "broken[budget=500]"}
    assert [key for key, error in errors.items() if error is None] == ["c0/q0", "c0/q1", "c0/q2"]
    assert "retrieve() did not return within 1 s" in str(errors["c0/q3"])
    assert "was not called: retrieve() has still not returned" in str(errors["c0/q4"])
    assert {row.error for row in result.rows if row.system == "remembering[budget=500]"} == {None}


def test_a_conversation_that_cannot_be_read_is_named() -> None:
    for broken, said in (
        ({"turns": []}, "conversation 2: no 'id'"),
        ({"id": "x", "turns": [{}], "questions": []}, "conversation 2, turn 1: must be an object with 'role'"),
        (
            {"id": "x", "turns": [], "questions": [{}]},
            "conversation 2, question 1: must be an object with 'question'",
        ),
        ({**make_conversations(1)[0]}, "conversation 2: duplicate id 'c0'"),
    ):
        with pytest.raises(DataError, match=said) as raised:
            run(Remembering(), [*make_conversations(1), broken], answers=["reader"])
        assert len(raised.value.result.rows) == 6  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"granularity": "word"}, "granularity must be one of turn, pair, session"),
        ({"budgets": [0]}, "a budget must be an integer of at least 1"),
        ({"answers": ["mine"]}, "answers must be some of reader, own"),
        ({"types": ["never"]}, "no question is of type never; types: early, late"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises((UsageError, DataError), match=said):
        run(Remembering(), **options)


def test_questions_of_some_types_alone() -> None:
    result = run(Remembering(), types=["late"], answers=["reader"])
    assert {row.metadata["question_type"] for row in result.rows} == {"late"}
    assert len(result.rows) == 9


# --- queries must not change the memory


class Changing(Remembering):
    """Each question pushes the oldest turn out."""

    name = "changing"

    def retrieve(self, question: str, k: int | None = None) -> list[dict[str, Any]]:
        found = super().retrieve(question, k)
        self.turns = self.turns[1:]
        return found


@pytest.mark.parametrize(("system", "changed"), [(Remembering(), False), (Changing(), True)])
def test_a_tenth_is_asked_again_at_the_end(system: Any, changed: bool) -> None:
    again = run(system, answers=["reader"]).config["reports"][f"{system.name}[budget=500]"]["memory"]["asked_again"]
    assert again["asked"] >= 3  # one of each conversation at least
    assert (again["changed"] > 0) is changed
    assert again["failed"] == 0


# --- a run that is killed


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from context_bench import evaluate_memory
from toy_memories import Persistent, make_conversations
evaluate_memory(Persistent({folder!r}, {sleep_at!r}), make_conversations(2), progress=False, budgets=[500],
                answers=["reader"], cache_dir={store!r})
"""


def _kill_at(place: str, tmp_path: Path) -> list[str]:
    """Run in a process that is killed when it comes to this call; returns the calls until then."""
    folder, store = tmp_path / "memory", tmp_path / "store"
    code = SCRIPT.format(tests=str(TESTS), folder=str(folder), sleep_at=place, store=str(store))
    process = subprocess.Popen([sys.executable, "-c", code], env=environment())
    try:
        log = folder / "log.txt"
        deadline = time.monotonic() + 120
        while not (log.exists() and place in log.read_text()):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if place.startswith("retrieve"):  # what was answered before is on its way to the disk
            time.sleep(0.5)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    calls = log.read_text().splitlines()
    log.unlink()
    return calls


def _resume(tmp_path: Path) -> tuple[EvalResult, list[str]]:
    folder = tmp_path / "memory"
    result = run(Persistent(str(folder)), make_conversations(2), answers=["reader"], cache_dir=tmp_path / "store")
    return result, (folder / "log.txt").read_text().splitlines()


def test_killed_between_questions_nothing_is_written_or_asked_again(tmp_path: Path) -> None:
    before = _kill_at("retrieve What is the code of room3?", tmp_path)
    assert sum(call.startswith("ingest") for call in before) == 2
    result, calls = _resume(tmp_path)
    # Conversation c0 was restored; c1 is new: two sessions.
    assert [call for call in calls if call.startswith("ingest")] == [
        "ingest [1 May 2023, 10:00] The code of room0 is 100.",
        "ingest [2 May 2023, 10:00] The code of room3 is 133.",
    ]
    asked = [call for call in calls if call.startswith("retrieve What")]
    assert "retrieve What is the code of room0?" not in asked[:3]  # q0 to q2 of c0 are known
    assert [row.error for row in result.rows] == [None] * 12
    assert result.config["reports"]["persistent[budget=500]"]["memory"]["restored"] == 1
    assert result.config["reused"] == 3
    # What writing took in the first process is not lost.
    assert result.rows[5].metadata["memory"]["ingest"]["writes"] == 2


def test_killed_while_it_writes_a_conversation_is_written_again(tmp_path: Path) -> None:
    before = _kill_at("ingest [2 May 2023, 10:00] The code of room3 is 033.", tmp_path)
    assert sum(call.startswith("ingest") for call in before) == 2
    result, calls = _resume(tmp_path)
    assert sum(call.startswith("ingest") for call in calls) == 4
    about = result.config["reports"]["persistent[budget=500]"]["memory"]
    assert (about["restored"], about["written_again"]) == (0, 1)
    assert [row.error for row in result.rows] == [None] * 12
    assert {row.response for row in result.rows[:1]} == {
        row.response for row in run(Remembering(), answers=["reader"]).rows[:1]
    }


def test_without_restore_a_resumed_conversation_is_written_again_and_nothing_else(tmp_path: Path) -> None:
    first = run(Remembering(), make_conversations(2), answers=["reader"], cache_dir=tmp_path)
    again = run(Remembering(), make_conversations(2), answers=["reader"], cache_dir=tmp_path)
    assert again.config["reused"] == 12
    assert [row.response for row in again.rows] == [row.response for row in first.rows]
    more = make_conversations(2)
    more[1]["questions"].append({"id": "new", "question": "What is the code of room5 again?", "answer": "155"})
    result = run(Remembering(), more, answers=["reader"], cache_dir=tmp_path)
    assert result.config["reused"] == 12
    assert len(result.rows) == 13
    assert result.config["reports"]["remembering[budget=500]"]["memory"]["written_again"] == 1  # c1, and not c0


def test_a_changed_turn_is_asked_anew(tmp_path: Path) -> None:
    run(Remembering(), make_conversations(1), answers=["reader"], cache_dir=tmp_path)
    changed = make_conversations(1)
    changed[0]["turns"][0]["content"] = "The code of room0 is 999."
    result = run(Remembering(), changed, answers=["reader"], cache_dir=tmp_path)
    assert result.config["reused"] == 0
    assert "999" in result.rows[0].response


def test_the_result_is_read_back(tmp_path: Path) -> None:
    result = run([Remembering(), Forgetful()], cache_dir=tmp_path)
    again = EvalResult.from_json(result.to_json())
    assert json.loads(again.to_json())["rows"] == json.loads(result.to_json())["rows"]
    assert again.summary["remembering[budget=500]"]["mean_score"] == score(result, "remembering[budget=500]")


def test_numbers_of_memory_are_computed_again_from_the_rows() -> None:
    result = run([Remembering(), Forgetful()], answers=["reader"])
    again = EvalResult.from_json(result.to_json())
    for key in ("type:early", "retrieval_recall", "ingest_seconds", "query_seconds_median", "answer_tokens"):
        assert again.summary["forgetful[budget=500]"][key] == result.summary["forgetful[budget=500]"][key]
    alone = result.filter(system="forgetful[budget=500]")
    assert alone.summary["forgetful[budget=500]"]["type:late"] == result.summary["forgetful[budget=500]"]["type:late"]
