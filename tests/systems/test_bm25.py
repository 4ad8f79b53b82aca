"""BM25: keeps what shares words with the question."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench import count_tokens, evaluate
from context_bench.errors import UsageError
from context_bench.systems import BM25

FILLER = " ".join(f"Nothing of note happened on day {number}." for number in range(40))
CONTEXT = f"{FILLER} The secret code of the vault is 7781. {FILLER}"


def test_the_sentence_that_answers_is_kept() -> None:
    kept = BM25(ratio=0.1).process({"id": 1, "context": CONTEXT, "question": "What is the vault's secret code?"})[
        "context"
    ]
    assert "The secret code of the vault is 7781." in kept
    assert count_tokens(kept) <= count_tokens(CONTEXT) * 0.1


def test_the_question_decides() -> None:
    text = "Apples are red. Bananas are yellow. Cherries are dark."
    for fruit in ("Apples", "Bananas", "Cherries"):
        kept = BM25(budget=6).process({"id": 1, "context": text, "question": f"Which colour have {fruit.upper()}?"})
        assert kept["context"].strip().startswith(fruit)


def test_the_order_of_the_text_is_kept() -> None:
    text = "b is here. nothing there. a is here. nothing else. a and b."
    kept = BM25(ratio=0.7).process({"id": 1, "context": text, "question": "a b"})["context"]
    assert kept.index("b is") < kept.index("a is") < kept.index("a and b")


def test_without_a_question_the_last_user_turn_is_the_question() -> None:
    turns = [{"role": "user", "content": "apples"}, {"role": "assistant", "content": "bananas"}]
    turns.append({"role": "user", "content": "cherries"})
    example = {"id": 1, "context": "Apples red. Bananas yellow. Cherries dark.", "turns": turns}
    assert "Cherries" in BM25(budget=5).process(example)["context"]


def test_without_any_question_the_beginning_is_kept() -> None:
    assert BM25(budget=4).process({"id": 1, "context": "One two. Three four. Five six."})["context"] == "One two."


@pytest.mark.parametrize("context", ["", " ", "\n\n"])
def test_nothing_to_keep(context: str) -> None:
    assert BM25(budget=0).process({"id": 1, "context": context, "question": "x"}) == {"context": ""}


# --- documents


def _documents(*texts: str) -> list[dict[str, Any]]:
    return [{"id": f"d{place}", "text": text} for place, text in enumerate(texts)]


def _ranking(question: str, documents: list[dict[str, Any]], **parameters: Any) -> list[str]:
    example = {"id": 1, "context": "unused", "question": question, "documents": documents}
    result = BM25(**parameters).process(example)
    assert set(result) == {"documents"}
    return [item["id"] for item in result["documents"]]


def test_all_documents_come_back_best_first_and_equals_in_their_order() -> None:
    documents = _documents("nothing", "the blue whale", "something", "a whale")
    assert _ranking("blue whale", documents) == ["d1", "d3", "d0", "d2"]


def _okapi(query: list[str], texts: list[list[str]], k1: float, b: float) -> list[float]:
    """The formula, as in the literature, with the idf that cannot be negative."""
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for words in texts:
        score = 0.0
        for term in query:
            holding = sum(term in other for other in texts)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            often = words.count(term)
            if often:
                score += idf * (often * (k1 + 1) / (often + k1 * (1 - b + b * len(words) / mean)))
        scores.append(score)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (1.2, 0.0), (0.0, 0.5), (2.0, 1.0)])
def test_the_ranking_is_that_of_the_formula(k1: float, b: float) -> None:
    texts = ["x y", "x x x x z z z z z", "y y z", "x y z w v u t s", "q", "z x", "y " * 20 + "x"]
    scores = _okapi(["x", "y"], [text.split() for text in texts], k1, b)
    expected = sorted(range(len(texts)), key=lambda place: (-round(scores[place], 12), place))
    assert _ranking("x y", _documents(*texts), k1=k1, b=b) == [f"d{place}" for place in expected]


def test_a_title_counts_and_a_missing_one_does_not() -> None:
    documents = [{"id": "a", "text": "x", "title": None}, {"id": "b", "text": "x", "title": "None of these"}]
    assert _ranking("none", documents) == ["b", "a"]
    assert _ranking("none", list(reversed(documents))) == ["b", "a"]


@pytest.mark.parametrize("documents", [None, []])
def test_without_documents_the_context_is_compressed(documents: Any) -> None:
    example = {"id": 1, "context": "a b. c d.", "question": "c", "documents": documents}
    assert BM25(budget=3).process(example)["context"] == " c d."


def test_documents_are_handed_back_as_they_were() -> None:
    documents = [{"id": 1, "text": "x", "meta": {"source": "s"}}]
    assert BM25().process({"id": 1, "context": "x", "question": "x", "documents": documents}) == {
        "documents": documents
    }


@pytest.mark.parametrize(("k1", "b"), [(-1.0, 0.5), (1.0, 1.5), (1.0, -0.1)])
def test_wrong_parameters(k1: float, b: float) -> None:
    with pytest.raises(UsageError, match="b must be from 0 to 1 and k1 at least 0"):
        BM25(k1=k1, b=b)


def test_a_context_of_many_pieces_is_fast_and_other_scripts_work() -> None:
    text = "東京は日本の首都です。パリはフランスの首都です。ローマはイタリアの首都です。"
    kept = BM25(ratio=0.5).process({"id": 1, "context": text * 50, "question": "x"})["context"]
    assert 0 < count_tokens(kept) <= count_tokens(text * 50) * 0.5


def test_a_ratio_cuts_documents_too() -> None:
    # Three tokens each; three documents with two blank lines between them have 3 * 3 + 2 = 11.
    documents = _documents("red green blue", "blue whale song", "cold deep sea")
    count = {item["text"]: count_tokens(item["text"]) for item in documents}
    assert set(count.values()) == {3}
    whole = count_tokens("\n\n".join(count))
    assert whole == 11
    assert _ranking("blue whale", documents, ratio=0.4) == ["d1"]  # 4 tokens
    assert _ranking("blue whale", documents, ratio=0.65) == ["d1", "d0"]  # 7: two documents and a blank line
    assert _ranking("blue whale", documents, budget=6) == ["d1"]  # the blank line makes it 7
    assert _ranking("blue whale", documents, ratio=1.0) == ["d1", "d0", "d2"]
    assert _ranking("blue whale", documents, budget=2) == []


def test_a_document_that_does_not_fit_makes_room_for_the_next() -> None:
    documents = _documents("blue whale " + "song " * 40, "whale", "cold deep sea")
    assert _ranking("blue whale", documents, budget=6) == ["d1", "d2"]


def test_the_size_of_documents_is_part_of_the_fingerprint() -> None:
    assert BM25(ratio=0.5).fingerprint != BM25().fingerprint


def test_a_run_over_documents_keeps_the_share_that_was_asked_for() -> None:
    result = evaluate("bm25:ratio=0.3", "rerank:n=5", progress=False)
    assert 0.6 < result.summary["bm25:ratio=0.3"]["compression_ratio"] < 0.85
    whole = evaluate("bm25", "rerank:n=5", progress=False)
    assert whole.summary["bm25"]["compression_ratio"] == pytest.approx(0, abs=0.01)
