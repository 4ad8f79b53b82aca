"""The hub's own client, end to end, against a hub on loopback: streaming, revisions, terms to accept, no server."""

from __future__ import annotations

import io
import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hub import Hub, serve_hub
from hub_client import LOADING, bench, environment, loaded
from later import Later
from terminal import bench_on_terminal

Later("datasets", "needs the extra `datasets`")
pyarrow = Later("pyarrow")

README = b"""---
configs:
- config_name: distractor
  data_files:
  - split: validation
    path: distractor/validation-*
---
"""


def _record(number: int, size: int = 3000) -> dict[str, Any]:
    noise = random.Random(number).randbytes(size).hex()  # cannot be compressed much
    return {
        "id": f"q{number}",
        "question": f"Which town is number {number}?",
        "answer": "Bern",
        "type": "bridge",
        "level": "easy",
        "supporting_facts": {"title": ["Town"], "sent_id": [1]},
        "context": {"title": ["Town", "Noise"], "sentences": [["A town.", " It is Bern."], [noise]]},
    }


def _shard(start: int, end: int) -> bytes:
    import pyarrow.parquet as parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([_record(number) for number in range(start, end)]), out)
    return out.getvalue()


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    shards = {f"distractor/validation-0000{k}-of-00003.parquet": _shard(200 * k, 200 * k + 200) for k in range(3)}
    early = {"README.md": README, "distractor/validation-00000-of-00001.parquet": _shard(900, 902)}
    claims = b"".join(json.dumps({"id": f"2hop__{number}", **_musique(number)}).encode() + b"\n" for number in range(3))
    with serve_hub() as hub:
        hub.add("hotpotqa/hotpot_qa", {"README.md": README, **shards}, early=early)
        hub.add("bdsaglam/musique", {"musique_ans_v1.0_dev.jsonl": claims})
        hub.add("Idavidrein/gpqa", {"README.md": b"", "gpqa_diamond.csv": b"Question\nx\n"}, gated=True)
        yield hub


def _musique(number: int) -> dict[str, Any]:
    paragraph = {"idx": 0, "title": "T", "paragraph_text": f"Fact {number}.", "is_supporting": True}
    more = {"question_decomposition": [], "answer_aliases": [], "answerable": True}
    return {"paragraphs": [paragraph], "question": "What?", "answer": f"Fact {number}", **more}


RUN = ("--system", "oracle", "--dataset", "hotpotqa", "--score-field", "evidence_recall", "--output", "json")


def test_a_few_examples_of_a_large_set_read_little_and_record_the_revision(hub: Hub, tmp_path: Path) -> None:
    hub.requests.clear()
    hub.served.clear()
    done = bench(hub.url, tmp_path, *RUN, "-n", "3", "--no-store")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [row["example_id"] for row in result["rows"]] == ["q0", "q1", "q2"]
    assert result["summary"]["oracle"]["mean_score"] == 1.0
    commit = hub.repositories["hotpotqa/hotpot_qa"].branches["main"]
    assert result["config"]["sources"] == {"hotpotqa": {"hub": "hotpotqa/hotpot_qa", "revision": commit}}
    assert not any("00001-of" in path or "00002-of" in path for path in hub.served)
    # What is read is read at the commit that is recorded, whatever main points at by then.
    assert all(commit in request for request in hub.requests if "/resolve/" in request)


def test_revisions_files_and_terms(hub: Hub, tmp_path: Path) -> None:
    pinned, wrong, files, gated, sampled = loaded(
        hub.url,
        tmp_path,
        {"name": "hotpotqa", "revision": "early"},
        {"name": "hotpotqa", "revision": "nowhere"},
        {"name": "musique"},
        {"name": "gpqa"},
        {"name": "hotpotqa", "sample": "random", "n": 2, "seed": 1},
    )
    early = hub.repositories["hotpotqa/hotpot_qa"].branches["early"]
    assert pinned["ids"] == ["q900", "q901"]
    assert pinned["source"] == {"hub": "hotpotqa/hotpot_qa", "revision": early, "asked_revision": "early"}
    assert wrong == {"error": "DataError: hotpotqa: hotpotqa/hotpot_qa has no revision 'nowhere'"}
    assert files["ids"] == ["2hop__0", "2hop__1", "2hop__2"]
    assert "gpqa is gated: accept its terms on huggingface.co/datasets/Idavidrein/gpqa" in gated["error"]
    assert "hf auth login" in gated["error"]
    assert len(sampled["ids"]) == 2


def test_what_was_fetched_loads_without_a_network(hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    done = bench(hub.url, tmp_path, "datasets", "fetch", "hotpotqa", "musique", "-n", "2", "--to", str(folder))
    assert done.returncode == 0, done.stderr
    table, files = loaded(
        "http://127.0.0.1:9",
        tmp_path,
        {"name": "hotpotqa", "data_dir": str(folder)},
        {"name": "musique", "data_dir": str(folder)},
    )
    assert table["ids"] == ["q0", "q1"]
    assert table["source"]["revision"] == hub.repositories["hotpotqa/hotpot_qa"].branches["main"]
    assert list(table["source"]["files"]) == ["distractor/validation.jsonl"]
    assert files["ids"] == ["2hop__0", "2hop__1", "2hop__2"]  # files are fetched whole


def test_without_a_server_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        done = bench(f"http://127.0.0.1:{taken.getsockname()[1]}", tmp_path, *RUN, "-n", "3")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "hotpotqa: the hub cannot be reached" in done.stderr
    assert "context-bench datasets fetch hotpotqa --to DIR" in done.stderr


def test_without_the_extra_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['huggingface_hub'] = sys.modules['datasets'] = None\n" + LOADING
    command = [sys.executable, "-c", code, json.dumps([{"name": "hotpotqa"}])]
    done = subprocess.run(
        command, env=environment("", tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert "pip install 'ctxbench[datasets]'" in json.loads(done.stdout)["error"]


@pytest.mark.long
def test_a_stream_that_is_left_early_does_not_take_the_program_down(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    out = io.BytesIO()
    table = pyarrow.Table.from_pylist([_record(number, 60_000) for number in range(400)])
    parquet.write_table(table, out, row_group_size=50)
    with serve_hub() as large:
        shard = {"distractor/validation-00000-of-00001.parquet": out.getvalue()}
        large.add("hotpotqa/hotpot_qa", {"README.md": README, **shard})
        done = bench(large.url, tmp_path, *RUN, "-n", "3", "--no-store")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["rows"]) == 3


@pytest.mark.long
def test_a_fetch_says_how_far_it_is(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "delay", 0.7)  # what takes less than a second is not told
    run = bench_on_terminal(
        "datasets", "fetch", "hotpotqa", "--to", "records", cwd=tmp_path, env=environment(hub.url, tmp_path)
    )
    run.wait_for("fetching hotpotqa: ")
    assert run.finish() == 0
    last = run.shown.strip().splitlines()[-1]
    assert last.rpartition("\x1b[2K")[2] == "records/hotpotqa/distractor/validation.jsonl"
