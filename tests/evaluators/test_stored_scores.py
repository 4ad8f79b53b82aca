"""Scores in a store stay valid: the keys of shipped evaluators are those of the first stores, wherever a module lies.

A new `version` of an evaluator, or another parameter, changes its key on purpose: then its line changes here.
"""

from __future__ import annotations

import pytest

from context_bench.registry import registry
from context_bench.store.fingerprints import fingerprint_of

FINGERPRINTS = {
    "answer-quality": "bdf7b6c4e6170048ad45bc96c8a147ce",
    "bbh": "2342aeaf75ce1ad02b1d9908457c66cf",
    "code-execution": "8fdac7364f13599e89d50328741a8e67",
    "context-recall": "c80bd0937fbeeda470a592d9f3c21e8a",
    "drop": "2a6c114c55daa8adca03cfa6ed33c2bf",
    "evidence-survival": "9f3c4ef8cac50ca895e8512d968eaeb8",
    "hotpot": "b3e2dd374294dd5cee6f912108ef735c",
    "ifeval-checker": "8ce1095fe037ef18e2ac567f4762e40a",
    "ifeval-official": "7fb58ca08e2cd17a21eab8f6a22d0455",
    "infinitebench": "831989e9589fa7f0b9bb77de7d1e6167",
    "longbench": "35622dc72a48b2d4cb383792801e9cd0",
    "math-equivalence": "f7f221fe1de616aa4220190e8d77f238",
    "mrcr": "8c1a6c4841750d9fbd545362cf7b0adb",
    "multiple-choice-accuracy": "22668289387885d1b52e7129e0f9bea7",
    "nli-label-match": "7249614ac12c56b01f2076e8b31d23c3",
    "nolima": "c20f79cc1bfd757609230ac76f0a9d4e",
    "patch-files": "95a84fbc8f99ce8ad9e6d18a17433b0e",
    "reference-overlap": "af5052ebc06571e3960881ce5bc72442",
    "rouge-suite": "e7cd01877005fd4780e1c54082f3718a",
    "summarization-quality": "572e974ba39f7c6d144d2671ee3bff0e",
    "tool-call-match": "0f62deff912f92e976075fe00ddd2b8a",
    "truthfulqa": "5bba15042c06f07d084ef24578985b48",
}
"""As they were before any module moved."""


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_an_evaluator_keeps_the_key_of_its_stored_scores(name: str) -> None:
    assert fingerprint_of(registry.get("evaluator", name)()) == FINGERPRINTS[name]


def test_every_shipped_evaluator_is_held() -> None:
    assert {*FINGERPRINTS, "llm-judge"} == set(registry.list("evaluator"))  # a judge has an address, and its own text
