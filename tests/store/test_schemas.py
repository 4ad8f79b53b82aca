"""Stores of every earlier version are brought up to date, whole or not at all; to look at one changes nothing.

The files in `old/` are what those versions wrote: two runs of three systems over three, then four examples; `cut` fails
on the third. Twice the tables changed within one schema.
"""

from __future__ import annotations

import random
import resource
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from command import called, environment
from context_bench import evaluate
from context_bench.store import Store
from context_bench.store.database import FILE_NAME, SCHEMA
from context_bench.systems import Passthrough

OLD = Path(__file__).parent / "old"
LAYOUTS = sorted(path.stem.removeprefix("schema-") for path in OLD.glob("*.sql"))


def make(directory: Path, layout: str) -> Path:
    """A store as an earlier version left it."""
    directory.mkdir(exist_ok=True)
    path = directory / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((OLD / f"schema-{layout}.sql").read_text(encoding="utf-8"))
    return path


def example(number: int) -> dict[str, Any]:
    question = f"What is the code of item {number}?"
    context = f"Item {number} has the code c{number}."
    return {"id": number, "context": context, "question": question, "answer": f"c{number}"}


def expected(*numbers: int) -> list[tuple[Any, ...]]:
    """System, example, response and error of each row."""
    rows: list[tuple[Any, ...]] = []
    for number in numbers:
        failed = number == 3
        rows.append(
            ("cut", number, "" if failed else f" c{number}", "ValueError: three is refused" if failed else None)
        )
        rows.append(("answers", number, f"The code is c{number}.", None))
        rows.append(("passthrough", number, f"Item {number} has the code c{number}.", None))
    return rows


def check(directory: Path, layout: str, *, readonly: bool) -> None:
    with Store(directory, readonly=readonly) as store:
        second, first = store.runs()
        assert (first.status, second.status) == ("done", "done")
        assert set(second.summary) == {"cut", "answers", "passthrough"}
        for run, numbers in ((first, (1, 2, 3)), (second, (1, 2, 3, 4))):
            records = list(store.run_records(run))
            rows = [record.row for record in records]
            assert [(row.system, row.example_id, row.response, row.error) for row in rows] == expected(*numbers)
            judged = [None if row.error else 1.0 for row in rows]
            assert [row.scores.get("judged") for row in rows] == judged
            # The first version kept no example for a row that failed.
            examples = [{} if layout == "1a" and row.error else example(int(row.example_id)) for row in rows]
            assert [record.example for record in records] == examples
            assert [record.answer is None for record in records] == [row.error is not None for row in rows]
        assert list(store.run_requests(first)) == []


def test_every_schema_so_far_is_there() -> None:
    assert {int(layout[0]) for layout in LAYOUTS} == set(range(1, SCHEMA))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_old_store_is_read_as_it_is(tmp_path: Path, layout: str) -> None:
    path = make(tmp_path, layout)
    before = path.read_bytes()
    check(tmp_path, layout, readonly=True)
    for action in ("show", "export"):
        assert called("runs", action, "last", "--cache-dir", str(tmp_path), cwd=tmp_path).returncode == 0
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_old_store_is_brought_up_to_date(tmp_path: Path, layout: str) -> None:
    path = make(tmp_path, layout)
    check(tmp_path, layout, readonly=False)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables - {"sqlite_sequence"} == {"runs", "rows", "responses", "keys", "examples", "scores", "requests"}
    check(tmp_path, layout, readonly=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_paid_for_is_found_in_an_old_store(tmp_path: Path, layout: str) -> None:
    make(tmp_path, layout)
    with Store(tmp_path) as store:
        store.index_rows()
        store.index_answers()
        store.index_examples()
        # Four examples by three systems, one of which fails on one.
        assert len(store._answer_ids) == 11
        found = [store.find_answer(key, example(1)) for key in store._answer_ids]
        assert None not in found
        rows = [row for row in store.find_rows([(key, example(1)) for key in store._row_ids]) if row is not None]
        assert len(rows) == 11
        assert {len(key) for key in store._example_ids} == {16}
        assert len(store._example_ids) == 4
        assert store._one("SELECT count(*) FROM scores") == (11,)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_runs_go_on_in_an_old_store(tmp_path: Path, layout: str) -> None:
    make(tmp_path, layout)
    numbers = (1, 2, 3, 4, 5)
    result = evaluate(Passthrough(), [example(n) for n in numbers], cache_dir=tmp_path)
    assert [row.response for row in result.rows] == [example(n)["context"] for n in numbers]
    assert evaluate(Passthrough(), [example(n) for n in numbers], cache_dir=tmp_path).config["reused"] == 5
    if layout != "1a":  # whose keys were made in another way
        assert result.config["reused"] == 4
    with Store(tmp_path) as store:
        for run in store.runs()[2:]:
            store.remove_run(run)
        assert [len(list(store.run_rows(run))) for run in store.runs()] == [5, 5]


# Large ones, which take a while


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A store of the last schema with 12,009 rows in its first run."""
    path = make(tmp_path / "large", "3b")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) "
            "INSERT INTO rows SELECT rows.id + n * 12, example, response, body, NULL FROM rows, n "
            "WHERE rows.id >> 32 = 1"
        )
        connection.execute(
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) "
            "INSERT INTO rows SELECT rows.id + n * 12 + 9, example, response, body, NULL FROM rows, n "
            "WHERE rows.id >> 32 = 1 AND rows.id & 0xffffffff < 3"
        )
    return path


ROWS = 9 + 12_000
OPEN = "import sys; from context_bench.store import Store; Store(sys.argv[1]).close()"


def opening(path: Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", OPEN, str(path.parent)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), **options)


def count(path: Path, *, version: int | None = None) -> int:
    """The rows of the first run; of a store with that version."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if version is not None:
            assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        (rows,) = connection.execute("SELECT count(*) FROM rows WHERE id >> 32 = 1").fetchone()
    return int(rows)


def test_a_death_on_the_way_loses_nothing(large: Path) -> None:
    chance = random.Random(3)
    assert count(large, version=3) == ROWS
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import context_bench.store.store"], check=True)
    start = time.monotonic() - started
    for _ in range(6):
        process = opening(large)
        wal = large.with_name(f"{FILE_NAME}-wal")
        give_up = time.monotonic() + start + 1
        while not (wal.exists() and wal.stat().st_size) and process.poll() is None and time.monotonic() < give_up:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.communicate()
        assert count(large) == ROWS
    done = opening(large)
    assert done.communicate()[1] == ""
    assert count(large, version=SCHEMA) == ROWS
    with Store(large.parent, readonly=True) as store:
        assert len(list(store.run_rows(store.runs()[1]))) == ROWS


def test_a_disk_that_is_full_on_the_way_loses_nothing(large: Path) -> None:
    size = large.stat().st_size

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    process = opening(large, preexec_fn=small)
    said = process.communicate()[1].splitlines()[-1]
    assert process.returncode == 1
    assert "StoreError" in said
    assert FILE_NAME in said
    assert count(large, version=3) == ROWS
    assert opening(large).communicate()[1] == ""
    assert count(large, version=SCHEMA) == ROWS


def test_many_bring_one_store_up_to_date_at_the_same_moment(large: Path) -> None:
    processes = [opening(large) for _ in range(4)]
    assert [process.communicate()[1] for process in processes] == [""] * 4
    assert count(large, version=SCHEMA) == ROWS
    with Store(large.parent, readonly=True) as store:
        assert len(list(store.run_rows(store.runs()[1]))) == ROWS
