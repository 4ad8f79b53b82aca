"""A bug in a user's function: the row says where, the report too, and the debugger opens there."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command import called, environment
from context_bench import evaluate
from context_bench.errors import BadOutput
from context_bench.systems import OpenAIProxy, WithReader
from servers import Server, completion

BUG = """
def helper(example):
    return example["contxt"][:3]

def buggy(example):
    if example["id"] < 2:
        return example["context"]
    return helper(example)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(BUG)
    (tmp_path / "d.jsonl").write_text(
        "".join(f'{{"id": {n}, "context": "some words", "answer": "words"}}\n' for n in range(5))
    )
    return tmp_path


def fails(example: dict[str, Any]) -> str:
    return _deeper(example)


def _deeper(example: dict[str, Any]) -> str:
    raise KeyError("contxt")


def test_the_row_keeps_the_frames_of_the_user_s_code() -> None:
    (row,) = evaluate(fails, [{"id": 1, "context": "c"}], progress=False).rows
    assert row.error == "KeyError: 'contxt'"
    outer, inner = row.metadata["traceback"]
    assert outer.startswith(f"{__file__}:")
    assert outer.endswith("in fails: return _deeper(example)")
    assert inner.endswith('in _deeper: raise KeyError("contxt")')


def test_an_asynchronous_function_and_a_compressor_with_a_reader_too() -> None:
    async def waits(example: dict[str, Any]) -> str:
        return _deeper(example)

    (row,) = evaluate(waits, [{"id": 1, "context": "c"}], progress=False).rows
    assert [frame.rpartition(" in ")[2] for frame in row.metadata["traceback"]] == [
        "waits: return _deeper(example)",
        '_deeper: raise KeyError("contxt")',
    ]
    with Server(completion()) as server:
        (row,) = evaluate(WithReader(fails, OpenAIProxy(server.url)), [{"id": 1, "context": "c"}], progress=False).rows
    assert row.metadata["traceback"][-1].endswith('in _deeper: raise KeyError("contxt")')


def test_an_evaluator_s_bug_is_kept_beside_the_reason() -> None:
    def judge(original: dict[str, Any], processed: dict[str, Any]) -> float:
        return len(processed["contxt"])

    with pytest.warns(UserWarning, match="KeyError: 'contxt'"):
        (row,) = evaluate("passthrough", [{"id": 1, "context": "c", "answer": "c"}], [judge], progress=False).rows
    assert row.metadata["judge"]["traceback"][-1].endswith('in judge: return len(processed["contxt"])')


def test_what_we_say_on_purpose_has_no_traceback() -> None:
    def returns_nothing(example: dict[str, Any]) -> None:
        return None

    (row,) = evaluate(returns_nothing, [{"id": 1, "context": "c"}], progress=False).rows
    assert row.error is not None
    assert row.error.startswith(BadOutput.__name__)
    assert "traceback" not in row.metadata


def test_the_report_names_file_line_and_example(folder: Path) -> None:
    run = ("--system", "mine.py:buggy", "--dataset", "d.jsonl")
    done = called(*run, cwd=folder)
    assert done.returncode == 3
    first = f"first: KeyError: 'contxt' at {folder}/mine.py:3 in helper (example 2)"
    assert f"mine.py:buggy: 3 of 5 failed, {first}" in done.stderr
    assert "in buggy" not in done.stderr
    assert "mine.py:8 in buggy: return helper(example)" in called(*run, "--verbose", cwd=folder).stderr
    shown = called("diff", "last", "2", cwd=folder).stdout
    assert "mine.py:8 in buggy: return helper(example)" in shown
    assert 'mine.py:3 in helper: return example["contxt"][:3]' in shown
    document = json.loads(called(*run, "--output", "json", cwd=folder).stdout)
    assert len(document["rows"][2]["metadata"]["traceback"]) == 2


def test_the_debugger_opens_in_the_frame_that_raised(folder: Path) -> None:
    command = [sys.executable, "-m", "context_bench", "--system", "mine.py:buggy", "--dataset", "d.jsonl", "--pdb"]
    terminal, inside = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stdin=inside, stdout=inside, stderr=inside, env=environment())
    os.close(inside)
    said = _read_until(terminal, b"(Pdb)")
    assert b'return example["contxt"][:3]' in said
    os.write(terminal, b"p 'example', example['id']\n")
    assert b"('example', 2)" in _read_until(terminal, b"(Pdb)")
    os.write(terminal, b"q\n")
    rest = _read_until(terminal, b"recorded as run")
    assert b"stopped early: mine.py:buggy raised KeyError" in rest
    assert process.wait(30) == 3
    os.close(terminal)
    assert '"rows"' in called("runs", "export", "last", "--output", "json", cwd=folder).stdout  # what was done is kept


def _read_until(terminal: int, mark: bytes) -> bytes:
    said, until = b"", time.monotonic() + 60
    while mark not in said and time.monotonic() < until:
        try:
            said += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    assert mark in said, said
    return said
