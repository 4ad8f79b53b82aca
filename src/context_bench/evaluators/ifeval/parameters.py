"""The parameters of Punkt, the sentence splitter of NLTK, for one language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Parameters"]


@dataclass(frozen=True)
class Parameters:
    """Abbreviations without their last period, pairs of words that a period does not part, words that often start
    a sentence, and how each word was seen to be written (the flags are those of NLTK's data files).
    """

    abbreviations: frozenset[str]
    collocations: frozenset[tuple[str, str]] = frozenset()
    starters: frozenset[str] = frozenset()
    spelling: Mapping[str, int] = field(default_factory=dict)
