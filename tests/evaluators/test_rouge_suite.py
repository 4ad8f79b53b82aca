"""The other ROUGE scores, by hand; `test_rouge` compares them with the reference implementation."""

from __future__ import annotations

import pytest

from context_bench.evaluators import RougeSuite

SCORER = RougeSuite()


def test_by_hand() -> None:
    # Words shared: the, cat, sat = 3 of 3 and 3 of 4. Pairs shared: "the cat" = 1 of 2 and 1 of 3.
    scores = SCORER.score({"answer": "the cat has sat"}, {"response": "the cat sat"})
    assert scores == pytest.approx({"rouge_1_f1": 6 / 7, "rouge_2_f1": 2 / 5, "rouge_lsum_f1": 6 / 7})


def test_sentences_may_change_places() -> None:
    scores = SCORER.score({"answer": "one two\nthree four"}, {"response": "three four\none two"})
    assert scores["rouge_lsum_f1"] == 1.0
    assert scores["rouge_1_f1"] == 1.0
    assert scores["rouge_2_f1"] == pytest.approx(2 / 3)


def test_each_score_takes_its_best_reference() -> None:
    # The first reference shares more words, the second the pair "b c".
    scores = SCORER.score({"answers": ["c b a", "b c x y"]}, {"response": "a b c"})
    assert scores["rouge_1_f1"] == 1.0
    assert scores["rouge_2_f1"] == pytest.approx(2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3))


def test_nothing_given_and_nothing_wanted() -> None:
    assert SCORER.score({"answer": "x"}, {}) == {"rouge_1_f1": 0.0, "rouge_2_f1": 0.0, "rouge_lsum_f1": 0.0}
    assert SCORER.score({}, {"response": "x"}).reason == "no reference summary"  # type: ignore[attr-defined]
