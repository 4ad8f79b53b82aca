"""Equivalence by algebra, through math-verify. Runs in a worker process: it has no bounds of its own."""

from __future__ import annotations

import logging

__all__ = ["equivalent"]


def prepare() -> None:
    """Import what is slow to import and build the parser, before the clock runs."""
    logging.disable(logging.CRITICAL)
    equivalent("x", "x")


def equivalent(gold: str, answer: str) -> bool:
    """Whether math-verify finds two LaTeX expressions to be the same."""
    from math_verify import parse, verify

    parsed = [parse(f"${text}$", parsing_timeout=None) for text in (gold, answer)]
    return bool(all(parsed) and verify(*parsed, timeout_seconds=None))
