"""Patches by the files that they change: does the reply go to the right places? Nothing is applied or run."""

from __future__ import annotations

import re
from typing import Any

from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

_GIT = re.compile(r"^diff --git a/(.+?) b/(.+)$", re.MULTILINE)
_SIDES = re.compile(r"^--- (?:a/)?([^\t\n]+)[^\n]*\n\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_PATH = re.compile(r"(?<![\w./:-])((?:[\w.+-]+/)+[\w.+-]*\w|[\w+-]+\.[A-Za-z]\w{0,5})(?![\w/])")
_MOST_TEXT = 400_000


def find_patched_files(text: str) -> set[str]:
    """Find the files in the headers of a diff; of a renamed one both names."""
    pairs = _GIT.findall(text) or _SIDES.findall(text)
    return {path.strip() for pair in pairs for path in pair} - {"/dev/null"}


def find_named_files(text: str) -> set[str]:
    """Find what looks like a path, for a reply that is not a diff."""
    return set(_PATH.findall(text[:_MOST_TEXT]))


class PatchFiles:
    """Scores `patch_file_recall`, `patch_file_precision` and `patch_file_f1`.

    The files of the gold patch against those of the reply: the headers of its diff, or without a diff the
    paths that it names. It says where a system would change the code, not whether the change is right. With
    several gold patches all three are those of the one with the best F1.
    """

    name = "patch-files"
    version = 2
    score_fields = ("patch_file_recall", "patch_file_precision", "patch_file_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [files for gold in gold_answers(original) if (files := find_patched_files("\n".join(gold)))]
        if not golds:
            return Scores(reason="no gold patch")
        response = response_text(processed)
        given = find_patched_files(response) or find_named_files(response)
        best = max((_score_overlap(given, gold) for gold in golds), key=lambda scores: scores[2])
        return Scores(dict(zip(self.score_fields, best)), details={"files": sorted(given)[:50]})


def _score_overlap(given: set[str], gold: set[str]) -> tuple[float, float, float]:
    hits = len(given & gold)
    if not hits:
        return 0.0, 0.0, 0.0
    return hits / len(gold), hits / len(given), 2 * hits / (len(gold) + len(given))
