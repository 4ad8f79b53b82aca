"""Answers that a reply gives item by item: `(a) 4` on one line and `(b) 9` on the next."""

from __future__ import annotations

import re

from context_bench.evaluators.math.answer import final_answer
from context_bench.evaluators.math.notation import unwrap
from context_bench.text.markup import split_reasoning

__all__ = ["read_parts"]

_ITEM = re.compile(
    r"\s*(?:[-*\u2022]|\*{0,2}\(?(?:[a-h]|[ivx]{1,4}|\d)[.):]\)?\*{0,2}|\*{0,2}Part\s+(?:[A-Ha-h]|\d)\b[.:)]?\*{0,2})"
    r"\s+(?P<item>\S.*)"
)


def read_parts(reply: str, count: int) -> list[str]:
    """The answers of the items that the reply ends with; none where they are not `count`, or one has no answer."""
    lines = [line for line in split_reasoning(reply)[0][-4000:].splitlines() if line.strip()]
    found: list[str] = []
    for line in reversed(lines):
        item = _ITEM.fullmatch(line)
        if not item:
            break
        found.insert(0, unwrap(final_answer(item["item"])))
    return found if len(found) == count and all(found) else []
