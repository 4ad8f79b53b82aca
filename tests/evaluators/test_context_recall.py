"""ContextRecall: what survived of the evidence, and in which order documents came back."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import ContextRecall
from context_bench.evaluators.evidence import score_ranking
from context_bench.text.evidence_state import NOT_IN_CONTEXT

CONTEXT = "Alice lives in Paris. Bob lives in Rome. The code is X-42."


def _score(original: dict[str, Any], **processed: Any) -> dict[str, float]:
    return ContextRecall().score({"context": CONTEXT, **original}, processed)


# --- evidence


@pytest.mark.parametrize(
    "span",
    ["Bob lives in Rome.", {"start": 22, "end": 40}, [22, 40], {"start": 0, "end": 1, "text": "Bob lives in Rome."}],
)
def test_evidence_in_every_form(span: Any) -> None:
    assert CONTEXT[22:40] == "Bob lives in Rome."
    assert _score({"evidence": [span]}, context="Bob lives in Rome.") == {"evidence_recall": 1.0}
    assert _score({"evidence": [span]}, context="Alice lives in Paris.") == {"evidence_recall": 0.0}


def test_recall_is_the_share_of_the_spans() -> None:
    evidence = ["Alice lives in Paris", "Bob lives in Rome", "code is X-42", "is X"]
    assert _score({"evidence": evidence}, context="Alice lives in Paris. Bob lives") == {"evidence_recall": 0.25}


def test_a_span_has_to_be_there_in_one_piece() -> None:
    assert _score({"evidence": ["Alice lives in Paris"]}, context="Alice in Paris lives")["evidence_recall"] == 0.0
    assert _score({"evidence": ["Alice lives in Paris"]}, context="Alice lives … in Paris")["evidence_recall"] == 1.0


@each_case(
    ("needle", "context", "found"),
    [
        ("cat", "concatenate", False),
        ("cat", "The CAT.", True),
        ("42", "1423 and 420", False),
        ("42", "(42)", True),
        ("X-42", "x 42", True),
        ("user_id", "user id", True),
        ("12", "1 2", False),
        ("東京", "私は東京に住む", True),
        ("東京", "京東", False),
        ("Straße", "STRASSE", True),
        ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
        ("की", "का", False),  # another vowel sign, another word
        ("काम", "यह काम है", True),
        ("مدرسة", "في مدرسة كبيرة", True),
        ("ภาษาไทย", "พูดภาษาไทยได้", True),
        ("Việt", "tiếng Việt", True),
    ],
)
def test_whole_words_in_any_script(needle: str, context: str, found: bool) -> None:
    original = {"context": f"{CONTEXT} {needle}"}
    assert _score({**original, "evidence": [needle]}, context=context) == {"evidence_recall": float(found)}
    assert _score({**original, "answer": needle}, context=context) == {"answer_in_context": float(found)}


def test_minified_json_keeps_its_facts() -> None:
    record = {"user": "alice", "roles": ["admin", "dev"], "limits": {"cpu": 1.5, "mem": None}}
    pretty, compact = json.dumps(record, indent=4), json.dumps(record, separators=(",", ":"))
    original = {"context": pretty, "evidence": ['"limits": {\n        "cpu": 1.5'], "answer": "1.5"}
    assert ContextRecall().score(original, {"context": compact}) == {"evidence_recall": 1.0, "answer_in_context": 1.0}


def test_passing_everything_through_loses_nothing() -> None:
    text = 'Mixed: "quotes" {json: [1, 2.5]}\n\t東京タワー <|endoftext|> नमस्ते 🍕 x_y_z e\u0301te\u0301'
    words = text.split()
    evidence = [" ".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1)]
    original = {"context": text, "evidence": evidence}
    assert ContextRecall().score(original, {"context": text}) == {"evidence_recall": 1.0}


@pytest.mark.parametrize("symbol", ["🍕", "+", "->", "%"])
def test_a_gold_without_letters_is_looked_for_as_it_is(symbol: str) -> None:
    original = {"context": f"The sign is {symbol} here.", "answer": symbol}
    assert _score(original, context=f"The sign is {symbol} here.") == {"answer_in_context": 1.0}
    assert _score(original, context="The sign is gone.") == {"answer_in_context": 0.0}
    assert _score({"evidence": [symbol]}, context=f"a{symbol}b") == {"evidence_recall": 1.0}


# --- the answer


def test_the_best_of_the_accepted_answers() -> None:
    assert _score({"answers": ["Berlin", "Rome"]}, context="Rome") == {"answer_in_context": 1.0}
    assert _score({"answers": ["Berlin", "Paris"]}, context="Rome") == {"answer_in_context": 0.0}


def test_an_answer_in_parts_counts_by_its_parts() -> None:
    parts = ["Paris", "Rome", "Alice", "Bob"]
    assert _score({"answer": parts}, context="Rome, Paris, Bob") == {"answer_in_context": 0.75}
    assert _score({"answers": [["Paris", "Oslo"], ["Rome"]]}, context="Rome") == {"answer_in_context": 1.0}


def test_an_empty_context_holds_nothing() -> None:
    scores = _score({"answer": "Rome", "evidence": ["Bob lives in Rome"]}, context="")
    assert scores == {"answer_in_context": 0.0, "evidence_recall": 0.0}


# --- what cannot be lost


@pytest.mark.parametrize("answer", ["yes", "No.", "Oslo", ["no"]])
def test_a_gold_that_stands_in_no_context_does_not_apply(answer: Any) -> None:
    original = {"context": f"{CONTEXT} There is no other, yes.", "answer": answer}
    for context in (original["context"], "Bob lives in Rome.", ""):
        scores: Any = ContextRecall().score(original, {"context": context})
        assert (scores, scores.reason) == ({}, NOT_IN_CONTEXT)
    scores = ContextRecall().score({**original, "evidence": ["Bob lives in Rome."]}, {"context": ""})
    assert (scores, scores.reason) == ({"evidence_recall": 0.0}, NOT_IN_CONTEXT)


def test_parts_and_golds_that_stand_there_count_alone() -> None:
    assert _score({"answer": ["Rome", "Oslo"]}, context="Rome") == {"answer_in_context": 1.0}
    assert _score({"answer": ["Rome", "Paris", "Oslo"]}, context="Rome") == {"answer_in_context": 0.5}
    assert _score({"answers": ["Oslo", "Rome"]}, context="") == {"answer_in_context": 0.0}


def test_evidence_that_stands_in_no_context_does_not_count() -> None:
    evidence = ["Bob lives in Rome.", "Carol sails to Oslo on Monday."]
    assert _score({"evidence": evidence}, context=CONTEXT) == {"evidence_recall": 1.0}
    assert _score({"evidence": evidence}, context="") == {"evidence_recall": 0.0}
    assert _score({"evidence": evidence[1:]}, context=CONTEXT) == {}


def test_a_retriever_that_starts_from_nothing_has_to_find_it() -> None:
    original = {"context": "", "answer": "Rome", "evidence": ["Bob lives in Rome."]}
    assert _score(original, context="Nothing.") == {"answer_in_context": 0.0, "evidence_recall": 0.0}


def test_evidence_that_a_pruner_left_recoverable_is_not_lost() -> None:
    context = "The old mill by the river was sold to a baker from Ghent after the war."
    original = {"context": context, "question": "Who bought it?", "evidence": [context], "answer": "baker"}
    assert ContextRecall().score(original, {"context": "old mill river sold baker Ghent war"}) == {
        "evidence_recall": 1.0,
        "answer_in_context": 1.0,
    }
    assert ContextRecall().score(original, {"context": "old mill river sold Ghent war"})["evidence_recall"] == 0.0


# --- nothing to judge


def test_no_context_gives_a_reason() -> None:
    for processed in ({"response": "Rome"}, {"context": None}, {"context": 5}, {}):
        scores = ContextRecall().score({"context": CONTEXT, "answer": "Rome"}, processed)
        assert scores == {}
        assert scores.reason == "the system returned no context"  # type: ignore[attr-defined]


def test_nothing_to_look_for_gives_a_reason() -> None:
    scores = _score({}, context=CONTEXT)
    assert scores == {}
    assert scores.reason == "no evidence, no gold answer and no relevant ids"  # type: ignore[attr-defined]
    assert _score({"evidence": [" ", ""], "answer": ""}, context=CONTEXT) == {}


# --- ranks


def test_ranks_by_hand() -> None:
    # relevant at places 2 and 4 of 5; a perfect ranking has them at 1 and 2
    scores = score_ranking(["x", "a", "y", "b", "z"], ["a", "b"], k=3)
    dcg, ideal = 1 / math.log2(3) + 1 / math.log2(5), 1 / math.log2(2) + 1 / math.log2(3)
    assert scores == pytest.approx({"recall_at_k": 0.5, "ndcg": dcg / ideal, "mrr": 0.5})
    assert scores["ndcg"] == pytest.approx(0.6509, abs=1e-4)


@pytest.mark.parametrize(
    ("ranking", "relevant", "expected"),
    [
        (["a", "b", "c"], ["a", "b"], (1.0, 1.0, 1.0)),
        (["c", "d"], ["a"], (0.0, 0.0, 0.0)),
        ([], ["a"], (0.0, 0.0, 0.0)),
        (["c", "a"], ["a"], (1.0, 1 / math.log2(3), 0.5)),
        # a relevant document that was dropped lowers recall and nDCG
        (["a"], ["a", "b"], (0.5, 1 / (1 + 1 / math.log2(3)), 1.0)),
        # a repeated document counts once, and takes no second place
        (["a", "a", "b"], ["a", "b"], (1.0, 1.0, 1.0)),
        ([3, 1], [1], (1.0, 1 / math.log2(3), 0.5)),
        (["a"], ["a", "a"], (1.0, 1.0, 1.0)),
    ],
)
def test_rankings_at_the_edges(ranking: list[Any], relevant: list[Any], expected: tuple[float, ...]) -> None:
    assert tuple(score_ranking(ranking, relevant, k=5).values()) == pytest.approx(expected)


def test_k_is_counted_from_the_top() -> None:
    ranking = [f"d{place}" for place in range(10)]
    assert [score_ranking(ranking, ["d4"], k)["recall_at_k"] for k in (4, 5)] == [0.0, 1.0]
    documents = [{"id": name, "text": ""} for name in ranking]
    for k, found in ((4, 0.0), (5, 1.0)):
        scores = ContextRecall(k=k).score({"relevant_ids": ["d4"]}, {"context": "", "documents": documents})
        assert scores["recall_at_k"] == found
    assert ContextRecall().k == 5


def test_documents_are_judged_with_the_context_they_make() -> None:
    original = {"context": "x", "relevant_ids": ["b"], "answer": "Rome", "documents": []}
    processed = {"context": "Rome", "documents": [{"id": "a", "text": "Rome"}, {"id": "b", "text": "x"}]}
    assert ContextRecall().score(original, processed) == pytest.approx(
        {"recall_at_k": 1.0, "ndcg": 1 / math.log2(3), "mrr": 0.5, "answer_in_context": 1.0}
    )


def test_without_relevant_ids_there_is_no_rank() -> None:
    for relevant in ({}, {"relevant_ids": []}, {"relevant_ids": None}):
        assert "ndcg" not in _score({"answer": "Rome", **relevant}, context="Rome", documents=[{"id": "a"}])


def test_only_declared_scores_come_out() -> None:
    original = {"context": CONTEXT, "relevant_ids": ["a"], "answer": "Rome", "evidence": ["Rome"]}
    scores = ContextRecall().score(original, {"context": "Rome", "documents": [{"id": "a"}]})
    assert set(scores) == set(ContextRecall.score_fields)
