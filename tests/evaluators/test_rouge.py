"""ROUGE against the `rouge-score` package, and by hand."""

from __future__ import annotations

import random

import pytest

from context_bench.evaluators.rouge import Rouge, rouge_l, rouge_lsum, rouge_n, tokenize

ODD_TEXTS = [
    "",
    " ",
    "\n\n",
    "a",
    "A",
    "a a a a a",
    "a b a b a b",
    "the cat sat on the mat",
    "the cat\nsat on\nthe mat",
    "the mat\nthe cat sat on",
    "Über-café naïve 東京 résumé",
    "東京 大阪",
    "don't stop-it now_please 3.14",
    "...!?",
    "İstanbul ıI K",
    "one\n\n\ntwo\nthree one two",
]


def text(random_source: random.Random, words: int, vocabulary: int) -> str:
    parts = [
        f"w{random_source.randrange(vocabulary)}" + random_source.choice([" ", " ", " ", ", ", ".\n", "\n"])
        for _ in range(words)
    ]
    return "".join(parts)


def pairs() -> list[tuple[str, str]]:
    source = random.Random(7)
    odd = [(one, other) for one in ODD_TEXTS for other in ODD_TEXTS]
    drawn = [
        (text(source, source.randrange(60), vocabulary), text(source, source.randrange(60), vocabulary))
        for vocabulary in (2, 3, 5, 20, 100)
        for _ in range(60)
    ]
    return odd + drawn


def test_equals_rouge_score() -> None:
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed")
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL", "rougeLsum"], use_stemmer=False)
    for prediction, reference in pairs():
        theirs = scorer.score(reference, prediction)
        tokens, wanted = tokenize(prediction), tokenize(reference)
        ours = {
            "rouge1": rouge_n(tokens, wanted, 1),
            "rouge2": rouge_n(tokens, wanted, 2),
            "rougeL": rouge_l(tokens, wanted),
            "rougeLsum": rouge_lsum(prediction, reference),
        }
        for name, rouge in ours.items():
            assert tuple(rouge) == pytest.approx(tuple(theirs[name]), abs=1e-9), (name, prediction, reference)


def test_rouge_l_by_hand() -> None:
    # "police ... gunman" is the longest common subsequence: 3 of 4 words on either side.
    rouge = rouge_l(["police", "kill", "the", "gunman"], ["police", "killed", "the", "gunman"])
    assert rouge == Rouge(0.75, 0.75, 0.75)


def test_union_over_sentences_by_hand() -> None:
    # From Lin (2004): w1 w2 with the first sentence, w1 w3 w5 with the second; the union has 4 of 5 words.
    rouge = rouge_lsum("w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5")
    assert rouge.recall == pytest.approx(4 / 5)
    assert rouge.precision == pytest.approx(4 / 10)


def test_a_word_is_not_hit_twice() -> None:
    assert rouge_lsum("the", "the the\nthe").recall == pytest.approx(1 / 3)
