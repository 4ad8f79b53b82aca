"""Local records: which file serves which configuration, in every format and packing."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import Card, read_card
from context_bench.datasets.public.raw_files import NOTE, LocalFiles
from context_bench.errors import DataError

ROWS = [{"a": "1", "b": "ü"}, {"a": "2", "b": ""}]


def card(**config: Any) -> Card:
    base = {"summary": "X.", "adapter": "qa:squad", "evaluators": [], "primary": "f1", "licence": "MIT"}
    return read_card("toy", "qa", {**base, "configs": {"main": {"split": "test", **config}}})


def opened(folder: Path, split: str = "test", **config: Any) -> LocalFiles:
    toy = card(**config)
    return LocalFiles(folder, toy, toy.config(), split)


def records(source: LocalFiles) -> list[Any]:
    return [record for _, record in source]


def packed(kind: str) -> bytes:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
    if kind in ("jsonl", "series.json"):
        return lines
    if kind == "json":
        return json.dumps(ROWS).encode()
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        import io

        import pyarrow.parquet as parquet

        out = io.BytesIO()
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), out)
        return out.getvalue()
    mark = "\t" if kind == "tsv" else ","
    return f"a{mark}b\r\n1{mark}ü\r\n2{mark}\r\n".encode()


KINDS = ["jsonl", "json", "series.json", "csv", "tsv", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packing", ["", ".gz", ".zip"])
def test_every_format_and_packing(tmp_path: Path, kind: str, packing: str) -> None:
    path, content = tmp_path / f"x.{kind}{packing}", packed(kind)
    if packing == ".gz":
        path.write_bytes(gzip.compress(content))
    elif packing == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"inner/x.{kind}", content)
            archive.writestr("inner/README.md", "not a record")
    else:
        path.write_bytes(content)
    assert records(opened(tmp_path, files=[f"x.{kind}*"])) == ROWS


def test_one_member_of_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for name in ("train", "test"):
            archive.writestr(f"toy/{name}.jsonl", json.dumps({"from": name}))
    assert records(opened(tmp_path, files=["all.zip!toy/test.jsonl"])) == [{"from": "test"}]
    assert records(opened(tmp_path, hub_files=["all.zip!*/train.jsonl"])) == [{"from": "train"}]


@pytest.mark.parametrize(
    "name",
    [
        "own.jsonl",
        "main/test.jsonl",
        "main/test.jsonl.gz",
        "there/test.jsonl",
        "test.jsonl",
        "data/test.jsonl",
        "data/test-00000-of-00001.jsonl",
    ],
)
def test_where_files_are_looked_for(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    content = b'{"a": 1}\n'
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert records(opened(tmp_path, files=["own.jsonl"], hub_config="there")) == [{"a": 1}]


def test_the_first_pattern_that_matches_serves_with_all_its_shards_in_order(tmp_path: Path) -> None:
    for name in ("b-2.jsonl", "b-1.jsonl", "c.jsonl"):
        (tmp_path / name).write_text(json.dumps({"name": name}))
    got = records(opened(tmp_path, files=["a.jsonl", "b-*.jsonl", "c.jsonl"]))
    assert [record["name"] for record in got] == ["b-1.jsonl", "b-2.jsonl"]


def test_a_reader_gets_every_match_unpacked(tmp_path: Path) -> None:
    data = {"data": [{"title": "T", "paragraphs": [{"context": "C", "qas": [{"id": "q"}]}]}]}
    (tmp_path / "one.json").write_text(json.dumps(data))
    (tmp_path / "two.json.gz").write_bytes(gzip.compress(json.dumps(data).encode()))
    got = records(opened(tmp_path, files=["one.json", "two.json.gz"], reader="qa:squad_articles"))
    assert got == [{"title": "T", "context": "C", "id": "q"}] * 2
    (tmp_path / "one.json").write_text("{}")
    with pytest.raises(DataError, match="no column 'data'"):
        records(opened(tmp_path, files=["one.json"], reader="qa:squad_articles"))


def test_another_split_is_never_served_by_the_files_of_the_usual_one(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"a": 1}')
    with pytest.raises(DataError, match=r"toy:main \(split train\); expected main/train"):
        opened(tmp_path, split="train", files=["own.jsonl"])


def test_nothing_there_says_what_was_wanted_and_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("")
    with pytest.raises(DataError) as caught:
        opened(tmp_path, files=["own.jsonl"])
    assert "expected own.jsonl or main/test.*" in str(caught.value)
    assert str(caught.value).endswith("found: other.txt")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.jsonl", b'{"a": 1}\n{"a":', "line 2: broken JSON"),
        ("x.json", b'[{"a": 1},', "broken JSON"),
        ("x.csv", b"a,b\n1\n", "as many cells as the header"),
        ("x.jsonl.gz", b"not gzip", "cannot be read"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 999, mtime=0)[:-20], "cannot be read"),
        ("x.zip", b"not a zip", "cannot be read"),
        ("x.parquet", b"PAR1 not really", "broken parquet"),
        ("x.csv", b"a\n\xff\xfe\n", "not UTF-8"),
        ("x.exe", b"MZ", "unknown kind of file"),
    ],
)
def test_a_broken_file_is_a_sentence(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        records(opened(tmp_path, files=[name]))
    assert str(tmp_path / name) in str(caught.value)
    assert problem in str(caught.value)


def test_an_archive_is_never_unpacked_outside_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with zipfile.ZipFile(folder / "x.zip", "w") as archive:
        archive.writestr("../../evil.json", json.dumps({"data": []}))
    assert records(opened(folder, files=["x.zip!*evil.json"], reader="qa:squad_articles")) == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "x.zip"]


def test_what_fetch_noted_is_among_the_facts(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl").write_text('{"a": 1}')
    (tmp_path / NOTE).write_text(json.dumps({"main": {"hub": "o/n", "revision": "abc"}}))
    facts = opened(tmp_path).facts
    assert (facts["hub"], facts["revision"]) == ("o/n", "abc")
    (tmp_path / NOTE).write_text("broken")
    assert list(opened(tmp_path).facts) == ["files"]
