"""Recall, precision and nDCG against evidence ids, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.memory.conversations import index_turns, rank_sessions
from context_bench.memory.scoring import MemoryRetrieval, measure_first
from memory.histories import make_example


def _tell(name: str) -> str:
    """What the turn of that id says."""
    return f"The lamp {ord(name)} was lit at noon by the keeper."


def _ask(evidence: list[str]) -> dict[str, Any]:
    return make_example({"evidence_ids": evidence, "evidence_turns": {each: _tell(each) for each in evidence}})


def _score(found: list[dict[str, Any]] | None, evidence: list[str], **more: Any) -> Any:
    processed = more if found is None else {"retrieved": found, **more}
    return MemoryRetrieval().score(_ask(evidence), processed)


def _rank(*ids: str) -> list[dict[str, Any]]:
    return [{"text": _tell(each), "ids": [each], "score": 1 / place} for place, each in enumerate(ids, 1)]


def test_a_ranking_is_measured_at_every_depth() -> None:
    scores = _score(_rank("x", "a", "y", "z", "w", "v", "b"), ["a", "b"])
    gain = 1 / math.log2(3) + 1 / math.log2(8)
    assert scores == pytest.approx(
        {
            "retrieval_recall": 1.0,
            "retrieval_recall_claimed": 1.0,
            "retrieval_precision": 2 / 7,
            "retrieval_recall_at_1": 0.0,
            "retrieval_recall_at_5": 0.5,
            "retrieval_recall_at_10": 1.0,
            "retrieval_recall_at_20": 1.0,
            "retrieval_ndcg": gain / (1 + 1 / math.log2(3)),
            "retrieval_any_at_1": 0.0,  # a is the second turn, b the seventh
            "retrieval_all_at_1": 0.0,
            "retrieval_any_at_5": 1.0,
            "retrieval_all_at_5": 0.0,
            "retrieval_any_at_10": 1.0,
            "retrieval_all_at_10": 1.0,
        }
    )


def test_a_memory_of_many_turns_takes_as_many_places() -> None:
    every = {"text": " ".join(map(_tell, "vwxyzab")), "ids": list("vwxyzab")}
    scores = _score([every], ["a", "b"])
    assert (scores["retrieval_any_at_5"], scores["retrieval_all_at_10"], scores["retrieval_ndcg"]) == (0.0, 1.0, 1.0)


def test_sessions_are_ranked_as_their_turns_come_and_must_be_shown() -> None:
    turns = index_turns([{"id": f"{name}{n}", "session": name, "content": _tell(name)} for name in "stu" for n in "12"])
    found = [
        {"text": "Something about a lamp.", "ids": ["s1"]},  # names the first session and shows nothing of it
        {"text": _tell("t"), "ids": ["t2", "t1"]},
        {"text": _tell("s"), "ids": ["s2"]},
        {"text": _tell("u"), "ids": ["u1", "gone"]},
    ]
    ranking = rank_sessions(found, turns, ["s", "u"])
    assert ranking == ["s", "t", "u"]
    assert rank_sessions(found[:2], turns, ["s", "u"]) == ["s (claimed)", "t"]
    scores = measure_first(ranking, {"s", "u"}, "session_")
    assert [scores[f"retrieval_session_{each}"] for each in ("any_at_1", "all_at_1", "all_at_5")] == [1.0, 0.0, 1.0]
    assert measure_first(["s (claimed)", "t"], {"s"}, "")["retrieval_any_at_5"] == 0.0


def test_what_the_budget_cut_off_is_not_found() -> None:
    found = _rank("x", "a", "b")
    example = _ask(["a", "b"])
    scores = MemoryRetrieval().score(example, {"retrieved": found, "shown": 2})
    assert scores["retrieval_recall"] == scores["retrieval_recall_at_10"] == scores["retrieval_precision"] == 0.5
    assert MemoryRetrieval().score(example, {"retrieved": found, "shown": 0})["retrieval_recall"] == 0.0
    unnamed = {"retrieved": [{"text": "a"}], "shown": 0}
    assert MemoryRetrieval().score(example, unnamed).reason == "the retrieved items have no turn ids"


def test_the_order_of_a_list_is_its_ranking_with_scores_or_without() -> None:
    # Some rows with scores and some without would give each system other rows to be measured on.
    with_scores = _rank("x", "a")
    without = [{key: value for key, value in item.items() if key != "score"} for item in with_scores]
    assert _score(without, ["a"]) == _score(with_scores, ["a"])
    assert _score(without, ["a"])["retrieval_recall_at_1"] == 0.0
    assert _score(without, ["a"])["retrieval_recall_at_5"] == 1.0


def test_what_a_control_returns_is_not_a_ranking() -> None:
    assert _score(_rank("x", "a"), ["a"], is_control=True) == {"retrieval_recall": 1.0, "retrieval_precision": 0.5}


@pytest.mark.parametrize("text", ["ok", ".", "", "The lamp 97 lit.", _tell("b")])
def test_a_turn_that_is_named_and_not_shown_is_only_claimed(text: str) -> None:
    scores = _score([{"text": text, "ids": ["a", "x", "y"], "score": 1.0}], ["a"])
    assert scores.pop("retrieval_recall_claimed") == 1.0
    assert set(scores.values()) == {0.0}


@pytest.mark.parametrize("text", ["[8 May] Ana: The lamp 97 was lit at noon by the keeper.", "lamp 97 lit noon keeper"])
def test_a_turn_is_shown_word_for_word_or_so_that_it_can_be_recovered(text: str) -> None:
    scores = _score([{"text": text, "ids": ["a"]}], ["a"])
    assert scores["retrieval_recall"] == scores["retrieval_precision"] == scores["retrieval_ndcg"] == 1.0


def test_words_without_the_name_of_their_turn_do_not_count() -> None:
    scores = _score([{"text": _tell("a"), "ids": ["b"]}], ["a"])
    assert scores["retrieval_recall"] == scores["retrieval_recall_claimed"] == 0.0


def test_a_turn_in_pieces_is_shown_by_the_piece_that_completes_it() -> None:
    pieces = [{"text": text, "ids": ["a"]} for text in ("The lamp 97 was lit", "at noon by the keeper.")]
    scores = _score(pieces, ["a"])
    assert scores["retrieval_recall"] == 1.0
    assert scores["retrieval_recall_at_1"] == 0.0
    assert scores["retrieval_precision"] == 0.5
    assert _score(pieces[:1], ["a"])["retrieval_recall"] == 0.0


def test_nothing_found_is_zero_and_has_no_precision() -> None:
    scores = _score([], ["a"])
    assert scores["retrieval_recall"] == scores["retrieval_recall_at_10"] == scores["retrieval_ndcg"] == 0.0
    assert "retrieval_precision" not in scores


def test_a_memory_that_stands_for_several_turns_counts_for_all_of_them() -> None:
    scores = _score([{"text": f"{_tell('a')} {_tell('b')}", "ids": ["a", "b", "c"], "score": 1.0}], ["a", "b"])
    assert scores["retrieval_recall_at_1"] == scores["retrieval_precision"] == scores["retrieval_ndcg"] == 1.0


def test_a_turn_that_is_found_twice_counts_once() -> None:
    scores = _score(_rank("a", "a"), ["a", "b"])
    assert scores["retrieval_recall"] == 0.5
    assert scores["retrieval_ndcg"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


@pytest.mark.parametrize(
    ("found", "evidence", "reason"),
    [
        ([], [], "the question has no evidence ids"),
        (None, ["a"], "the system does not report what it retrieved"),
        ([{"text": "a"}], ["a"], "the retrieved items have no turn ids"),
    ],
)
def test_what_cannot_be_measured_has_a_reason(found: Any, evidence: list[str], reason: str) -> None:
    scores = _score(found, evidence)
    assert scores == {}
    assert scores.reason == reason


def test_an_example_of_another_dataset_has_no_score() -> None:
    assert MemoryRetrieval().score({"context": ""}, {"retrieved": []}).reason == "not a question about a conversation"
