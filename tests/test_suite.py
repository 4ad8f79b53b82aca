"""The test suite itself: it runs wherever it is started, and tries a test again only where that is explained."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from pages import ROOT
from timing import depends_on_time


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="sh and its trap")
def test_interrupts_are_heard_where_whoever_starts_the_suite_ignores_them() -> None:
    one = "tests/core/test_interrupt.py::test_twice_does_not_wait_for_a_system_that_hangs"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:cov", one]
    done = subprocess.run(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


def test_nothing_is_tried_again_as_a_rule() -> None:
    for name in (".ci/run", "Makefile", "pyproject.toml", "tools/wheel-test.sh"):
        assert "--reruns" not in (ROOT / name).read_text(encoding="utf-8"), name


def test_a_test_that_is_tried_again_has_a_reason() -> None:
    marked = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"mark\.flaky\(", path.read_text(encoding="utf-8"))
    ]
    assert marked == ["tests/timing.py"]
    assert depends_on_time("the promise is about the clock on the wall").mark.kwargs == {"reruns": 2, "reruns_delay": 1}
    with pytest.raises(ValueError, match="needs a reason"):
        depends_on_time("slow")
