"""A compressor that knows nothing: what is left by chance."""

from __future__ import annotations

from context_bench.systems.pieces import pick, shuffle_indices, split
from context_bench.systems.token_budget import Budget
from context_bench.types import Example

__all__ = ["RandomDrop"]


class RandomDrop:
    """Drops sentences or lines at random, the same ones for the same seed and example.

    Args:
        ratio: The share of tokens that is kept (0.5 by default).
        budget: The number of tokens that is kept, instead of a share.
        seed: Another seed drops other sentences.
    """

    reads_gold = False

    def __init__(self, ratio: float | None = None, budget: int | None = None, seed: int = 0) -> None:
        self.budget = Budget(ratio, budget)
        self.seed = seed
        self.name = "random-drop"

    @property
    def fingerprint(self) -> str:
        """The settings that make its output differ."""
        return f"random-drop/1 seed={self.seed} {self.budget.fingerprint}"

    def process(self, example: Example) -> Example:
        """Return what was not dropped, in its order."""
        text = example["context"]
        pieces = split(text)
        order = shuffle_indices(len(pieces), f"random-drop {self.seed} {example['id']!r}")
        return {"context": pick(pieces, order, self.budget.tokens(text))}
