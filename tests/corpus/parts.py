"""Systems of a user, in a file of their own: what the runs of the corpus name as `parts.py:NAME`."""

from __future__ import annotations

import hashlib
from typing import Any


def _choose(example: dict[str, Any], of: int) -> int:
    return hashlib.sha256(str(example["id"]).encode()).digest()[0] % of


def _gold(example: dict[str, Any]) -> str:
    gold = example.get("answer")
    while isinstance(gold, (list, tuple)) and gold:
        gold = gold[0]
    return str(gold if gold not in (None, [], ()) else example.get("reference", ""))


def first_half(example: dict[str, Any]) -> str:
    """Keep the first half of the context."""
    return str(example["context"][: len(example["context"]) // 2])


def know(example: dict[str, Any]) -> dict[str, Any]:
    """Answer two examples of three with the gold."""
    return {**example, "response": _gold(example) if _choose(example, 3) else "I do not know."}


def know_less(example: dict[str, Any]) -> dict[str, Any]:
    """Answer one example of two with the gold, in a sentence and after some thought."""
    said = _gold(example) if _choose(example, 2) else "unknown"
    return {**example, "response": f"<think>Hm, what could it be?</think>The answer is {said}."}


def fail_often(example: dict[str, Any]) -> dict[str, Any]:
    """Fail on one example of four."""
    if not _choose(example, 4):
        raise ValueError("no idea")
    return know(example)


def fail_always(example: dict[str, Any]) -> dict[str, Any]:
    """Fail."""
    raise RuntimeError("out of order")


def answer_nothing(example: dict[str, Any]) -> None:
    """Return what is no output."""


class Telling:
    """Says what its answer cost."""

    name = "telling"
    fingerprint = "telling/1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        """Answer as `know`, with usage and metadata."""
        usage = {"prompt_tokens": 100 + _choose(example, 7), "completion_tokens": 5}
        return {**know(example), "metadata": {"api_usage": usage, "model": "gpt-4o-mini", "note": "told"}}


def reverse(example: dict[str, Any]) -> dict[str, Any]:
    """Put documents in the opposite order."""
    return {"documents": list(reversed(example["documents"]))}


def in_order(rows: list[Any]) -> dict[str, float]:
    """Count rows: no metric by itself."""
    return {"rows": float(len(rows))}


class Longest:
    """A metric of a user."""

    name = "longest"

    def compute(self, rows: list[Any]) -> dict[str, float]:
        """Give the largest output."""
        return {"longest": float(max((row.output_tokens for row in rows), default=0))}


class Polite:
    """An evaluator of a user."""

    name = "polite"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Look for a please."""
        return {"polite": float("please" in str(processed.get("response", processed.get("context", ""))))}
