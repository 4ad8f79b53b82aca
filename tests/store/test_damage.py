"""A damaged record costs that record and no other: it is named, and asked again. Nothing is silently wrong."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import evaluate
from context_bench.errors import StoreError
from context_bench.evaluators import AnswerQuality
from context_bench.store import Store
from context_bench.store.database import FILE_NAME
from numbered import numbered, write

COUNT = 40


class Asked:
    """A system that tells what it was asked."""

    name, fingerprint, reads_gold = "asked", "asked/1", False

    def __init__(self) -> None:
        self.ids: list[int] = []

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.ids.append(example["id"])
        return {"response": f"The answer is c{example['id']}.", "metadata": {"model": "none"}}


class Judge:
    """A slow evaluator, whose scores are kept by themselves."""

    name, version, slow = "judge", 1, True

    def __init__(self) -> None:
        self.calls: list[int] = []

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        self.calls.append(original["id"])
        return {"judged": original["id"] / 64}


def run(directory: Path, examples: Any = None, **options: Any) -> tuple[Any, list[int]]:
    system = Asked()
    options = {"evaluators": [AnswerQuality()], **options}
    return evaluate(system, examples or numbered(*range(COUNT)), cache_dir=directory, **options), system.ids


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    run(tmp_path / "store")
    return tmp_path / "store"


def change(directory: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


def flip(directory: Path, table: str, column: str, place: int, *, offset: int = 20) -> None:
    """Turn one bit over in one record."""
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection:
        found = connection.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?", (place,))
        rowid, record = found.fetchone()
    damaged = bytearray(record)
    damaged[offset] ^= 4
    change(directory, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", bytes(damaged), rowid)


def read(directory: Path) -> tuple[list[int], list[str]]:
    """The ids of the rows that are there, and what was said."""
    with warnings.catch_warnings(record=True) as said, Store(directory, readonly=True) as store:
        warnings.simplefilter("always")
        ids = [row.example_id for row in store.run_rows(store.runs()[-1])]
    return [int(each) for each in ids], [str(each.message) for each in said]


@pytest.mark.parametrize("column", ["body", "answer"])
@pytest.mark.parametrize("offset", [0, 3, 20], ids=["codec", "checksum", "content"])
def test_a_damaged_row_is_named_left_out_and_asked_again(directory: Path, column: str, offset: int) -> None:
    flip(directory, "rows", column, 17, offset=offset)
    ids, (said,) = read(directory)
    assert ids == [n for n in range(COUNT) if n != 17]
    assert re.fullmatch(r"row 17 of run \d+-\d+-1 in .*store.db is damaged: it is left out; --resume requests .*", said)
    with pytest.warns(UserWarning, match=r"17 of run .* is damaged: it is requested again"):
        result, asked = run(directory)
    # An answer that is not damaged is judged again, and not asked.
    assert asked == ([17] if column == "answer" else [])
    assert [row.response for row in result.rows] == [f"The answer is c{n}." for n in range(COUNT)]
    again, asked = run(directory)
    assert asked == []
    assert again.rows == result.rows


@pytest.mark.parametrize("column", ["example", "response", "again"])
def test_a_row_that_names_something_else_is_damaged(directory: Path, column: str) -> None:
    change(directory, f"UPDATE rows SET {column} = {column} + 1 WHERE id & 0xffffffff = 17")
    ids, said = read(directory)
    assert ids == [n for n in range(COUNT) if n != 17]
    assert len(said) == 1
    with pytest.warns(UserWarning, match="row 17 of run"):
        result, _ = run(directory)
    assert [row.example_id for row in result.rows] == list(range(COUNT))


def test_a_row_in_the_wrong_place_is_damaged(directory: Path) -> None:
    change(directory, "UPDATE rows SET id = id + 1000 WHERE id & 0xffffffff = 17")
    ids, (said,) = read(directory)
    assert ids == [n for n in range(COUNT) if n != 17]
    assert "row 1017 of run" in said


def test_rows_that_are_missing_are_told(directory: Path) -> None:
    change(directory, "DELETE FROM rows WHERE id & 0xffffffff IN (3, 4)")
    ids, (said,) = read(directory)
    assert len(ids) == COUNT - 2
    assert "40 rows were written, 38 are found" in said


def test_a_damaged_example_costs_the_example_alone(directory: Path) -> None:
    flip(directory, "examples", "body", 5)
    ids, (said,) = read(directory)
    assert ids == list(range(COUNT))
    assert "the example of row 5 of run" in said
    _, asked = run(directory, reuse=False)
    assert len(asked) == COUNT
    assert read(directory) == (ids, []), "who asks again mends it"


def test_damaged_keys_are_asked_again(directory: Path) -> None:
    change(directory, "UPDATE keys SET body = CAST(body || X'00' AS BLOB) WHERE kind = 'row'")
    with pytest.warns(UserWarning, match=r"list \d+ of the keys of rows in .* is damaged: its contents are requested"):
        result, _ = run(directory)
    assert [row.response for row in result.rows] == [f"The answer is c{n}." for n in range(COUNT)]


def test_a_damaged_score_is_judged_again(tmp_path: Path) -> None:
    first, _ = run(tmp_path, evaluators=[Judge()])
    flip(tmp_path, "scores", "body", 3)
    change(tmp_path, "DELETE FROM keys WHERE kind = 'row'")
    judge = Judge()
    with pytest.warns(UserWarning, match="score .* is damaged: the evaluator is called again"):
        second, asked = run(tmp_path, evaluators=[judge])
    assert asked == []
    assert len(judge.calls) == 1
    assert [row.scores for row in second.rows] == [row.scores for row in first.rows]


@pytest.mark.parametrize("column", ["config", "summary", "timing", "status", "created", "row_count"])
def test_a_damaged_record_of_a_run_costs_that_run(directory: Path, column: str) -> None:
    run(directory, numbered(1, 2))
    value = b"{}x" if column in ("config", "summary", "timing") else 12345
    change(directory, f"UPDATE runs SET {column} = ? WHERE number = 1", value)
    where = ("--cache-dir", "store")
    listed = called("runs", "list", *where, cwd=directory.parent)
    assert listed.returncode == 0
    assert [line.split()[1] for line in listed.stdout.splitlines()[1:]] == ["done", "damaged"] or column == "created"
    name = listed.stdout.splitlines()[2].split()[0]
    shown = called("runs", "show", name, *where, cwd=directory.parent)
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr
    assert shown.stderr.splitlines()[-1].endswith("is damaged: it cannot be shown, only removed")
    assert called("runs", "show", "last", *where, cwd=directory.parent).returncode == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(directory)[1] == [], "its answers are still there"
    assert called("runs", "rm", name, *where, cwd=directory.parent).returncode == 0


def test_not_every_damaged_record_is_named(directory: Path) -> None:
    change(directory, "UPDATE rows SET body = X'00'")
    ids, said = read(directory)
    assert ids == []
    assert len(said) == 11
    assert "more damaged records than are listed here" in said[-1]


def test_the_command_line_says_it_in_one_line_and_goes_on(directory: Path) -> None:
    flip(directory, "rows", "body", 17)
    done = called("runs", "export", "last", "--output", "csv", "--cache-dir", "store", cwd=directory.parent)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1 + COUNT - 1
    (line,) = [line for line in done.stderr.splitlines() if "damaged" in line]
    assert "row 17 of run" in line


# Any bit of the file


def everything(directory: Path) -> Iterator[Any]:
    """All that a store tells: runs, rows with their examples and answers, and what is found by keys."""
    with Store(directory, readonly=True) as store:
        for info in store.runs():
            yield info.number, info
            if info.status != "damaged":
                yield from ((info.number, record) for record in store.run_records(info))
        store.index_rows()
        store.index_answers()
        examples = numbered(*range(COUNT))
        for key, identity in sorted(store._row_ids.items()):
            example = examples[(identity & 0xFFFFFFFF) % COUNT]
            yield "row", key, store.find_rows([(key, example)])[0]
        for key, identity in sorted(store._answer_ids.items()):
            yield "answer", key, store.find_answer(key, examples[(identity & 0xFFFFFFFF) % COUNT])


@pytest.mark.long
def test_no_flipped_bit_is_silently_wrong(directory: Path, tmp_path: Path) -> None:
    original = (directory / FILE_NAME).read_bytes()
    right = list(everything(directory))
    known = {repr(each) for each in right}
    chance = random.Random(7)
    other, seen = tmp_path / "other", 0
    other.mkdir()
    for _ in range(160):
        bit = chance.randrange(len(original) * 8)
        damaged = bytearray(original)
        damaged[bit // 8] ^= 1 << bit % 8
        (other / FILE_NAME).write_bytes(damaged)
        found: list[Any] = []
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                found.extend(everything(other))
            except StoreError:
                seen += 1
                continue
        wrong = [each for each in found if repr(each) not in known and "damaged" not in repr(each)]
        assert [each for each in wrong if each[-1] is not None or each[0] not in ("row", "answer")] == [] or said, bit
        there = {repr(each) for each in found}
        missing = [each for each in right if each[0] == 1 and repr(each) not in there]
        assert missing == [] or said, bit
        seen += bool(said)
    assert seen > 5, "some of the bits were in records"
    shutil.rmtree(other)


def test_a_run_over_a_damaged_store_asks_just_what_is_damaged(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(20))
    command = ("--system", "passthrough", "--dataset", "data.jsonl", "--cache-dir", "store")
    assert called(*command, cwd=tmp_path).returncode == 0
    flip(tmp_path / "store", "rows", "answer", 4)
    done = called(*command, cwd=tmp_path)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "is damaged: it is requested again" in line]
    exported = called("runs", "export", "last", "--output", "csv", "--cache-dir", "store", cwd=tmp_path)
    assert len(exported.stdout.splitlines()) == 21
