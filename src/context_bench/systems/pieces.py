"""A context in pieces that can be kept or dropped whole: sentences of prose, lines of anything else.

The pieces joined give the context back, so that whatever is kept stands as it stood before.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

from context_bench.utils.tokens import get_tokenizer

__all__ = ["pick", "split"]

# After a sentence, a line, or a member of a JSON structure on one long line. Line ends stay with what they
# end and spaces with what they precede, as tokenizers have it: the pieces then cost what their text costs.
_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*(?=[ \t]+\S)|(?<=[。！？])(?![。！？])[”’」』）]*\n*|\n+|(?<=[}\]\"]),\n*")


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
    whole = "".join(pieces)
    if count(whole) <= tokens:
        return whole
    kept, left = [], tokens
    for index in order:
        cost = count(pieces[index])
        if cost <= left:
            kept.append(index)
            left -= cost
    # Side by side, pieces may have a token more than one by one: the last to come goes first.
    while count(text := "".join(pieces[index] for index in sorted(kept))) > tokens:
        kept.pop()
    return text


def shuffle_indices(count: int, seed: str) -> list[int]:
    """The numbers below `count` in an order that depends on the seed alone."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return order
