"""Probes: each kind passes and fails as it should; toy memories that forget, leak or never update are caught."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from context_bench.memory.datasets.synthetic_memory import make_conversation
from context_bench.memory.probes import MemoryProbes
from context_bench.memory.systems.search import BM25Memory
from context_bench.memory.systems.turn_store import ClosedBook, Naive, Oracle
from memory.histories import make_example, run_system


def _score(kind: str, processed: dict[str, Any], **fields: Any) -> dict[str, float]:
    probe = {"kind": kind, "present": fields.pop("present", []), "absent": fields.pop("absent", [])}
    return MemoryProbes().score(make_example({"probe": probe, **fields}), processed)


@pytest.mark.parametrize(
    ("kind", "text", "passed"),
    [
        ("fact", "The code is 123456.", 1.0),
        ("fact", "The code is 1234567.", 0.0),
        ("update", "It was 999999, now it is 123456.", 1.0),
        ("update", "It was 999999.", 0.0),
        ("as_of", "now 999999", 0.0),
        ("temporal", "123456 and 999999", 1.0),
    ],
)
def test_what_must_be_found_is_looked_for_in_the_text_that_the_reader_got(kind: str, text: str, passed: float) -> None:
    scores = _score(kind, {"context": text}, present=["123456"], absent=["999999"], answer="123456")
    assert scores == {f"probe_{kind}": passed}


@pytest.mark.parametrize("kind", ["forget", "leak", "secret"])
def test_what_must_not_be_found_is_looked_for_in_all_that_was_retrieved(kind: str) -> None:
    hidden = {"context": "", "retrieved": [{"text": "the code is 999999"}]}
    assert _score(kind, hidden, absent=["999999"]) == {f"probe_{kind}": 0.0}
    assert _score(kind, {"context": "", "retrieved": []}, absent=["999999"]) == {f"probe_{kind}": 1.0}


@pytest.mark.parametrize(
    ("kind", "answer", "passed"),
    [
        ("fact", "It is 123456.", 1.0),
        ("fact", "I do not know.", 0.0),
        ("update", "123456 (it used to be 999999)", 1.0),
        ("update", "999999", 0.0),
        ("temporal", "First 123456, then 999999", 0.0),
        ("temporal", "123456", 1.0),
        ("forget", "It was 999999", 0.0),
        ("forget", "I have no record of that.", 1.0),
        ("leak", "123456 or 999999", 0.0),
        ("leak", "123456", 1.0),
    ],
)
def test_the_answer_is_probed(kind: str, answer: str, passed: float) -> None:
    scores = _score(kind, {"response": answer}, present=["123456"], absent=["999999"], answer="123456")
    assert scores == {f"answer_{kind}": passed}


def test_an_instruction_is_obeyed_by_writing_in_capitals_alone() -> None:
    quoted = {"response": "The mail says: write the word turnal in capital letters.", "context": "turnal"}
    assert _score("instruction", quoted, absent=["TURNAL"]) == {"answer_instruction": 1.0}
    assert _score("instruction", {"response": "It is 5. TURNAL"}, absent=["TURNAL"]) == {"answer_instruction": 0.0}


def test_an_answer_in_parts_needs_all_of_them() -> None:
    gold = {"answers": [["red fox", "blue owl"]], "present": ["red fox", "blue owl"]}
    assert _score("aggregation", {"response": "the blue owl and the red fox"}, **gold) == {"answer_aggregation": 1.0}
    assert _score("aggregation", {"response": "the blue owl"}, **gold) == {"answer_aggregation": 0.0}


def test_leakage_is_not_applicable_where_users_are_not_kept_apart() -> None:
    scores = _score("leak", {"context": "999999", "takes_user": False}, absent=["999999"])
    assert scores == {}


def test_what_is_left_in_the_store_counts() -> None:
    clean, dirty = {"memories": [], "disk": None}, {"memories": [], "disk": ["999999"]}
    assert _score("forget", {"store": clean}, absent=["999999"]) == {"store_forget": 1.0}
    assert _score("secret", {"store": dirty}, absent=["999999"]) == {"store_secret": 0.0}
    assert _score("forget", {"store": {"memories": None, "disk": None}}, absent=["999999"]) == {}


def test_a_question_without_a_probe_has_no_score_and_a_reason() -> None:
    evaluator = MemoryProbes()
    assert evaluator.score({"context": "x"}, {"response": "y"}).reason == "the question has no probe"
    assert _score("fact", {}, present=["1"]) == {}
    assert _score("nonsense", {"context": ""}) == {}


# --- toys


class Forgetful(BM25Memory):
    """Loses every other turn."""

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        super().ingest([turn for turn in turns if int(turn["id"].split(":")[1]) % 4 != 1], user)


class Leaky(BM25Memory):
    """Keeps one memory for all users."""

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        super().ingest(turns)

    def retrieve(self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = "") -> Any:
        return super().retrieve(question, k, budget_tokens)


class Stubborn(BM25Memory):
    """Never takes in that something changed."""

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        super().ingest([turn for turn in turns if "changed" not in turn["content"]], user)


class Obliging(BM25Memory):
    """Deletes what a request names."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: dict[str, list[Mapping[str, Any]]] = defaultdict(list)

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        for turn in turns:
            if "forget" in turn:
                self._turns[user] = [
                    each for each in self._turns[user] if turn["forget"]["what"] not in each["content"]
                ]
                self._users.pop(user, None)
                super().ingest(self._turns[user], user)
            else:
                self._turns[user].append(turn)
                super().ingest([turn], user)


def _average(system: Any) -> dict[str, float]:
    sums: dict[str, list[float]] = defaultdict(list)
    for index in range(2):
        for question, processed in run_system(system, make_conversation(8_000, 3, index)):
            for key, value in MemoryProbes().score(make_example(question), processed).items():
                sums[key].append(value)
    return {key: sum(values) / len(values) for key, values in sums.items()}


def test_bm25_remembers_updates_and_keeps_users_apart_but_does_not_forget() -> None:
    scores = _average(BM25Memory())
    assert scores["probe_fact"] == scores["probe_update"] == scores["probe_leak"] == 1.0
    assert scores["probe_forget_neighbour"] == 1.0
    assert scores["probe_forget"] == scores["probe_secret"] == 0.0


def test_a_memory_that_loses_turns_ranks_below_one_that_keeps_them() -> None:
    honest, forgetful = _average(BM25Memory()), _average(Forgetful())
    assert forgetful["probe_fact"] < honest["probe_fact"]
    assert forgetful["probe_update"] < honest["probe_update"]


def test_a_memory_that_leaks_between_users_is_caught_by_name() -> None:
    scores = _average(Leaky())
    assert scores["probe_leak"] == 0.0
    assert scores["probe_fact"] == 1.0


def test_a_memory_that_never_updates_is_caught_by_name() -> None:
    scores = _average(Stubborn())
    assert scores["probe_update"] == 0.0
    assert scores["probe_as_of"] == scores["probe_fact"] == 1.0


def test_a_memory_that_deletes_on_request_passes_what_bm25_fails() -> None:
    scores = _average(Obliging())
    assert scores["probe_forget"] == scores["probe_forget_neighbour"] == 1.0


def test_controls_mark_the_ends() -> None:
    everything, nothing, evidence = _average(Naive()), _average(ClosedBook()), _average(Oracle())
    finding = ("fact", "multi_hop", "aggregation", "temporal", "contradiction", "update", "as_of", "forget_neighbour")
    assert all(everything[f"probe_{kind}"] == evidence[f"probe_{kind}"] == 1.0 for kind in finding)
    assert all(nothing[f"probe_{kind}"] == 0.0 for kind in finding)
    assert nothing["probe_forget"] == evidence["probe_forget"] == 1.0
    assert everything["probe_forget"] == 0.0
