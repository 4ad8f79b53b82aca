"""The limit of open files, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="this system has no limit of open files")

CODE = """
import resource, warnings
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from context_bench.tap.open_files import allow_many_files
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    allow_many_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], *(warning.message for warning in told), sep="|")
"""


def outcome(soft: str, hard: str) -> list[str]:
    code = CODE.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip().split("|")


def test_it_is_raised_to_what_may_be_had() -> None:
    assert outcome("256", "min(most, 5000) if most > 0 else 5000") == ["5000"]


def test_too_low_a_limit_is_told() -> None:
    raised, warning = outcome("256", "1024")
    assert raised == "1024"
    assert warning.startswith("only 1024 files may be open at once")
