"""`context-bench runs`: what was recorded can be listed, read, exported and removed."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench.output.layout import fit_listing
from context_bench.store.records import sum_values
from numbered import number_of, numbered, right, write
from servers import Server, reply


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two runs in its store; the second has a failed example, and none that passes."""
    write(tmp_path / "data.jsonl", 1, 2, 3)
    write(tmp_path / "other.jsonl", 1, 2, answer="nobody says this")
    done = called("--system", "passthrough", "--system", "closed-book", "--dataset", "data.jsonl", cwd=tmp_path)
    assert done.returncode == 0
    broken = reply(400, {"error": {"message": "no"}})
    with Server(lambda request: broken if number_of(request) == 2 else right(request)) as server:
        done = called("--proxy", server.url, "--name", "p|q", "--dataset", "other.jsonl", cwd=tmp_path)
    assert done.returncode == 3
    return tmp_path


def ids(folder: Path) -> list[str]:
    return [line.split()[0] for line in called("runs", "list", cwd=folder).stdout.splitlines()[1:]]


def test_without_an_action_they_are_listed(folder: Path) -> None:
    listed = called("runs", "list", cwd=folder)
    for words in (["runs"], ["runs", "--wide"], ["runs", "--cache-dir", ".context-bench"]):
        done = called(*words, cwd=folder)
        assert (done.returncode, done.stdout) == (0, listed.stdout), done.stderr
    assert "ACTION" in called("runs", "--help", cwd=folder).stdout


def test_list(folder: Path) -> None:
    done = called("runs", "list", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""
    header, newest, oldest = done.stdout.splitlines()
    assert header.split() == ["run", "status", "when", "rows", "size", "systems", "datasets"]
    assert [newest.split()[place] for place in (1, 4, 7, 8)] == ["done", "2", "p|q", "other"]
    assert [oldest.split()[place] for place in (1, 4, 7, 8, 9)] == ["done", "6", "passthrough,", "closed-book", "data"]


def test_show(folder: Path) -> None:
    done = called("runs", "show", "last", cwd=folder)
    assert done.returncode == 0
    assert "other.jsonl" in done.stdout
    assert "| p\\|q " in done.stdout
    assert "none passed" in done.stdout, "an infinite cost comes back as one"
    assert "closed-book" in called("runs", "show", ids(folder)[1], cwd=folder).stdout


def test_export(folder: Path) -> None:
    exported = called("runs", "export", "last", "--output", "json", cwd=folder)
    assert exported.returncode == 0
    document = json.loads(exported.stdout)
    assert document["summary"]["p|q"]["num_errors"] == 1
    assert document["summary"]["p|q"]["cost_of_pass"] is None
    assert document["timing"]["p|q"] > 0
    assert [row["response"] for row in document["rows"]] == ["c1", ""]
    records = list(csv.DictReader(io.StringIO(called("runs", "export", "last", "--output", "csv", cwd=folder).stdout)))
    assert [record["example_id"] for record in records] == ["1", "2"]
    assert called("runs", "export", "last", cwd=folder).stdout.startswith("| system")
    out = called("runs", "export", "last", "--output", "json", "--out", "run.json", cwd=folder)
    assert (out.stdout, (folder / "run.json").read_text()) == ("", exported.stdout)


def test_an_export_is_what_the_run_printed(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(20))
    run = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--dataset", "data.jsonl", "--output", "json")
    for more in ((), ("--resume",), ("--repeats", "2")):
        printed = json.loads(called(*run, *more, cwd=tmp_path).stdout)
        exported = json.loads(called("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout)
        assert exported == printed


def test_a_later_run_of_the_same_thing_changes_no_earlier_one(tmp_path: Path) -> None:
    """The server answers differently the second time; each run keeps what it got."""
    write(tmp_path / "data.jsonl", 1, 2)
    with Server(right) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--output", "json")
        first = json.loads(called(*run, cwd=tmp_path).stdout)
        server.script = [reply(200, {"choices": [{"message": {"content": "changed"}}]})]
        second = json.loads(called(*run, cwd=tmp_path).stdout)
    newest, oldest = ids(tmp_path)
    for name, document in ((oldest, first), (newest, second)):
        exported = json.loads(called("runs", "export", name, "--output", "json", cwd=tmp_path).stdout)
        assert exported == document
    assert first["rows"][0]["response"] != second["rows"][0]["response"]


def test_rm(folder: Path) -> None:
    newest, oldest = ids(folder)
    done = called("runs", "rm", newest, cwd=folder)
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, f"context-bench: removed run {newest}")
    assert ids(folder) == [oldest]
    assert called("runs", "show", "last", cwd=folder).stdout.split()[:2] == ["run", oldest]
    assert called("runs", "rm", "last", "last", cwd=folder).stderr.count("removed") == 1
    assert ids(folder) == []


def test_rm_of_several_removes_none_when_one_is_unknown(folder: Path) -> None:
    before = ids(folder)
    assert called("runs", "rm", before[0], "nonsense", cwd=folder).returncode == 2
    assert ids(folder) == before


def test_removed_answers_are_asked_again(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", 1, 2)
    with Server(right) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--resume")
        called(*run, cwd=tmp_path)
        called(*run, cwd=tmp_path)
        called("runs", "rm", ids(tmp_path)[1], cwd=tmp_path)
        called(*run, cwd=tmp_path)
        assert len(server.chats) == 2, "another run uses them"
        called("runs", "rm", *ids(tmp_path), cwd=tmp_path)
        called(*run, cwd=tmp_path)
        assert len(server.chats) == 4


@pytest.mark.parametrize("action", ["show", "export", "rm"])
@pytest.mark.parametrize("name", ["nonsense", "", "19990101", "20"])
def test_a_run_that_is_not_there(folder: Path, action: str, name: str) -> None:
    done = called("runs", action, name, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "2 runs start with '20'" in line if name == "20" else "there is no run" in line
    assert len(ids(folder)) == 2


def test_wrong_usage(tmp_path: Path) -> None:
    for arguments in ((), ("nonsense",), ("show",), ("list", "x"), ("export", "last", "--output", "pdf")):
        done = called("runs", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
    assert called("runs", "--help", cwd=tmp_path).returncode == 0


def test_a_run_that_failed_half_way_is_listed_and_readable(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(
        f"def load():\n    yield from {numbered(1, 2)!r}\n    raise OSError('the tape is torn')\n"
    )
    done = called("--system", "passthrough", "--dataset", "source.py:load", cwd=tmp_path)
    assert done.returncode == 2
    listed = called("runs", "list", cwd=tmp_path).stdout
    assert "failed" in listed
    exported: dict[str, Any] = json.loads(called("runs", "export", "last", "--output", "json", cwd=tmp_path).stdout)
    assert [row["example_id"] for row in exported["rows"]] == [1, 2]
    assert exported["summary"]["passthrough"]["num_examples"] == 2


def test_rm_gives_the_disk_back_and_the_list_has_sizes(tmp_path: Path) -> None:
    text = "".join(f"Line {n} says {n * 7919 % 1000}. " for n in range(20_000))
    (tmp_path / "large.jsonl").write_text(
        "".join(json.dumps({"id": n, "context": f"{n} {text}"}) + "\n" for n in range(8))
    )
    write(tmp_path / "small.jsonl", 1, 2)
    for name in ("large", "small"):
        done = called("--system", "truncate:ratio=0.9", "--dataset", f"{name}.jsonl", "--quiet", cwd=tmp_path)
        assert done.returncode in (0, 3), done.stderr
    listed = called("runs", "list", cwd=tmp_path).stdout.splitlines()
    sizes = {line.split()[-1]: line.split()[5:7] for line in listed[1:]}
    assert sizes["large"][1] == "MB" or float(sizes["large"][0]) > 100
    assert sizes["small"][1] in ("B", "kB")
    before = sum(path.stat().st_size for path in (tmp_path / ".context-bench").glob("store.db*"))
    done = called("runs", "rm", "last~1", cwd=tmp_path)
    after = sum(path.stat().st_size for path in (tmp_path / ".context-bench").glob("store.db*"))
    assert after < before / 2
    assert "less than before" in done.stderr
    assert called("runs", "show", "last", cwd=tmp_path).returncode == 0


def test_rm_by_age(folder: Path) -> None:
    newest, oldest = ids(folder)
    with sqlite3.connect(folder / ".context-bench" / "store.db") as database:
        row = list(database.execute("SELECT * FROM runs WHERE id = ?", (oldest,)).fetchone())
        row[2] = "2020-01-02T03:04:05+0000"
        database.execute(
            "UPDATE runs SET created = ?, checksum = ? WHERE id = ?", (row[2], sum_values(row[0], *row[1:-1]), oldest)
        )
    database.close()
    assert "no run is that old" in called("runs", "rm", "--older-than", "5000w", cwd=folder).stderr
    done = called("runs", "rm", "--older-than", "30d", cwd=folder)
    assert f"removed run {oldest}" in done.stderr
    assert ids(folder) == [newest]
    for wrong in ("30", "d", "-1d", "1.5d", "30 days"):
        done = called("runs", "rm", f"--older-than={wrong}", cwd=folder)
        assert (done.returncode, "such as 30d" in done.stderr) == (2, True), done.stderr
    assert "no run given" in called("runs", "rm", cwd=folder).stderr


def test_the_status_is_shown_at_80_columns() -> None:
    lines = [["run", "status", "when", "rows", "size", "systems", "datasets"]]
    lines.append(["20261118-201025-1", "interrupted", "2026-11-18 20:10", "12,345", "1.2 MB", "a" * 40, "b" * 40])
    shown = fit_listing(lines, 80, wrapped=(-2, -1), give_way=("when", "size", "rows"))
    assert "interrupted" in shown
    assert "left out: " in shown
