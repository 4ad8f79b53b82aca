"""How much of a context a compressor may keep: a share of its tokens, or a number of them."""

from __future__ import annotations

from context_bench.errors import UsageError
from context_bench.utils.tokens import count_tokens, current_tokenizer

__all__ = ["Budget"]


class Budget:
    """Either `ratio` (the share of tokens that is kept) or `budget` (their number)."""

    def __init__(self, ratio: float | None, budget: int | None, default_ratio: float = 0.5) -> None:
        if ratio is not None and budget is not None:
            raise UsageError("give a ratio or a budget, not both")
        if ratio is not None and not (_is_number(ratio) and 0 <= ratio <= 1):
            raise UsageError(f"ratio must be the share of tokens that is kept, from 0 to 1 (got {ratio!r})")
        if budget is not None and not (_is_number(budget) and budget >= 0 and float(budget).is_integer()):
            raise UsageError(f"budget must be a number of tokens (got {budget!r})")
        self.ratio = default_ratio if ratio is None and budget is None else ratio
        self.budget = None if budget is None else int(budget)

    def tokens(self, text: str) -> int:
        """How many tokens of this text may stay."""
        if self.budget is not None:
            return self.budget
        assert self.ratio is not None
        return int(count_tokens(text) * self.ratio)

    @property
    def fingerprint(self) -> str:
        """The settings that make two budgets differ; the tokenizer of this process is one of them."""
        size = f"budget={self.budget}" if self.budget is not None else f"ratio={self.ratio}"
        tokenizer = current_tokenizer()
        return f"{size} {tokenizer if isinstance(tokenizer, str) else id(tokenizer)}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
