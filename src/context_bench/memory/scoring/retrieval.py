"""Did the memory find the turns that answer the question? Recall, precision and nDCG against evidence ids.

LongMemEval's official retrieval scores are here too, at the level of turns and of sessions. The corpus is what users
said; abstention questions, and those without a target there, are skipped. The discounted gain is the authors': the
first two ranks weigh the same, and the ideal is that of the whole corpus. For sessions the ranking of turns is read
on until k different sessions were met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from context_bench.memory.scoring import NO_IDS, read_question, read_retrieved, read_shown
from context_bench.results import Scores
from context_bench.text.evidence_state import list_shown_turns

DEPTHS = (1, 5, 10, 20)
"""The numbers of memories after which recall is measured."""


class MemoryRetrieval:
    """Scores `retrieval_recall`, `retrieval_precision`, `retrieval_recall_at_<k>` and `retrieval_ndcg`.

    Only what fits whole into the budget of the reader counts. A memory stands for a turn of its `ids` where it shows
    the words of that turn, or enough of them to recover what it said. Recall is the share of the evidence turns that
    are shown, precision the share of memories that show one; for recall at k the first k memories count.
    `retrieval_recall_claimed` is the share that is named, shown or not: a memory that keeps facts in its own words has
    a recall between the two. The list of a control is not a ranking: it has recall and precision alone. Questions
    without evidence have no score: LoCoMo's official code counts them as 1.
    """

    name = "memory-retrieval"
    version = 3
    score_fields = (
        *("retrieval_recall", "retrieval_recall_claimed", "retrieval_precision", "retrieval_ndcg"),
        *(f"retrieval_recall_at_{depth}" for depth in DEPTHS),
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Compare the turns that are named and shown with those of the evidence."""
        record, found, whole = read_question(original), read_retrieved(processed), read_shown(processed)
        if record is None:
            return Scores(reason="not a question about a conversation")
        evidence = {str(each) for each in record.get("evidence_ids") or ()}
        if not evidence:
            return Scores(reason="the question has no evidence ids")
        if found is None or whole is None:
            return Scores(reason="the system does not say what it retrieved")
        if found and not any(item.get("ids") for item in found):
            return Scores(reason=NO_IDS)
        shown = [evidence & turns for turns in list_shown_turns(whole, original, processed)]
        if processed.get("is_control"):
            return Scores(_measure_set(shown, len(evidence)))
        named = [evidence.intersection(map(str, item.get("ids") or ())) for item in whole]
        claimed = {"retrieval_recall_claimed": _count_found(named) / len(evidence)}
        return Scores({**measure_ranking(shown, len(evidence)), **claimed})


def measure_ranking(groups: Sequence[set[str]], relevant: int) -> dict[str, float]:
    """Measure a ranking: the evidence turns that each memory shows, of so many that there are."""
    scores = _measure_set(groups, relevant)
    for depth in DEPTHS:
        scores[f"retrieval_recall_at_{depth}"] = _count_found(groups[:depth]) / relevant
    return {**scores, "retrieval_ndcg": _measure_ndcg(groups, relevant)}


def _measure_set(groups: Sequence[set[str]], relevant: int) -> dict[str, float]:
    precision = {"retrieval_precision": sum(map(bool, groups)) / len(groups)} if groups else {}
    return {"retrieval_recall": _count_found(groups) / relevant, **precision}


def _count_found(groups: Sequence[set[str]]) -> int:
    return len(set[str]().union(*groups))


def _measure_ndcg(groups: Sequence[set[str]], relevant: int) -> float:
    """Each memory gains by the evidence turns that none before it had; the ideal has one in each place."""
    seen: set[str] = set()
    gain = 0.0
    for place, group in enumerate(groups):
        gain += len(group - seen) / math.log2(place + 2)
        seen |= group
    ideal = sum(1 / math.log2(place + 2) for place in range(relevant))
    # A memory that sums up several turns may beat an ideal of single ones.
    return min(1.0, gain / ideal)


LONGMEMEVAL_DEPTHS = (1, 3, 5, 10, 30, 50)
_MEASURES = ("recall_any", "recall_all", "ndcg_any")


class LongMemEvalRetrieval:
    """Scores `longmemeval_turn_recall_any_at_<k>`, `_recall_all_`, `_ndcg_any_`, and the same for `session`.

    The ids of turns are `{session}_{number}`, with an `a` behind those of the assistant, as the dataset gives them.
    Memories that stand for turns of the assistant alone are passed over, as in the official corpus. A turn that is
    named and not shown keeps its place, and does not count.
    """

    name = "longmemeval-retrieval"
    version = 3
    score_fields = tuple(
        f"longmemeval_{level}_{measure}_at_{depth}"
        for level in ("turn", "session")
        for measure in _MEASURES
        for depth in LONGMEMEVAL_DEPTHS
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Compare the ranking with the turns, and the sessions, that hold the answer."""
        record, found = read_question(original), read_shown(processed)
        if record is None or "user_evidence" not in record:
            return Scores(reason="not a question of LongMemEval")
        if record.get("unanswerable"):
            return Scores(reason="abstention questions have no retrieval score")
        relevant = [str(each) for each in record["user_evidence"]]
        if not relevant:
            return Scores(reason="no turn of the user holds the answer")
        if found is None:
            return Scores(reason="the system does not say what it retrieved")
        ids = dict.fromkeys(str(each) for item in found for each in item.get("ids") or ())
        shown = set[str]().union(*list_shown_turns(found, original, processed))
        ranking = [
            each if each in shown or each not in relevant else f"{each} (claimed)"
            for each in ids
            if not each.endswith("a")
        ]
        scores: dict[str, float] = {}
        for depth in LONGMEMEVAL_DEPTHS:
            for level, measured in (
                ("turn", measure_turns(ranking, relevant, depth)),
                ("session", measure_sessions(ranking, relevant, depth)),
            ):
                scores |= {f"longmemeval_{level}_{name}_at_{depth}": value for name, value in measured.items()}
        return Scores(scores)


def measure_turns(ranking: Sequence[str], relevant: Iterable[str], depth: int) -> dict[str, float]:
    """Measure the first turns of a ranking."""
    wanted = set(relevant)
    return _measure(wanted & set(ranking[:depth]), wanted, ranking, wanted, depth)


def measure_sessions(ranking: Sequence[str], relevant: Iterable[str], depth: int) -> dict[str, float]:
    """Measure the sessions of the first turns, as many as it takes to meet `depth` different ones.

    A turn of an evidence session that does not hold the answer counts as one of another session, as in the official
    code, which renames it.
    """
    wanted = set(relevant)
    met: set[tuple[str, bool]] = set()
    read = 0
    while read < len(ranking) and len(met) < depth:
        met.add((_read_session(ranking[read]), ranking[read] in wanted))
        read += 1
    sessions = {_read_session(turn) for turn in wanted}
    return _measure({name for name, holds in met if holds}, sessions, ranking, wanted, max(read, depth))


def _measure(
    found: set[str], wanted: set[str], ranking: Sequence[str], relevant: set[str], depth: int
) -> dict[str, float]:
    gains = [float(turn in relevant) for turn in ranking[:depth]]
    ndcg = _discount(gains) / _discount([1.0] * min(len(relevant), depth))
    return dict(zip(_MEASURES, (float(bool(found)), float(found == wanted), ndcg)))


def _discount(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(max(2, place + 1)) for place, gain in enumerate(gains))


def _read_session(turn_id: str) -> str:
    return turn_id.rpartition("_")[0]
