"""The store: what is put down is found again, by the right key; runs are listed, read and removed."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.errors import UsageError
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo, Store
from context_bench.store.backend import StoredAnswer
from context_bench.store.records import identity_of
from context_bench.systems import Passthrough
from numbered import numbered

EXAMPLE: dict[str, Any] = {"id": 1, "context": "text"}
KEY, OTHER, EXAMPLE_KEY = b"k" * 16, b"o" * 16, b"e" * 16


def answer(text: str) -> StoredAnswer:
    return StoredAnswer({"response": text}, {"attempts": 1}, 0.5, "response")


def row(text: str, system: str = "s") -> EvalRow:
    return EvalRow(system, 1, {"score": 1.0}, 1, 1, {"output": "response"}, 0.5, response=text)


def put(store: Store, run: RunInfo, place: int, text: str, key: bytes | None = KEY) -> None:
    response = store.put_answer(run, place, key, EXAMPLE, answer(text))
    example = store.example_id(run, place, EXAMPLE_KEY)
    store.put_row(run, place, key, example, response, row(text))
    store.put_example(example, EXAMPLE_KEY, EXAMPLE)


def again(directory: Path) -> Store:
    store = Store(directory, readonly=True)
    store.index_rows()
    store.index_answers()
    store.index_examples()
    return store


def test_an_answer_and_a_row_are_found_by_their_key(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        put(store, store.start_run({}), 0, "first")
    with again(tmp_path) as store:
        found = store.find_answer(KEY, EXAMPLE)
        assert found is not None
        assert found[1] == answer("first")
        assert store.find_rows([(KEY, EXAMPLE)])[0] == (found[0], row("first"), found[2])
        assert store.find_answer(OTHER, EXAMPLE) is None
        assert store.find_rows([(OTHER, EXAMPLE)])[0] is None


def test_what_has_no_key_is_never_found(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({})
        put(store, run, 0, "first", key=None)
    with again(tmp_path) as store:
        assert store.find_rows([(KEY, EXAMPLE)])[0] is None
        assert [each.response for each in store.run_rows(run)] == ["first"]


def test_the_newest_is_found_and_the_older_run_keeps_its_own(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        runs = [store.start_run({}) for _ in range(3)]
        for run, text in zip(runs, ("old", "new", "newest")):
            put(store, run, 7, text)
    with again(tmp_path) as store:
        found = store.find_rows([(KEY, EXAMPLE)])[0]
        assert found is not None
        assert found[1].response == "newest"
        assert [[each.response for each in store.run_rows(run)] for run in runs] == [["old"], ["new"], ["newest"]]


def test_rows_stand_in_the_order_of_their_places(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        one, two = store.start_run({}), store.start_run({})
        for place in (5, 0, 2**31, 3):
            put(store, one, place, str(place), key=None)
            put(store, two, place, "other", key=None)
    with again(tmp_path) as store:
        assert [each.response for each in store.run_rows(one)] == ["0", "3", "5", str(2**31)]


def test_scores(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_scores(KEY, {"scores": {"a": 1.0}, "reason": None, "details": {}})
    with again(tmp_path) as store:
        assert store.find_scores(KEY) == {"scores": {"a": 1.0}, "reason": None, "details": {}}
        assert store.find_scores(OTHER) is None


def test_a_run_tells_how_it_ended_with_numbers_that_json_has_not(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({"command": ["x"]})
        assert run.status == "running"
        result = EvalResult([], {"s": {"cost_of_pass": float("inf")}}, {"s": 1.5}, {"command": ["x"], "more": 1})
        store.end_run(run, "done", result)
    with again(tmp_path) as store:
        (found,) = store.runs()
    assert (found.id, found.status, found.config) == (run.id, "done", {"command": ["x"], "more": 1, "notes": {}})
    assert (found.summary, found.timing) == (result.summary, result.timing)


def test_a_run_is_listed_before_it_ends(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({})
        with Store(tmp_path, readonly=True) as other:
            assert [each.id for each in other.runs()] == [run.id]


def test_a_run_by_its_id_its_start_and_its_place(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(UsageError, match="there is no run 'last'"):
            store.run("last")
        first, second = store.start_run({}), store.start_run({})
        assert first.id != second.id
        assert [each.id for each in store.runs()] == [second.id, first.id]
        assert store.run("last").id == second.id
        assert store.run(first.id).id == first.id
        with pytest.raises(UsageError, match="2 runs start with '20'"):
            store.run("20")
        for unknown in ("nonsense", "", "%", "_"):
            with pytest.raises(UsageError, match="there is no run"):
                store.run(unknown)


def test_a_removed_run_takes_along_what_nobody_else_uses(tmp_path: Path) -> None:
    given = numbered(1, 2, 3)
    first = evaluate(Passthrough(), given[:2], cache_dir=tmp_path)
    second = evaluate(Passthrough(), given[1:], cache_dir=tmp_path)
    with Store(tmp_path) as store:
        store.remove_run(store.run(first.config["run"]))
        left = store.run(second.config["run"])
        assert [each.id for each in store.runs()] == [left.id]
        assert list(store.run_rows(left)) == second.rows
        assert [record.example["id"] for record in store.run_records(left)] == [2, 3]
        # Of its two answers one stands in its row, the other did in a row of the run that is gone.
        assert counts(store) == {"rows": 2, "responses": 1, "examples": 2, "keys": 5}
        store.remove_run(left)
        assert set(counts(store).values()) == {0}


def counts(store: Store) -> dict[str, int]:
    found = {table: store._one(f"SELECT count(*) FROM {table}") for table in ("rows", "responses", "examples", "keys")}
    return {table: number[0] for table, number in found.items() if number}


def test_an_answer_is_found_after_the_run_that_paid_for_it_is_gone(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        first, second = store.start_run({}), store.start_run({})
        put(store, first, 0, "used again")
        put(store, first, 1, "not used again", OTHER)
        example = identity_of(first.number, 0)
        store.put_row(second, 0, None, example, identity_of(first.number, 0), row("used again"))
    with Store(tmp_path) as store:
        store.remove_run(first)
    with again(tmp_path) as store:
        found = store.find_answer(KEY, EXAMPLE)
        assert found is not None
        assert found[1] == answer("used again")
        assert store.find_answer(OTHER, EXAMPLE) is None
        assert [each.response for each in store.run_rows(second)] == ["used again"]
        assert counts(store) == {"rows": 1, "responses": 1, "examples": 1, "keys": 2}


def test_a_row_whose_answer_was_removed_is_not_found(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_row(store.start_run({}), 0, KEY, 0, 12345, row(""))
    with again(tmp_path) as store:
        assert store.find_rows([(KEY, EXAMPLE)])[0] is None


def test_a_row_whose_example_is_lost_can_still_be_shown_if_the_response_was_no_part_of_it(tmp_path: Path) -> None:
    kept = StoredAnswer({"context": "text", "response": "text"}, {}, 0.5, "context")
    with Store(tmp_path) as store:
        run = store.start_run({})
        for place, each in enumerate((answer("own words"), kept)):
            response = store.put_answer(run, place, KEY, EXAMPLE, each)
            store.put_row(run, place, KEY, 0, response, row("text"))
    said = f"row 1 of run {run.id} in .* is damaged: it is left out"
    with again(tmp_path) as store, pytest.warns(UserWarning, match="damaged") as warned:
        (record,) = store.run_records(run)
    assert any(re.match(said, str(each.message)) for each in warned)
    assert (record.example, record.row.response, record.row.scores) == ({}, "own words", {"score": 1.0})


def test_a_removal_spares_the_examples_of_a_run_under_way(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        under_way, old = store.start_run({}), store.start_run({})
        example = store.example_id(under_way, 0, EXAMPLE_KEY)
        store.put_example(example, EXAMPLE_KEY, EXAMPLE)
    with Store(tmp_path) as store:
        store.remove_run(old)
        store.put_row(under_way, 0, None, example, None, row(""))
    with again(tmp_path) as store:
        assert [record.example for record in store.run_records(under_way)] == [EXAMPLE]


def test_an_answer_and_its_row_are_kept_as_one(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        put(store, store.start_run({}), 0, "at once")
    with again(tmp_path) as store:
        assert counts(store) == {"rows": 1, "responses": 0, "examples": 1, "keys": 3}


def test_an_answer_does_not_wait_long_for_its_row(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({})
        response = store.put_answer(run, 0, KEY, EXAMPLE, answer("judged later"))
        deadline = time.monotonic() + 5
        while counts(store)["responses"] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        with again(tmp_path) as other:
            found = other.find_answer(KEY, EXAMPLE)
            assert found is not None
            assert found[1] == answer("judged later")
            assert other.find_rows([(KEY, EXAMPLE)])[0] is None
        store.put_row(run, 0, KEY, 0, response, row("judged later"))
    with again(tmp_path) as store:
        found_row = store.find_rows([(KEY, EXAMPLE)])[0]
        assert found_row is not None
        assert found_row[:2] == (response, row("judged later"))
        assert counts(store)["responses"] == 1


def test_a_removal_spares_the_answers_of_a_run_under_way(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        under_way, old = store.start_run({}), store.start_run({})
        response = store.put_answer(under_way, 0, KEY, EXAMPLE, answer("paid for"))
        put(store, old, 0, "old", key=OTHER)
    with Store(tmp_path) as store:
        store.remove_run(old)
        example = store.example_id(under_way, 0, EXAMPLE_KEY)
        store.put_row(under_way, 0, KEY, example, response, row("paid for"))
        store.put_example(example, EXAMPLE_KEY, EXAMPLE)
    with again(tmp_path) as store:
        found = store.find_rows([(KEY, EXAMPLE)])[0]
        assert found is not None
        assert found[1].response == "paid for"
        assert store.find_answer(OTHER, EXAMPLE) is None


def test_numbers_of_removed_runs_are_not_given_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        first = store.start_run({})
        store.remove_run(first)
        assert store.start_run({}).number > first.number


def test_a_record_has_the_example_of_its_own_run(tmp_path: Path) -> None:
    """A gold that was corrected later is the gold of the later run."""
    first = evaluate(Passthrough(), numbered(1), cache_dir=tmp_path)
    second = evaluate(Passthrough(), numbered(1, answer="corrected"), cache_dir=tmp_path)
    with Store(tmp_path, readonly=True) as store:
        golds = [
            record.example["answer"]
            for result in (first, second)
            for record in store.run_records(store.run(result.config["run"]))
        ]
    assert golds == ["c1", "corrected"]


@pytest.mark.parametrize("odd", ["lone \ud800 surrogate", 2**70])
def test_an_example_that_is_no_plain_json_can_be_read_again(tmp_path: Path, odd: Any) -> None:
    result = evaluate(Passthrough(), numbered(1, notes=odd), cache_dir=tmp_path)
    with Store(tmp_path, readonly=True) as store:
        (record,) = store.run_records(store.run(result.config["run"]))
    assert record.example["answer"] == "c1"
    assert record.example["context"] == numbered(1)[0]["context"]


def test_an_example_is_kept_once_for_all_systems_and_runs(tmp_path: Path) -> None:
    long = numbered(1, notes="word " * 20_000)
    for _ in range(3):
        evaluate([Passthrough(), lambda example: example], long, cache_dir=tmp_path)
    assert (tmp_path / "store.db").stat().st_size < 300_000


def test_an_example_that_another_process_removes_meanwhile_is_kept_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        old = store.start_run({})
        put(store, old, 0, "old")
    with Store(tmp_path) as store:
        store.index_rows()
        store.index_answers()
        store.index_examples()
        run = store.start_run({})
        known = store.example_id(run, 0, EXAMPLE_KEY)
        assert known == identity_of(old.number, 0)
        with Store(tmp_path) as other:
            other.remove_run(old)
        store.put_row(run, 0, None, known, None, row(""))
        store.put_example(known, EXAMPLE_KEY, EXAMPLE)
    with again(tmp_path) as store:
        assert [record.example for record in store.run_records(run)] == [EXAMPLE]


def test_what_another_process_adds_meanwhile_is_simply_not_seen(tmp_path: Path) -> None:
    with Store(tmp_path) as early:
        early.index_rows()
        early.index_answers()
        early.index_examples()
        with Store(tmp_path) as other:
            put(other, other.start_run({}), 0, "new")
        time.sleep(0.05)
        assert early.find_rows([(KEY, EXAMPLE)])[0] is None
        early.index_rows()
        early.index_answers()
        early.index_examples()
        assert early.find_rows([(KEY, EXAMPLE)])[0] is not None


def test_a_run_is_found_by_its_distance_from_the_last(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        runs = [store.start_run({}).id for _ in range(3)]
        assert [store.run(f"last~{back}").id for back in (2, 1, 0)] == runs
        for wrong in ("last~3", "last~", "last~-1", "last~x"):
            with pytest.raises(UsageError, match="there is no run"):
                store.run(wrong)


def test_outcomes_are_rows_without_their_responses_and_the_keys_of_their_examples(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        run = store.start_run({})
        put(store, run, 0, "first")
        put(store, store.start_run({}), 0, "another run")
    with again(tmp_path) as store:
        assert list(store.run_outcomes(store.run("last~1"))) == [(row(""), EXAMPLE_KEY)]
