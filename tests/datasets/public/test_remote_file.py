"""How much of a file on the hub is read: the server's own count of the bytes that went out is the witness."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hub import Hub, serve_hub
from hub_client import loaded, records
from later import Later

Later("datasets", "needs the extra `datasets`")
pyarrow = Later("pyarrow")

MB = 1_000_000
README = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: test\n    path: {}\n{}---\n"
DECLARED = """dataset_info:
  config_name: main
  features:
  - name: number
    dtype: string
  - name: text
    dtype: string
"""


def row(number: int, size: int) -> dict[str, Any]:
    return {"number": number, "text": random.Random(number).randbytes(size // 2).hex()}  # cannot be packed much


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in rows)


def table(rows: list[dict[str, Any]], group: int | None = None) -> bytes:
    import pyarrow.parquet as parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(rows), out, row_group_size=group)
    return out.getvalue()


def as_table(name: str, content: bytes, more: str = "") -> dict[str, bytes]:
    return {"README.md": README.format(name, more).encode(), name: content}


NESTED: list[dict[str, Any]] = [
    {"id": 1, "ok": True, "share": 0.5, "none": None, "of": {"title": ["a", "ü"], "n": [1, 2]}, "list": [["x"], []]},
    {"id": 2, "ok": None, "share": None, "none": "s", "of": {"title": [], "n": []}, "list": None},
]


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    long = [row(number, 60_000) for number in range(200)]  # 12 MB
    with serve_hub() as hub:
        hub.add("toy/groups", as_table("groups.parquet", table([row(number, 120_000) for number in range(250)], 25)))
        hub.add("toy/lines", as_table("lines.jsonl", lines(long)))
        hub.add("toy/packed", as_table("packed.jsonl.gz", gzip.compress(lines(long * 2), 1)))
        hub.add("toy/list", as_table("list.json", json.dumps(long).encode()))
        hub.add("toy/declared", as_table("declared.jsonl", lines(long), DECLARED))
        hub.add("toy/plain", {"plain.jsonl": lines(long)})
        hub.add("toy/cells", as_table("cells.csv", b"number,text\n1,a\n2,\n"))
        shards = {"nested-0.parquet": table(NESTED), "nested-1.parquet": table(NESTED[::-1])}
        hub.add("toy/nested", {"README.md": README.format("nested-*", "").encode(), **shards})
        hub.add("toy/broken", as_table("broken.parquet", b"PAR1 and no more"))
        hub.add("toy/kept", as_table("kept.parquet", table([row(1, 10)])))
        hub.add("toy/refused-lines", {"kept.jsonl": lines([row(1, 10)])})
        hub.refused = {"kept.parquet", "kept.jsonl"}
        yield hub


def test_three_records_cost_little_of_a_large_file(hub: Hub, tmp_path: Path) -> None:
    names = ["groups", "lines", "packed", "list", "declared"]
    tables = [{"hub": f"toy/{name}", "size": 3} for name in names]
    hub.served.clear()
    read = records(hub.url, tmp_path, *tables, {"hub": "toy/plain", "hub_files": ["plain.jsonl"], "size": 3})
    for each in (read[0], *read[1:4], read[5]):
        assert [record["number"] for record in each["records"]] == [0, 1, 2]
    assert [record["number"] for record in read[4]["records"]] == ["0", "1", "2"]  # as the repository declares it
    sizes = {name: len(content) for repository in hub.repositories.values() for name, content in files(repository)}
    assert 29 * MB < sizes["groups.parquet"] < 32 * MB
    assert min(sizes[name] for name in ("lines.jsonl", "packed.jsonl.gz", "list.json", "plain.jsonl")) > 11 * MB
    # A row group of 3 MB, the footer and what fills up their blocks.
    assert hub.served["groups.parquet"] < 8 * MB
    for name in ("lines.jsonl", "packed.jsonl.gz", "list.json", "plain.jsonl"):
        assert hub.served[name] < 3 * MB
    assert hub.served["declared.jsonl"] < 8 * MB


def files(repository: Any) -> Iterator[tuple[str, bytes]]:
    for content in repository.files.values():
        yield from content.items()


@pytest.mark.long
def test_the_whole_is_read_once_and_in_order(hub: Hub, tmp_path: Path) -> None:
    hub.served.clear()
    (read,) = records(hub.url, tmp_path, {"hub": "toy/groups"})
    assert read["records"] == [row(number, 120_000) for number in range(250)]
    assert hub.served["groups.parquet"] < 36 * MB


@pytest.mark.long
def test_rows_are_those_that_the_client_itself_gives(hub: Hub, tmp_path: Path) -> None:
    client = """
import datasets, json, sys
for case in json.loads(sys.argv[1]):
    print(json.dumps({"records": list(datasets.load_dataset(case["hub"], split="test", streaming=True))}))
"""
    (ours,) = records(hub.url, tmp_path, {"hub": "toy/nested"})
    (theirs,) = loaded(hub.url, tmp_path, {"hub": "toy/nested"}, code=client)
    assert ours["records"] == theirs["records"] == NESTED + NESTED[::-1]


def test_what_other_files_hold_is_left_to_the_client(hub: Hub, tmp_path: Path) -> None:
    cells, elsewhere = records(hub.url, tmp_path, {"hub": "toy/cells"}, {"hub": "toy/nested", "split": "train"})
    assert cells["records"] == [{"number": 1, "text": "a"}, {"number": 2, "text": None}]
    assert "toy/nested cannot be read" in elsewhere["error"]
    assert "'test'" in elsewhere["error"]  # the splits that there are


def test_a_file_that_was_downloaded_is_not_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    download = """
import json, sys
from huggingface_hub import hf_hub_download
for case in json.loads(sys.argv[1]):
    hf_hub_download(case["hub"], case["hub_files"][0], repo_type="dataset")
"""
    plain = {"hub": "toy/plain", "hub_files": ["plain.jsonl"], "size": 1}
    loaded(hub.url, tmp_path, plain, code=download)
    hub.served.clear()
    (read,) = records(hub.url, tmp_path, plain)
    assert [record["number"] for record in read["records"]] == [0]
    assert "plain.jsonl" not in hub.served


def test_what_fails_on_the_way_is_told_from_what_is_wrong_in_a_file(hub: Hub, tmp_path: Path) -> None:
    broken, kept, kept_lines, absent = records(
        hub.url,
        tmp_path,
        {"hub": "toy/broken"},
        {"hub": "toy/kept"},
        {"hub": "toy/refused-lines", "hub_files": ["kept.jsonl"]},
        {"hub": "toy/plain", "hub_files": ["absent.jsonl"]},
    )
    assert "broken.parquet: broken parquet file" in broken["error"]
    assert "toy is gated: accept its terms" in kept["error"]
    assert "toy is gated: accept its terms" in kept_lines["error"]
    assert "absent.jsonl" in absent["error"]
