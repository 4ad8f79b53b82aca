"""ROUGE-N, ROUGE-L and ROUGE-Lsum, equal to the `rouge-score` package without its stemmer, and much faster.

Words are runs of a-z and 0-9 in the lower-cased text, so a text in another script has no words and scores 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rapidfuzz.distance import LCSseq

from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text, turn_answers

_TOKEN = re.compile(r"[a-z0-9]+")


class Rouge(NamedTuple):
    """Precision, recall, and the harmonic mean of both."""

    precision: float
    recall: float
    f1: float


def tokenize(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def _make_rouge(hits: int, predicted: int, wanted: int) -> Rouge:
    if not hits:
        return Rouge(0.0, 0.0, 0.0)
    precision, recall = hits / predicted, hits / wanted
    return Rouge(precision, recall, 2 * precision * recall / (precision + recall))


def rouge_l(prediction: Sequence[str], reference: Sequence[str]) -> Rouge:
    """Return ROUGE-L of two token lists: the longest common subsequence."""
    return _make_rouge(LCSseq.similarity(prediction, reference), len(prediction), len(reference))


def rouge_n(prediction: Sequence[str], reference: Sequence[str], n: int) -> Rouge:
    """Return ROUGE-N of two token lists: the n-grams that both have."""
    predicted, wanted = _count_ngrams(prediction, n), _count_ngrams(reference, n)
    return _make_rouge((predicted & wanted).total(), predicted.total(), wanted.total())


def _count_ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(n))))


def rouge_lsum(prediction: str, reference: str) -> Rouge:
    """Return ROUGE-Lsum of two texts with one sentence on each line.

    A word of the reference is a hit if it is in the common subsequence with any predicted sentence, at most as often as
    it occurs in either text.
    """
    predicted = [tokenize(line) for line in prediction.split("\n")]
    wanted = [tokenize(line) for line in reference.split("\n")]
    left = Counter(token for line in predicted for token in line)
    left &= Counter(token for line in wanted for token in line)
    hits = 0
    for line in wanted:
        own = set(line)
        union = {place for other in predicted if not own.isdisjoint(other) for place in _find_lcs_places(line, other)}
        for place in union:
            if left[line[place]] > 0:
                left[line[place]] -= 1
                hits += 1
    return _make_rouge(hits, sum(map(len, predicted)), sum(map(len, wanted)))


def lcs_rows(reference: Sequence[str], prediction: Sequence[str]) -> list[int]:
    """Return the table of the longest common subsequence, each row packed into the bits of one integer.

    Bit j of row i is set where the length for i + 1 tokens of the reference grows with token j of the
    prediction, so the length itself is a count of bits. A row costs a few integer operations.
    """
    places: dict[str, int] = {}
    for place, token in enumerate(prediction):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(prediction)) - 1
    flat, rows = full, []
    for token in reference:
        same = flat & places.get(token, 0)
        flat = (flat + same | flat - same) & full
        rows.append(full ^ flat)
    return rows


def _find_lcs_places(reference: Sequence[str], prediction: Sequence[str]) -> Iterator[int]:
    """Return the places in the reference of one longest common subsequence.

    If there are several, choose the same as `rouge-score`, because the union over sentences depends on it: walk back
    from the end, take equal words, and drop a word of the reference on a tie.
    """
    rows = lcs_rows(reference, prediction)
    i, j = len(reference), len(prediction)
    while i and j:
        if reference[i - 1] == prediction[j - 1]:
            yield i - 1
            i, j = i - 1, j - 1
        elif _read_length(rows, i - 1, j) < _read_length(rows, i, j):
            j -= 1
        else:
            i -= 1


def _read_length(rows: Sequence[int], i: int, j: int) -> int:
    return (rows[i - 1] & ((1 << j) - 1)).bit_count() if i else 0


class RougeSuite:
    """Scores `rouge_1_f1`, `rouge_2_f1` and `rouge_lsum_f1`, each the best over the references.

    ROUGE-Lsum takes each line as a sentence, as `rouge-score` does by default.
    """

    name = "rouge-suite"
    version = 2
    score_fields = ("rouge_1_f1", "rouge_2_f1", "rouge_lsum_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        references = ["\n".join(gold) for gold in gold_answers(original)]
        if not references:
            return Scores(reason="no reference summary")
        response = response_text(processed)
        tokens = tokenize(response)
        best = [0.0, 0.0, 0.0]
        for reference in references:
            wanted = tokenize(reference)
            rouges = (rouge_n(tokens, wanted, 1), rouge_n(tokens, wanted, 2), rouge_lsum(response, reference))
            best = [max(value, rouge.f1) for value, rouge in zip(best, rouges)]
        return Scores(dict(zip(self.score_fields, best)))


class SummarizationQuality:
    """Scores `rouge_l_precision`, `rouge_l_recall` and `rouge_l_f1`.

    With several references, all three scores come from the reference with the best F1, or the first of equals.
    """

    name = "summarization-quality"
    version = 2
    score_fields = ("rouge_l_precision", "rouge_l_recall", "rouge_l_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no reference summary")
        response = tokenize(response_text(processed))
        best = max((rouge_l(response, tokenize("\n".join(gold))) for gold in golds), key=lambda rouge: rouge.f1)
        return Scores(dict(zip(self.score_fields, best)))


class ReferenceOverlap:
    """Scores `reference_overlap`: ROUGE-L F1 with the `reference`.

    A `reference` that is a list has a text for each turn: each of the `turn_responses` is compared with the text of its
    turn, and the score is the mean over the turns that have a text.
    """

    name = "reference-overlap"
    version = 2
    score_fields = ("reference_overlap",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        reference = original.get("reference")
        references = [reference] if isinstance(reference, str) else list(reference or ())
        replies = turn_answers(processed) if len(references) > 1 else []
        if not replies:
            # One reply to a whole conversation answers its last turn.
            replies = [*[""] * (len(references) - 1), response_text(processed)]
        pairs = [(said, wanted) for said, wanted in zip([*replies, *[""] * len(references)], references) if wanted]
        tokens = [(tokenize(str(said or "")), tokenize(str(wanted))) for said, wanted in pairs]
        overlaps = [rouge_l(given, reference).f1 for given, reference in tokens if reference]
        if not overlaps:
            return Scores(reason="no reference")
        return Scores({"reference_overlap": sum(overlaps) / len(overlaps)})
