"""AnswerQuality against an independent SQuAD v1.1 scorer, and what it adds to it."""

from __future__ import annotations

import random
import re
import string
from collections import Counter
from typing import Any

import pytest

from context_bench.evaluators import AnswerQuality
from context_bench.text.golds import normalize_answer


def _score(answer: Any, response: Any) -> dict[str, float]:
    return AnswerQuality().score({"answer": answer}, {"response": response})


# --- SQuAD v1.1 as published: written step by step, sharing no code with the package


def squad_words(text: str) -> list[str]:
    lowered = text.lower()
    without_punctuation = "".join(char for char in lowered if char not in set(string.punctuation))
    without_articles = re.sub(r"\b(a|an|the)\b", " ", without_punctuation)
    return without_articles.split()


def squad_exact(prediction: str, gold: str) -> float:
    return 1.0 if " ".join(squad_words(prediction)) == " ".join(squad_words(gold)) else 0.0


def squad_f1(prediction: str, gold: str) -> float:
    predicted, expected = squad_words(prediction), squad_words(gold)
    shared = sum(min(count, predicted.count(word)) for word, count in Counter(expected).items())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(predicted), shared / len(expected)
    return 2 * precision * recall / (precision + recall)


VOCABULARY = [
    *("a", "an", "the", "The", "A", "AN", "an'", "'a'", "(the)", "_a_", "the-cat", "theatre"),
    *("Paris", "paris,", "PARIS.", "New-York", "U.S.", "it's", "its", "co-op", "cooperative", "naïve", "“quoted”"),
    *("1,000", "1000", "3.5", "$5", "&", "@", "#", "`", "~", "\\", "/", "|", "<", ">", "'", '"', "-", "—", "–", "…"),
    *("ΑΘΗΝΑ", "straße", "STRASSE", "İstanbul", "ǅ", "東京", "東京。", "¿qué?", "ﬁne", "🍕", "a\u0301", "e\u0301"),
    *("\u00a0", "\u2003", "\u200b", "\u0130", "\ud800", "\x00", "\x1c", "\t"),
]


def _random_text(rng: random.Random) -> str:
    words = [rng.choice(VOCABULARY) for _ in range(rng.randint(0, 9))]
    return rng.choice([" ", "  ", "\n", "\t", "", " , "]).join(words)


def _pairs(count: int, seed: int) -> list[tuple[str, str]]:
    rng = random.Random(seed)
    pairs = []
    while len(pairs) < count:
        gold, prediction = _random_text(rng), _random_text(rng)
        if rng.random() < 0.3:
            prediction = gold.upper() if rng.random() < 0.5 else f"The {gold}."
        if squad_words(gold):  # a gold without words is the documented exception
            pairs.append((prediction, gold))
    return pairs


def test_f1_and_exact_match_equal_the_reference_on_thousands_of_pairs() -> None:
    pairs = _pairs(8000, seed=1)
    for prediction, gold in pairs:
        scores = _score(gold, prediction)
        assert scores["f1"] == squad_f1(prediction, gold), (prediction, gold)
        assert scores["exact_match"] == squad_exact(prediction, gold), (prediction, gold)
    exact = sum(squad_exact(*pair) for pair in pairs)
    assert 500 < exact < 7500  # the pairs are of both kinds


def test_the_best_over_all_accepted_answers_equals_the_reference() -> None:
    rng = random.Random(2)
    for _ in range(1500):
        golds = [gold for _, gold in _pairs(rng.randint(1, 4), rng.randrange(10**9))]
        prediction = _random_text(rng)
        scores = AnswerQuality().score({"answers": golds}, {"response": prediction})
        assert scores["f1"] == max(squad_f1(prediction, gold) for gold in golds)
        assert scores["exact_match"] == max(squad_exact(prediction, gold) for gold in golds)


# --- by hand


def test_the_sample_of_the_specification_is_exact() -> None:
    assert _score("Paris", "The capital is Paris.") == {"f1": 0.5, "exact_match": 0.0, "recall": 1.0, "contains": 1.0}


@pytest.mark.parametrize(
    ("answer", "response", "expected"),
    [
        ("the Eiffel Tower", "Eiffel tower!", (1.0, 1.0, 1.0, 1.0)),
        ("Paris", "London", (0.0, 0.0, 0.0, 0.0)),
        ("Paris", "", (0.0, 0.0, 0.0, 0.0)),
        ("Paris", None, (0.0, 0.0, 0.0, 0.0)),
        ("Paris", "the", (0.0, 0.0, 0.0, 0.0)),
        # 2 of 3 words shared on each side
        ("red green blue", "blue red black", (2 / 3, 0.0, 2 / 3, 0.0)),
        # repeated words count as often as both have them: 1 of 2 given, 1 of 3 wanted
        ("yes yes yes", "yes no", (2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3), 0.0, 1 / 3, 0.0)),
        ("art", "a party", (0.0, 0.0, 0.0, 1.0)),
        ("42", 42, (1.0, 1.0, 1.0, 1.0)),
    ],
)
def test_scores_by_hand(answer: str, response: Any, expected: tuple[float, ...]) -> None:
    assert tuple(_score(answer, response).values()) == pytest.approx(expected)


def test_a_missing_response_is_no_answer() -> None:
    assert AnswerQuality().score({"answer": "x"}, {}) == {"f1": 0.0, "exact_match": 0.0, "recall": 0.0, "contains": 0.0}


def test_each_score_is_the_best_over_the_answers_on_its_own() -> None:
    scores = AnswerQuality().score({"answers": ["new york city", "york"]}, {"response": "new york"})
    # f1: 2 of 2 and 2 of 3 -> 0.8 beats 1 of 2 and 1 of 1 -> 2/3; recall and contains come from "york"
    assert scores == pytest.approx({"f1": 0.8, "exact_match": 0.0, "recall": 1.0, "contains": 1.0})


@pytest.mark.parametrize("original", [{}, {"answer": None}, {"answer": ""}, {"answers": []}, {"answers": ["", None]}])
def test_without_a_gold_there_is_no_score_and_a_reason(original: dict[str, Any]) -> None:
    scores = AnswerQuality().score(original, {"response": "anything"})
    assert scores == {}
    assert scores.reason == "no gold answer"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("answer", "response", "value"),
    [("The", "the", 1.0), ("The", "", 0.0), ("the", "Paris", 0.0), ("?!", "...", 1.0), ("?!", "x", 0.0)],
)
def test_a_gold_without_words_is_judged_by_equality_alone(answer: str, response: str, value: float) -> None:
    assert set(_score(answer, response).values()) == {value}


# --- a gold in parts


def test_every_part_of_a_gold_has_to_be_contained() -> None:
    gold = ["red apple", "green pear"]
    assert _score(gold, "A green pear and a red apple.")["contains"] == 1.0
    assert _score(gold, "A green pear.")["contains"] == 0.0


def test_words_of_all_parts_make_up_f1_and_recall() -> None:
    scores = _score(["red", "green"], "red")
    assert scores == pytest.approx({"f1": 2 / 3, "exact_match": 0.0, "recall": 0.5, "contains": 0.0})


def test_alternatives_may_be_in_parts() -> None:
    scores = AnswerQuality().score({"answers": [["red", "green"], "both"]}, {"response": "both"})
    assert set(scores.values()) == {1.0}


def test_a_part_without_words_does_not_stand_in_the_way() -> None:
    assert _score(["the", "Paris"], "Paris") == {"f1": 1.0, "exact_match": 1.0, "recall": 1.0, "contains": 1.0}


# --- form


def test_what_normalising_does() -> None:
    assert normalize_answer("  The  Quick-Brown\tfox, an apple & a theatre! ") == "quickbrown fox apple theatre"


def test_every_score_lies_between_nought_and_one_and_is_declared() -> None:
    evaluator = AnswerQuality()
    for prediction, gold in _pairs(300, seed=3):
        scores = evaluator.score({"answer": gold}, {"response": prediction})
        assert tuple(scores) == evaluator.score_fields
        assert all(0.0 <= value <= 1.0 for value in scores.values())


def test_inputs_are_left_as_they_were() -> None:
    original, processed = {"answers": [["a", "b"], "c"]}, {"response": "a b"}
    AnswerQuality().score(original, processed)
    assert (original, processed) == ({"answers": [["a", "b"], "c"]}, {"response": "a b"})
