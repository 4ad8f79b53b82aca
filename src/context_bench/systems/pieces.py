"""A context in pieces that can be kept or dropped whole: sentences of prose, lines of anything else.

The pieces joined give the context back, so that whatever is kept stands as it stood before.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

from context_bench.utils.tokens import get_tokenizer

__all__ = ["pick", "split"]

# After the end of a sentence or a line, with the white space that follows it. A long line of JSON on its
# own is cut after the members of its outer structure as well.
_END = re.compile(r"(?<=[.!?。！？])[\"'”’)\]]*\s+|\n+|(?<=[}\]\"]),\s*")


def split(text: str) -> list[str]:
    """Cut a text into pieces; their concatenation is the text."""
    pieces, start = [], 0
    for match in _END.finditer(text):
        if match.end() > start:
            pieces.append(text[start : match.end()])
            start = match.end()
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def pick(pieces: list[str], order: Iterable[int], tokens: int) -> str:
    """Take pieces in the given order of preference while they fit, and put them back in their own order."""
    count = get_tokenizer()
    kept, left = [], tokens
    for index in order:
        cost = count(pieces[index])
        if cost <= left:
            kept.append(index)
            left -= cost
    return "".join(pieces[index] for index in sorted(kept))


def shuffled(count: int, seed: str) -> list[int]:
    """The numbers below `count` in an order that depends on the seed alone."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order
