"""Turn-level recall on the real LoCoMo: the figures that an independent computation gave."""

from __future__ import annotations

from typing import Any

import pytest

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
