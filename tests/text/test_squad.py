"""Two texts compared by their words, with values worked out by hand."""

from __future__ import annotations

import tracemalloc

import pytest

import context_bench.text.golds
from context_bench.evaluators import AnswerQuality
from context_bench.metrics.quality import exact_match, f1_score, normalize_answer, recall_score


@pytest.mark.parametrize(
    ("prediction", "reference", "f1", "exact", "recall"),
    [
        ("Paris", "Paris", 1.0, 1.0, 1.0),
        ("The Eiffel Tower!", "eiffel tower", 1.0, 1.0, 1.0),
        ("in Paris, France", "Paris", 0.5, 0.0, 1.0),  # precision 1/3, recall 1
        ("Paris", "Paris in France", 0.5, 0.0, 1 / 3),
        ("a a b", "b b", 2 / 3, 0.0, 0.5),  # the articles go: precision 1/1, recall 1/2
        ("Rome", "Paris", 0.0, 0.0, 0.0),
        ("", "Paris", 0.0, 0.0, 0.0),
        ("Paris", "", 0.0, 0.0, 0.0),
        ("", "", 0.0, 1.0, 0.0),
    ],
)
def test_two_texts(prediction: str, reference: str, f1: float, exact: float, recall: float) -> None:
    assert f1_score(prediction, reference) == pytest.approx(f1)
    assert exact_match(prediction, reference) == exact
    assert recall_score(prediction, reference) == pytest.approx(recall)


def test_normalised() -> None:
    assert normalize_answer("  The  Quick-Brown fox, an apple ") == "quickbrown fox apple"


def test_an_evaluator_that_is_built_on_them_agrees_with_ours() -> None:
    given, gold = "It is in Paris, France.", "Paris in France"
    scores = AnswerQuality().score({"answer": gold}, {"response": given})
    assert (scores["f1"], scores["exact_match"], scores["recall"]) == (
        f1_score(given, gold),
        exact_match(given, gold),
        recall_score(given, gold),
    )
    assert context_bench.text.golds.f1_score is f1_score


def test_a_long_text_has_the_same_words_as_its_parts() -> None:
    from context_bench.text.golds import split_normalized

    parts = ["The cat's", "a", "an,", "theme", "ΟΔΟΣ", "É", "x-y", "\x1c"]
    text = " ".join(parts[i * i % 8] for i in range(150_000))
    assert len(text) > 400_000  # so that it is taken in pieces
    assert split_normalized(text) == [word for part in text.split(" ") for word in split_normalized(part)]


def test_the_words_of_a_huge_text_take_little_more_room_than_the_text() -> None:
    text = "Line 3.4 says nothing of use. " * 100_000
    tracemalloc.start()
    try:
        words = context_bench.text.golds.split_normalized(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert words == ["line", "34", "says", "nothing", "of", "use"] * 100_000
    assert peak < 4 * len(text), "a text of its own for each word took twelve times as much"
