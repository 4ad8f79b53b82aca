"""Answers compared by the words they share, after SQuAD v1.1.

Text is lower-cased, stripped of punctuation and of the articles a, an and the. AnswerQuality scores with these; they
can be called on two texts as well.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLE_WORDS = frozenset({"a", "an", "the"})
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_PIECE = 200_000
"""Characters that are normalised in one go."""
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Return a text in lower case, without punctuation and articles, with single spaces."""
    return " ".join(split_normalized(text))


def split_normalized(text: str) -> list[str]:
    """Return the words of the normalised text."""
    if len(text) <= _PIECE:
        return _normalize_words(text)
    known: dict[str, str] = {}  # each word once: those of a reply of megabytes would take ten times its room
    return [known.setdefault(word, word) for piece in _cut(text) for word in _normalize_words(piece)]


def _cut(text: str) -> Iterator[str]:
    """Yield a long text in pieces that end before a space: one call on all of it would stop every other thread."""
    start = 0
    while (end := text.find(" ", start + _PIECE)) >= 0:
        yield text[start:end]
        start = end
    yield text[start:]


def _normalize_words(text: str) -> list[str]:
    plain = text.lower().translate(_WITHOUT_PUNCTUATION)
    # Words then end at spaces only: no need to search for them.
    if plain.isascii() and (plain.isprintable() or not _CONTROL.search(plain)):
        return [word for word in plain.split() if word not in _ARTICLE_WORDS]
    return _ARTICLES.sub(" ", plain).split()


def token_f1(prediction: list[str], gold: list[str]) -> tuple[float, float]:
    """Return F1 and recall of two bags of words."""
    left: dict[str, int] = {}
    for word in gold:
        left[word] = left.get(word, 0) + 1
    common = 0
    for word in prediction:
        if left.get(word):
            left[word] -= 1
            common += 1
    if not common:
        return 0.0, 0.0
    precision, recall = common / len(prediction), common / len(gold)
    return 2 * precision * recall / (precision + recall), recall


def f1_score(prediction: str, reference: str) -> float:
    """Return the F1 of the words of two texts."""
    return token_f1(split_normalized(prediction), split_normalized(reference))[0]


def recall_score(prediction: str, reference: str) -> float:
    """Return the share of the reference's words that the prediction has."""
    return token_f1(split_normalized(prediction), split_normalized(reference))[1]


def exact_match(prediction: str, reference: str) -> float:
    """Return 1.0 when both texts are the same after normalisation, else 0.0."""
    return float(split_normalized(prediction) == split_normalized(reference))
