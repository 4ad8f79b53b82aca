"""Patches by the files that they change, with values worked out by hand."""

from __future__ import annotations

import time

import pytest

from banks import each_case
from context_bench.evaluators import PatchFiles
from context_bench.evaluators.code import find_named_files, find_patched_files

SCORER = PatchFiles()


def diff(*paths: str) -> str:
    return "".join(f"diff --git a/{p} b/{p}\n--- a/{p}\n+++ b/{p}\n@@ -1 +1 @@\n-old\n+new\n" for p in paths)


def score(gold: str, response: str | None) -> tuple[float, ...]:
    return tuple(SCORER.score({"answer": gold}, {"response": response}).values())


@each_case(
    ("response", "expected"),
    [
        (diff("lib/b.py", "c.py"), (1.0, 1.0, 1.0)),
        (f"Here it is:\n```diff\n{diff('lib/b.py', 'c.py')}```\nSee docs/other.md.", (1.0, 1.0, 1.0)),
        (diff("lib/b.py"), (0.5, 1.0, 2 / 3)),
        (diff("lib/b.py", "x.py", "y.py"), (0.5, 1 / 3, 2 / 5)),
        (diff("b.py"), (0.0, 0.0, 0.0)),
        ("Change lib/b.py and `c.py`.", (1.0, 1.0, 1.0)),
        ("Only lib/b.py, as in x.py:12 says.", (0.5, 0.5, 0.5)),
        ("--- lib/b.py\n+++ lib/b.py\n@@ -1 +1 @@\n-x\n+y\n", (0.5, 1.0, 2 / 3)),
        ("--- a/lib/b.py\t2020\n+++ b/lib/b.py\t2021\n@@ -1 +1 @@\n-x\n+y\n", (0.5, 1.0, 2 / 3)),
        ("<think>x.py</think>c.py", (0.5, 1.0, 2 / 3)),
        ("I do not know.", (0.0, 0.0, 0.0)),
        ("", (0.0, 0.0, 0.0)),
        (None, (0.0, 0.0, 0.0)),
    ],
)
def test_by_hand(response: str | None, expected: tuple[float, ...]) -> None:
    assert score(diff("lib/b.py", "c.py"), response) == pytest.approx(expected)


def test_files_of_a_diff() -> None:
    assert find_patched_files("--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n") == {"new.py"}
    assert find_patched_files("diff --git a/old name.py b/new name.py\nsimilarity index 100%\n") == {
        "old name.py",
        "new name.py",
    }
    assert find_patched_files(diff("q.sql").replace("-old", "--- a comment")) == {"q.sql"}
    assert find_patched_files("no diff: a -> b") == set()


def test_files_that_are_named() -> None:
    text = "In `src/app/main.py`, (lib/x.c) and tests/test_it.py; see setup.cfg, v1.2, https://x.org/a.py, etc."
    assert find_named_files(text) >= {"src/app/main.py", "lib/x.c", "tests/test_it.py", "setup.cfg"}
    assert not {"1.2", "v1.2", "etc", "a.py", "x.org/a.py"} & find_named_files(text)


def test_the_best_of_several_gold_patches() -> None:
    example = {"answers": [diff("a.py", "b.py"), diff("c.py")]}
    assert SCORER.score(example, {"response": diff("c.py")})["patch_file_f1"] == 1.0


def test_a_gold_that_is_no_patch() -> None:
    assert SCORER.score({"answer": "42"}, {"response": "a.py"}).reason == "no gold patch"  # type: ignore[attr-defined]


def test_long_replies_take_no_time() -> None:
    started = time.process_time()
    for text in ("a/" * 200_000, "diff --git a/" * 50_000, "--- a\n" * 100_000, "a." * 200_000, "-" * 400_000):
        score(diff("a.py"), text)
    assert time.process_time() - started < 5
