"""The simplest compressor: cut."""

from __future__ import annotations

from collections.abc import Callable

from context_bench.errors import UsageError
from context_bench.systems.token_budget import Budget
from context_bench.types import Example
from context_bench.utils.tokens import get_tokenizer

__all__ = ["Truncate"]

_KEEPS = ("head", "tail", "middle")


class Truncate:
    """Keeps one stretch of the context and drops the rest.

    Args:
        ratio: The share of tokens that is kept (0.5 by default).
        budget: The number of tokens that is kept, instead of a share.
        keep: Which stretch: "head", "tail" or "middle".
    """

    reads_gold = False

    def __init__(self, ratio: float | None = None, budget: int | None = None, keep: str = "head") -> None:
        if keep not in _KEEPS:
            raise UsageError(f"keep must be {', '.join(_KEEPS[:-1])} or {_KEEPS[-1]} (got {keep!r})")
        self.budget = Budget(ratio, budget)
        self.keep = keep
        self.name = "truncate"

    @property
    def fingerprint(self) -> str:
        """The settings that make its output differ."""
        return f"truncate/1 keep={self.keep} {self.budget.fingerprint}"

    def process(self, example: Example) -> Example:
        """Return the stretch that fits."""
        text = example["context"]
        return {"context": longest(text, self.budget.tokens(text), _STRETCHES[self.keep])}


def longest(text: str, tokens: int, stretch: Callable[[str, int], str]) -> str:
    """The whole text, or about the longest stretch of it, that has no more than so many tokens.

    "About": half a word may have more tokens than the whole of it, so a search by halves can end a few
    characters early.
    """
    count = get_tokenizer()
    if count(text) <= tokens:
        return text
    low, high = 0, len(text)  # lengths in characters: `low` fits
    while low < high:
        middle = (low + high + 1) // 2
        if count(stretch(text, middle)) <= tokens:
            low = middle
        else:
            high = middle - 1
    return stretch(text, low)


def _middle(text: str, length: int) -> str:
    start = (len(text) - length) // 2
    return text[start : start + length]


_STRETCHES: dict[str, Callable[[str, int], str]] = {
    "head": lambda text, length: text[:length],
    "tail": lambda text, length: text[len(text) - length :],
    "middle": _middle,
}
