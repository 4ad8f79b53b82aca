"""Where evidence stands, and what naive cuts of the same size keep: by hand, and against the real compressors."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.evaluators import ContextRecall
from context_bench.evaluators.evidence_map import DROP, SEEDS, EvidenceMap, locate_evidence
from context_bench.registry import registry
from context_bench.systems import RandomDrop, Truncate
from context_bench.utils.tokens import count_tokens


def _count_words(text: str) -> int:
    return len(text.split())


def _locate(example: dict[str, Any]) -> EvidenceMap:
    found = locate_evidence({"id": "a", **example}, _count_words)
    assert found is not None
    return found


TEN_LINES = "".join(f"line {number} says {number}{number}\n" for number in range(10))
"""Ten lines of four words, so 40 tokens by words."""


def test_depths_are_shares_of_the_tokens_before_the_evidence() -> None:
    found = _locate({"context": TEN_LINES, "evidence": ["line 2 says 22", "line 8 says 88"]})
    assert found.total == 40
    assert found.find_depths() == pytest.approx((8 / 40, 32 / 40))


def test_the_first_place_is_counted_in_tokens_and_not_in_letters() -> None:
    found = _locate(
        {"context": "x y z a_very_long_name_of_a_function\nx y z z\n", "answer": "a_very_long_name_of_a_function"}
    )
    assert found.find_depths() == (3 / 8, 3 / 8)


def test_a_stretch_keeps_what_stands_in_it() -> None:
    found = _locate({"context": TEN_LINES, "evidence": ["line 2 says 22", "line 8 says 88"]})
    half = found.score_controls(20)
    assert (half["head"], half["tail"], half["middle"]) == ([0.5], [0.5], [0.0])
    assert found.score_controls(12)["head"] == [0.5]
    assert found.score_controls(8)["head"] == [0.0]
    assert {name: set(each) for name, each in found.score_controls(40).items()} == {
        "head": {1.0},
        "tail": {1.0},
        "middle": {1.0},
        DROP: {1.0},
    }
    assert all(set(each) == {0.0} for each in found.score_controls(0).values())


def test_random_deletion_keeps_about_the_share_that_is_kept() -> None:
    kept = []
    for number in range(200):
        found = locate_evidence({"id": number, "context": TEN_LINES, "evidence": ["line 4 says 44"]}, _count_words)
        assert found is not None
        drops = found.score_controls(20)[DROP]
        assert len(drops) == SEEDS
        kept += drops
    assert sum(kept) / len(kept) == pytest.approx(0.5, abs=0.05)


def test_one_accepted_answer_suffices_and_its_parts_are_all_needed() -> None:
    found = _locate({"context": TEN_LINES, "answers": [["11", "99"], ["55"]]})
    assert found.score_controls(24)["head"] == [1.0]  # 55 stands in the sixth line
    assert found.score_controls(8)["head"] == [0.5]
    assert found.find_depths() == pytest.approx((23 / 40, 23 / 40), abs=0.01)


def test_an_answer_counts_in_whole_words_and_in_each_of_its_places() -> None:
    found = _locate({"context": "a cat sat. catalog here. the cat ran.", "answer": "cat"})
    assert found.count_places() == 2
    assert found.score_controls(3)["tail"] == [1.0]


def test_evidence_is_found_across_layout_case_and_lines() -> None:
    context = "Intro words here.\nThe  Total\n is 1,000 dollars.\nThe end is near.\n"
    found = _locate({"context": context, "evidence": ["the total is 1000 dollars"]})
    # It covers the second and the third line, five of the twelve words: three stand before them, four after.
    assert found.find_depths() == pytest.approx((3 / 12, 3 / 12))
    assert found.score_controls(8)["head"] == [1.0]
    assert found.score_controls(7)["head"] == [0.0]


@pytest.mark.parametrize(
    "example",
    [
        {"context": "Nothing to see.", "answer": "Paris"},
        {"context": "Yes, it does. No, it does not.", "answer": "yes"},
        {"context": "", "answer": "Paris"},
        {"context": "Paris", "question": "Where?"},
    ],
    ids=["absent", "a conclusion", "no context", "no gold"],
)
def test_what_no_context_holds_cannot_be_lost(example: dict[str, Any]) -> None:
    assert locate_evidence({"id": 1, **example}, _count_words) is None


def test_a_conversation_is_read_as_one_text() -> None:
    turns = [
        {"role": "user", "content": "My dog is called Rex."},
        {"role": "assistant", "content": "Nice name."},
        {"role": "user", "content": "What is my dog called?"},
    ]
    found = _locate({"turns": turns, "answer": "Rex"})
    assert found.score_controls(5)["head"] == [1.0]
    assert found.score_controls(5)["tail"] == [0.0]


@pytest.mark.parametrize("dataset", ["needle", "kv", "json-logs"])
@pytest.mark.parametrize("keep", ["head", "tail", "middle"])
def test_a_stretch_is_judged_as_the_real_truncation_is(dataset: str, keep: str) -> None:
    examples = list(registry.get("dataset", dataset)(length=1000, n=25))
    agree = total = 0
    for example in examples:
        found = locate_evidence(example, count_tokens)
        assert found is not None
        for ratio in (0.2, 0.5, 0.8):
            cut = Truncate(ratio=ratio, keep=keep).process(example)
            real = ContextRecall().score(example, {**example, **cut})
            predicted = found.score_controls(count_tokens(cut["context"]))[keep][0]
            total += 1
            agree += real["evidence_recall"] == pytest.approx(predicted)
    assert agree >= 0.95 * total


def test_random_deletion_is_judged_as_the_real_one_is_on_average() -> None:
    examples = list(registry.get("dataset", "needle")(length=1000, n=40))
    real = predicted = 0.0
    for example in examples:
        found = locate_evidence(example, count_tokens)
        assert found is not None
        cut = RandomDrop(ratio=0.5).process(example)
        real += ContextRecall().score(example, {**example, **cut})["evidence_recall"]
        drops = found.score_controls(count_tokens(cut["context"]))[DROP]
        predicted += sum(drops) / len(drops)
    assert abs(real - predicted) / len(examples) < 0.15
