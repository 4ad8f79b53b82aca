"""Retrieval on the real LoCoMo: the figures that an independent computation gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import locomo_reference as reference
from context_bench.memory.conversations import index_turns, rank_sessions
from context_bench.memory.scoring import MemoryRetrieval
from context_bench.memory.systems import SYSTEMS
from context_bench.registry import import_object
from memory.histories import make_example
from memory.real_records import read_locomo


@pytest.mark.long
@pytest.mark.parametrize(("name", "recall"), [("bm25", 0.629), ("embedding", 0.373)])
def test_recall_at_ten(name: str, recall: float) -> None:
    if name == "embedding":
        pytest.importorskip("wordllama", reason="the extra `memory`")
    conversations = read_locomo()
    system: Any = import_object(SYSTEMS[name])()
    values: list[float] = []
    for conversation in conversations:
        system.reset()
        system.ingest(conversation["turns"])
        said = {turn["id"]: turn["content"] for turn in conversation["turns"]}
        for question in conversation["questions"]:
            found = system.retrieve(question["question"], k=10)
            scores = MemoryRetrieval().score(make_example({**question, "evidence_turns": said}), {"retrieved": found})
            values += [scores["retrieval_recall_at_10"]] if scores else []
    assert len(values) == 1_982
    assert sum(values) / len(values) == pytest.approx(recall, abs=0.02)


@pytest.mark.long
def test_sessions_found_by_words_are_those_of_another_computation() -> None:
    conversations = read_locomo()
    system: Any = import_object(SYSTEMS["bm25"])()
    sums: Counter[str] = Counter()
    asked = 0
    for conversation in conversations:
        system.reset()
        system.ingest(conversation["turns"])
        placed = index_turns(conversation["turns"])
        for question in conversation["questions"]:
            found = system.retrieve(question["question"], k=1_000)
            said = {name: placed[name][1]["content"] for name in question["evidence_ids"]}
            ranked = {"sessions": rank_sessions(found, placed, question["evidence_sessions"]), "retrieved": found}
            scores = MemoryRetrieval().score(make_example({**question, "evidence_turns": said}), ranked)
            asked += bool(scores)
            sums.update({key: value for key, value in scores.items() if "session" in key})
    samples = reference.read_samples()
    counted, expected = reference.measure(samples, reference.split_stems, by_turn=True)
    assert asked == counted == 1_982
    # Lists of stop words and stemmers differ a little: a hundredth is 20 of the questions.
    ours = {key.removeprefix("retrieval_session_").replace("_at_", "@"): value / asked for key, value in sums.items()}
    assert ours == pytest.approx(expected, abs=0.01)
    # What is published for BM25 with plain words and one document for each session.
    _, plain = reference.measure(samples, reference.split_plain, by_turn=False)
    published = {"any@1": 0.638, "any@5": 0.884, "all@5": 0.788, "all@10": 0.864}
    assert {key: plain[key] for key in published} == pytest.approx(published, abs=0.002)
