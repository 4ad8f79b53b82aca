"""Recordings that are damaged, hostile or of another shape: one clear sentence each, and what is sound is read."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import random
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.recordings import read_examples
from context_bench.errors import DataError
from context_bench.pricing import load_shipped_prices
from context_bench.traffic.overview import Overview
from context_bench.traffic.readers import Findings, packed, read_sessions, read_threads
from made_recordings import (
    CHAT,
    CHAT_REPLY,
    MADE,
    MESSAGES,
    MESSAGES_REPLY,
    PAYLOAD,
    RESPONSES,
    RESPONSES_REPLY,
    ROLLOUT,
    ROWS,
    SPEND_LOG,
    make_sample,
)

GOOD = json.dumps({"request": {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}}) + "\n"


def nest(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


ODD: list[Any] = [
    None,
    -1,
    1.5,
    True,
    "x",
    "²",
    "\ud800",
    [],
    {},
    [1],
    [None],
    [[]],
    {"x": 1},
    [{"type": []}],
    {"type": {}},
]
ODD += [float("nan"), float("inf"), 10**30, 10**400, 2**62, "9" * 400, "data: {", '{"messages":1}', [{"text": 5}]]
ODD += [nest(100), nest(300), nest(800)]
"""What may stand in any place of a record."""


def list_places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from list_places(value[key], (*at, key))


def put(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    changed = copy.deepcopy(document)
    held = changed
    for key in at[:-1]:
        held = held[key]
    held[at[-1]] = value
    return changed


LOG = [
    {"request": CHAT, "response": CHAT_REPLY, "status": 200},
    {"request": MESSAGES, "response": MESSAGES_REPLY, "headers": {"session_id": "x"}},
    {"request": RESPONSES, "response": RESPONSES_REPLY},
]
RECORDS: dict[str, list[Any]] = {
    "claude-code": ROWS,
    "codex": ROLLOUT,
    "litellm": [SPEND_LOG, PAYLOAD],
    "otel": [json.loads(MADE["otel"](1))],
    "api-log": LOG,
}
DOCUMENTS: dict[str, Any] = {
    **{name: json.loads(MADE[name](2)) for name in ("har", "swe-agent", "mini-swe-agent", "openhands", "tokbench")},
    "inspect": {"eval": {"run_id": "r"}, "samples": [make_sample()]},
}


def use(folder: Path) -> Findings:
    """Read a folder as `traffic show` and as `datasets import` do."""
    findings, overview = Findings(), Overview(load_shipped_prices())
    for session in read_sessions([folder], findings):
        overview.add(session)
    json.dumps(overview.as_dict())
    for _, example in read_examples([folder], answers=True):
        json.dumps(example)
    return findings


@pytest.mark.long
def test_a_field_of_another_type_costs_its_record_at_most(tmp_path: Path) -> None:
    chosen = random.Random(5)
    for name in (*RECORDS, *DOCUMENTS):
        document = RECORDS.get(name) or DOCUMENTS[name]
        cases = [(at, value) for at in list_places(document) if at for value in ODD]
        for at, value in chosen.sample(cases, 150):
            changed = put(document, at, value)
            text = "".join(json.dumps(each) + "\n" for each in changed) if name in RECORDS else json.dumps(changed)
            (tmp_path / "recording").write_text(text)
            (report,) = use(tmp_path).files
            assert report.format or report.reason, (name, at, value)


HOSTILE: dict[str, tuple[str, int, str]] = {
    "a number of 6,000 digits": ('{"n": ' + "9" * 6000 + "}", 2, ""),
    "too deep": (json.dumps(nest(400)), 2, "nested more than 150 levels deep"),
    "much too deep": ("[" * 100_000 + "]" * 100_000, 1, "the rest is not read"),
    "many damages": ('{"a" 1},\n' * 50_000 + "{}", 1, "damaged in 100 places"),
}
"""What stands in a list between two requests, how many of them are read, and what is said."""


def test_hostile_values_in_a_list_leave_those_around_them(tmp_path: Path) -> None:
    for name, (value, wanted, said) in HOSTILE.items():
        (tmp_path / "log").write_text(f"[\n{GOOD.strip()},\n{value},\n{GOOD.strip()}]")
        started = time.process_time()
        findings = Findings()
        assert sum(len(each.requests) for each in read_threads([tmp_path], findings)) == wanted, name
        assert said in " ".join(findings.files[0].skipped), name
        assert time.process_time() - started < 10, name


def write_zip(path: Path, **members: str) -> bytearray:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.jsonl", text)
    path.write_bytes(packed.getvalue())
    return bytearray(packed.getvalue())


def test_a_small_file_that_unpacks_to_much_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_FREE_UNPACKED", 1 << 20)
    much = GOOD + " " * (5 << 20)
    packings: dict[str, Callable[[Path], Any]] = {
        "gzip": lambda path: path.write_bytes(gzip.compress(much.encode())),
        "zip": lambda path: write_zip(path, a=GOOD, b=much, c=much),
        "cut zip": lambda path: path.write_bytes(write_zip(path, a=GOOD, b=much)[:-40]),
    }
    for name, pack in packings.items():
        pack(tmp_path / "log")
        findings = Findings()
        found = sum(len(each.requests) for each in read_threads([tmp_path], findings))
        assert found == (2 if name == "zip" else 1), name
        skipped = [reason for each in findings.files for reason in each.skipped]
        assert name == "cut zip" or any("compressed too strongly" in each for each in skipped), name


def test_an_archive_that_cannot_be_unpacked_says_why(tmp_path: Path) -> None:
    path = tmp_path / "log.zip"
    for offset, value, reason in ((8, 1, "is encrypted"), (10, 99, "compression method is not supported")):
        data = write_zip(path, log=GOOD)
        data[offset - 2] = data[data.find(b"PK\x01\x02") + offset] = value
        path.write_bytes(data)
        with pytest.raises(DataError, match=reason):
            list(read_threads([path]))


def test_folders_with_loops_pipes_and_no_text_are_read_through(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "loop").symlink_to("..")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "log again").symlink_to("log")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "noise").write_bytes(random.Random(1).randbytes(200_000))
    (tmp_path / "zeros").write_bytes(bytes(200_000))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "log").write_bytes(GOOD.replace("Why", "\xff").encode("latin-1"))
    findings = Findings()
    assert [len(each.requests) for each in read_threads([tmp_path], findings)] == [1]
    assert sorted(each.reason for each in findings.files) == ["", "no JSON", "no JSON", "no JSON"]
    assert len([*read_threads([tmp_path, tmp_path / "log", tmp_path])]) == 1
    with pytest.raises(DataError, match="a pipe or a device"):
        list(read_threads([tmp_path / "pipe"]))


def test_a_line_that_is_longer_than_a_record_may_be_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("text.formats", "traffic.readers.sources"):
        monkeypatch.setattr(f"context_bench.{module}.MAX_RECORD", 100_000)
    (tmp_path / "log").write_text(GOOD + '{"request": "' + "x" * 300_000 + '"}\n' + GOOD)
    (tmp_path / "log.har").write_text('{"log": {"entries": [' + "1," * 100_000 + "1]}}")
    findings = Findings()
    assert [len(each.requests) for each in read_threads([tmp_path], findings)] == [2]
    assert findings.files[0].lines == {"longer than 0 MB": [2]}
    assert findings.files[1].reason == "line 1: a record is longer than 0 MB; split it into smaller ones"
