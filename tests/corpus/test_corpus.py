"""Runs give what they gave when the corpus was recorded: rows, scores, summaries, verdicts, texts and exit codes.

After a change that is meant, record those runs anew: python -m tests.corpus WORDS OF THEIR NAMES
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from corpus.bench import Absent, make_run
from corpus.record import RUNS, describe_difference, load_record


@cache
def record() -> dict[str, Any]:
    return load_record()


def test_every_run_is_recorded() -> None:
    assert set(record()) == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_gives_what_was_recorded(name: str, tmp_path: Path) -> None:
    try:
        made = make_run(name, tmp_path.resolve())
    except Absent as absent:
        pytest.skip(str(absent))
    if not platform.python_version().startswith("3.11."):
        pytest.skip(
            "it runs, but was recorded with Python 3.11: another one words help differently, and is named in reports"
        )
    differs = describe_difference(record()[name], made)
    assert not differs, f"{name} differs from the record:\n{differs}"
