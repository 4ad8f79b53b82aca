"""One's own files: read as a stream, checked in full, and every problem with its file and line."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.files import FileDataset
from context_bench.errors import DataError
from context_bench.text import formats

ROWS = [{"id": 1, "context": "one"}, {"id": "2", "context": "zwei ü 日本 🎉", "answers": ["x"]}]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def lines(*rows: Any, end: str = "\n") -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + end for row in rows)


def problem(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        FileDataset(path).check()
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def read(path: Path) -> list[dict[str, Any]]:
    dataset = FileDataset(path)
    assert dataset.check() == len(list(dataset))
    return [{key: value for key, value in row.items() if key != "dataset"} for row in dataset]


# .gz


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.jsonl.gz", lines(*ROWS)),
        ("data.JSON.GZ", json.dumps(ROWS)),
        ("data.csv.gz", 'id,context,answers\n1,one,\n2,zwei ü 日本 🎉,"[""x""]"\n'),
    ],
)
def test_a_packed_file_is_read_as_the_one_in_it(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, gzip.compress(text.encode()))
    wanted = ROWS if "csv" not in name else [ROWS[0] | {"id": "1"}, ROWS[1]]
    assert read(path) == wanted
    assert {row["dataset"] for row in FileDataset(path)} == {"data"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"plain text", "cannot be read: Not a gzipped file"),
        (gzip.compress(lines(*ROWS).encode())[:-9], "cannot be read: Compressed file ended before the end"),
        (gzip.compress(b"not json"), "line 1: broken JSON"),
        (gzip.compress(b""), "no examples in this file"),
    ],
    ids=["not packed", "cut off", "broken inside", "empty"],
)
def test_a_packed_file_that_cannot_be_read(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in problem(write(tmp_path, "data.jsonl.gz", content))


def test_a_line_of_gigabytes_in_a_small_packed_file_is_refused_within_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "MAX_RECORD", 1 << 20)
    path = write(tmp_path, "data.jsonl.gz", gzip.compress(b'{"id": 1, "context": "' + b"a" * (64 << 20)))
    tracemalloc.start()
    try:
        assert "line 1: a record is longer than 1 MB" in problem(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


# .jsonl


@pytest.mark.parametrize(
    "text",
    [
        lines(*ROWS),
        lines(*ROWS).rstrip("\n"),
        "\ufeff" + lines(*ROWS),
        lines(*ROWS, end="\r\n"),
        "\n\n" + lines(*ROWS, end="\n \t\n") + "\n\n",
    ],
    ids=["plain", "no last line end", "BOM", "CRLF", "blank lines"],
)
def test_jsonl(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path, "data.jsonl", text)) == ROWS


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ('{"id": 3, "context": ', "broken JSON"),
        ("not json", "broken JSON"),
        ('{"id": 3, "context": "x"} {"id": 4, "context": "y"}', "broken JSON"),
        ("[1, 2]", "an object with fields (got a list)"),
        ("null", "(got null)"),
        ('"text"', "(got text)"),
        ("3", "(got a int)"),
        ('{"context": "x"}', "no 'id'"),
        ('{"id": 3}', "no 'context'"),
        ('{"id": 3, "context": 5}', "'context' must be text"),
        ('{"id": 1, "context": "again"}', "duplicate id 1"),
        ("[" * 100_000, "broken JSON"),
    ],
)
def test_a_problem_has_its_file_and_line(tmp_path: Path, bad: str, said: str) -> None:
    path = write(tmp_path, "data.jsonl", "\n" + lines(*ROWS) + "\n" + bad + "\n" + lines({"id": 9, "context": ""}))
    text = problem(path)
    assert f"{path}, line 5: " in text
    assert said in text


def test_the_column_of_a_broken_line(tmp_path: Path) -> None:
    path = write(tmp_path, "data.jsonl", '{"id": 1, "context": "x",}\n')
    assert "line 1" in problem(path)
    assert "column" in problem(path)


def test_what_is_not_utf8(tmp_path: Path) -> None:
    assert "UTF-8" in problem(write(tmp_path, "a.jsonl", '{"id": 1, "context": "é"}\n'.encode("latin-1")))
    assert "UTF-8" in problem(write(tmp_path, "a.json", '[{"id": 1, "context": "é"}]'.encode("latin-1")))
    assert "UTF-8" in problem(write(tmp_path, "a.csv", "id,context\n1,é\n".encode("latin-1")))
    assert problem(write(tmp_path, "b.jsonl", lines(*ROWS).encode("utf-16")))


def test_lone_surrogates_in_a_line(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"id": 1, "context": "a\\ud800b"}\n')
    (row,) = read(path)
    assert row["context"].startswith("a")


def test_a_huge_value(tmp_path: Path) -> None:
    row = {"id": 1, "context": "x" * 5_000_000}
    for name, text in (
        ("a.jsonl", lines(row)),
        ("a.json", json.dumps([row])),
        ("a.csv", f"id,context\n1,{row['context']}\n"),
    ):
        (got,) = read(write(tmp_path, name, text))
        assert len(got["context"]) == 5_000_000


# .json


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 16])
def test_a_list_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None) -> None:
    monkeypatch.setattr(formats, "JSON_CHUNK_CHARS", chunk)
    rows = [*ROWS, {"id": -12345, "context": '["not", {"a": "list"}] \\" , ]', "n": [1.5e10, True, None, {}]}]
    path = write(tmp_path, "a.json", json.dumps(rows, indent=indent, ensure_ascii=False))
    assert read(path) == rows


@pytest.mark.parametrize("text", ["\ufeff[]", " [ \n ] "])
def test_an_empty_list_has_no_examples(tmp_path: Path, text: str) -> None:
    assert "no examples" in problem(write(tmp_path, "a.json", text))


@pytest.mark.parametrize("chunk", [1, 5, 1 << 16])
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[\n {"id": 1, "context": "a"},\n {"id": 2}\n]', 3),
        ('[\n {"id": 1, "context": "a"},\n\n\n {"id": 1, "context": "b"}\n]', 5),
        ('[{"id": 1, "context": "a"},\n {"id": 2,\n  "context": oops}\n]', 3),
        ('[{"id": 1, "context": "a"}\n {"id": 2, "context": "b"}\n]', 2),
        ('[\n{"id": 1, "context": "a"},\n"text"\n]', 3),
        ('[\n{"id": 1, "context": "a"},\n5', 3),
        ('[\n{"id": 1, "context": "a"}\n', 3),
        ('[\n{"id": 1, "context": "a"}\n]\n[]', 4),
        ('[\n{"id": 1, "context": "a"}\n] x', 3),
        ('[\n{"id": 1, "context": "a"},\n]', 3),
    ],
)
def test_the_line_of_a_problem_in_a_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, text: str, line: int
) -> None:
    monkeypatch.setattr(formats, "JSON_CHUNK_CHARS", chunk)
    assert f"line {line}:" in problem(write(tmp_path, "a.json", text))


@pytest.mark.parametrize("text", ['{"id": 1, "context": "x"}', '"text"', "{}", lines(*ROWS)])
def test_what_is_no_list(tmp_path: Path, text: str) -> None:
    assert ".jsonl" in problem(write(tmp_path, "a.json", text))


def test_deep_nesting_is_a_broken_file(tmp_path: Path) -> None:
    assert problem(write(tmp_path, "a.json", "[" * 100_000))


# .csv


def test_csv(tmp_path: Path) -> None:
    text = "\ufeffid,context,question,answers,meta\r\n"
    text += 'a,"two\nlines, ""quoted""",q?,"[""x"", ""y""]","{""n"": 1}"\r\nb,,,,\r\n'
    assert read(write(tmp_path, "a.csv", text)) == [
        {"id": "a", "context": 'two\nlines, "quoted"', "question": "q?", "answers": ["x", "y"], "meta": {"n": 1}},
        {"id": "b", "context": ""},
    ]


def test_a_cell_that_only_looks_like_json_is_text(tmp_path: Path) -> None:
    (row,) = read(write(tmp_path, "a.csv", 'id,context,note\n1,"[not json]",{x\n'))
    assert (row["context"], row["note"]) == ("[not json]", "{x")


def test_a_context_that_is_json_stays_text(tmp_path: Path) -> None:
    (row,) = read(write(tmp_path, "a.csv", 'id,context,question\n1,"[{""a"": 1}]","{""b"": 2}"\n'))
    assert (row["context"], row["question"]) == ('[{"a": 1}]', '{"b": 2}')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,context\n1,a\n2,b,c\n", "line 3"),
        ("id,context\n1,a\n2\n", "line 3"),
        ('id,context\n1,a\n2,"open\n', "line 3"),
        ("id,context\n1,a\n1,b\n", "line 3: duplicate id"),
        ("number,context\n1,a\n", "no 'id'"),
        ("key,text,gold\n1,a,b\n", "this one has key, text, gold; --map (mapping= in Python) names the columns"),
        ("id,text\n1,a\n", "no 'context'"),
        ("id,context\n,a\n", "no 'id'"),
        ("id,context,context\n1,a,b\n", "'context'"),
        ("id,context\n", "no examples"),
        ("", "no examples"),
    ],
)
def test_a_problem_in_a_table(tmp_path: Path, text: str, said: str) -> None:
    assert said in problem(write(tmp_path, "a.csv", text))


# .parquet


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"id": f"r{n}", "context": f"c{n}", "answers": ["a", "b"], "meta": {"n": n}} for n in range(600)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet", row_group_size=100)
    assert read(tmp_path / "a.parquet") == rows
    rows[300]["id"] = "r0"
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "b.parquet")
    assert "duplicate id 'r0'" in problem(tmp_path / "b.parquet")
    assert "301" in problem(tmp_path / "b.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{"id": 1, "context": None}]), tmp_path / "c.parquet")
    assert "'context'" in problem(tmp_path / "c.parquet")


@pytest.mark.parametrize("content", [b"", b"not parquet at all", b"PAR1" + b"\x00" * 100 + b"PAR1"])
def test_a_broken_parquet_file(tmp_path: Path, content: bytes) -> None:
    pytest.importorskip("pyarrow")
    assert "parquet" in problem(write(tmp_path, "a.parquet", content))


# Any file


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_an_empty_file(tmp_path: Path, name: str) -> None:
    assert problem(write(tmp_path, name, ""))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        FileDataset(tmp_path / "a.jsonl")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        FileDataset(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.jsonl.bz2", "a.JSONLX"])
def test_an_unknown_kind_of_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"\.jsonl"):
        FileDataset(write(tmp_path, name, "x"))


def test_the_suffix_in_capitals(tmp_path: Path) -> None:
    assert read(write(tmp_path, "A.JSONL", lines(*ROWS))) == ROWS


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", lines(*ROWS))
    path.chmod(0)
    assert "cannot be read" in problem(path)


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", lines(*ROWS))
    dataset = FileDataset(path)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        list(dataset)


def test_examples_get_the_name_of_the_file_or_keep_their_tag(tmp_path: Path) -> None:
    rows = [{"id": 1, "context": ""}, {"id": 2, "context": "", "dataset": "own"}]
    rows += [{"id": 3, "context": "", "dataset": None}, {"id": 4, "context": "", "dataset": ""}]
    path = write(tmp_path, "mine.jsonl", lines(*rows))
    assert [row["dataset"] for row in FileDataset(path)] == ["mine", "own", "mine", "mine"]
    assert [row["dataset"] for row in FileDataset(path, "tag")] == ["tag", "own", "tag", "tag"]


def test_a_row_that_is_no_object_is_named_without_a_check_too(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1"):
        list(FileDataset(write(tmp_path, "a.jsonl", "[1]\n")))


def test_it_can_be_read_any_number_of_times(tmp_path: Path) -> None:
    dataset = FileDataset(write(tmp_path, "a.jsonl", lines(*ROWS)))
    assert list(dataset) == list(dataset)
    first, second = iter(dataset), iter(dataset)
    assert next(first) == next(second)


# Large files


def test_200_000_lines_are_checked_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("w") as target:
        for number in range(200_000):
            target.write(f'{{"id": {number}, "context": "context number {number}", "question": "q", "answer": "a"}}\n')
    before = time.process_time()
    assert FileDataset(path).check() == 200_000
    assert time.process_time() - before < 6


def test_a_large_list_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    rows = [{"id": number, "context": "x" * 1000} for number in range(10_000)]
    path.write_text(json.dumps(rows))
    del rows
    tracemalloc.start()
    try:
        assert sum(1 for _ in FileDataset(path)) == 10_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000  # of a file of 10 MB


_RUN = """
import resource, sys
from context_bench.datasets.files import FileDataset
from context_bench import evaluate

def nothing(example):
    return {"response": ""}

base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = evaluate(nothing, FileDataset(sys.argv[1]), evaluators=[], text_fields=[], progress=False)
assert len(result.rows) == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)
"""


def test_a_run_over_a_large_file_keeps_its_rows_and_nothing_else(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    rows, size = 4_000, 20_000
    path = tmp_path / "large.jsonl"
    with path.open("w") as target:
        for number in range(rows):
            target.write(json.dumps({"id": number, "context": "x" * size}) + "\n")
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(path), str(rows)], capture_output=True, text=True, timeout=60, check=True
    )
    grown = int(done.stdout) * 1024
    assert grown < 40_000_000  # of a file of 80 MB
