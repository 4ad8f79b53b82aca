"""Runs give what they gave when the corpus was recorded: rows, scores, summaries, verdicts, texts and exit codes.

After a change that is meant, record those runs anew: python -m tests.corpus WORDS OF THEIR NAMES
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from corpus.bench import Absent, make_run
from corpus.record import RUNS, describe_difference, load_record

ARGPARSE = {"help of the program", "help of the commands"}
"""Another Python words these in another way."""


@cache
def record() -> dict[str, Any]:
    return load_record()


def test_every_run_is_recorded() -> None:
    assert set(record()) == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_what_was_recorded(name: str, tmp_path: Path) -> None:
    if name in ARGPARSE and sys.version_info[:2] != (3, 11):
        pytest.skip("recorded with Python 3.11, whose argparse writes help in its own way")
    try:
        made = make_run(name, tmp_path.resolve())
    except Absent as absent:
        pytest.skip(str(absent))
    differs = describe_difference(record()[name], made)
    assert not differs, f"{name} differs from the record:\n{differs}"
