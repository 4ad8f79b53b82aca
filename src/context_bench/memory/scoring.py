"""Evaluators of retrieval and answers from memory. For probes and the store, see `memory.probes`.

They read the record of the question (`original["memory"]`), and these fields of the answer: `retrieved` (before
rendering), `context` (of the reader), `response` and `store`.

Recall, precision and nDCG compare the retrieved turns with the evidence. LongMemEval's official retrieval scores are
computed for turns and for sessions. Their corpus is the user turns; abstention questions are skipped, and so are
questions with no evidence in those turns. As in the authors' code, the first two ranks have the same discount, and the
ideal ranking is that of the whole corpus. For sessions, the ranking of turns is read until it has k different sessions.

Refusals are scored over matched answerable and unanswerable questions. LoCoMo's scores equal those of the authors'
code. Categories 2 and 4: F1 of stemmed words. Category 3: the same, with the gold up to its first ";". Category 1: gold
and answer are split at commas, and each part of the gold gets its best match. Category 5: the answer contains "no
information available" or "not mentioned".
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.evaluators.choice import MultipleChoiceAccuracy
from context_bench.memory.conversations import mark_claimed
from context_bench.memory.datasets.long_conversations import CATEGORIES
from context_bench.results import Scores
from context_bench.text.evidence_state import list_shown_turns
from context_bench.text.golds import gold_answers, response_text, token_f1
from context_bench.text.words import normalise, stem_word


def read_question(original: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the record of the question; None if the example is not from a memory dataset."""
    record = original.get("memory")
    return record if isinstance(record, Mapping) else None


def read_retrieved(processed: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the retrieved items, best first; None if the system does not report them."""
    found = processed.get("retrieved")
    if not isinstance(found, list | tuple):
        return None
    return [item for item in found if isinstance(item, Mapping)]


def read_shown(processed: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the retrieved items that fit whole into the reader's budget, best first."""
    found, shown = read_retrieved(processed), processed.get("shown")
    return found if found is None or not isinstance(shown, int) else found[:shown]


def read_shown_text(processed: Mapping[str, Any]) -> str | None:
    """Return the reader's context, else the texts of all retrieved items; None if there is neither."""
    context = processed.get("context")
    if isinstance(context, str):
        return context
    found = read_retrieved(processed)
    return None if found is None else "\n".join(str(item.get("text") or "") for item in found)


def find_texts(wanted: list[str], text: str) -> list[str]:
    """List the wanted texts that occur as whole words, regardless of case, layout and punctuation."""
    searched = normalise(text)
    return [each for each in wanted if normalise(each) in searched]


READ_BY_SCRIPT = "a script answered, not a model, so refusals say nothing"
STOOD_IN = "a script replaced the model that the memory calls"
UNSEEN = "memories() and storage show no stored fact at all, so a missing text proves nothing"
NO_IDS = "the retrieved items have no turn ids"

DEPTHS = (1, 5, 10, 20)  # k of recall at k items
FIRST = (1, 5, 10)  # k of "any" and "all" at k turns or sessions
_SHARES = ("any", "all")


class MemoryRetrieval:
    """Scores `retrieval_recall`, `retrieval_precision`, `retrieval_recall_at_<k>` and `retrieval_ndcg`.

    Only items that fit whole into the reader's budget count. An item counts for a turn in its `ids` if it shows the
    words of that turn, or enough of them to recover its meaning. Recall is the share of evidence turns that are shown;
    precision is the share of items that show an evidence turn. Recall at k counts the first k items.
    `retrieval_recall_claimed` is the share of evidence turns that are named, whether shown or not: if a memory keeps
    facts in its own words, its true recall lies between these two scores. Controls have no ranking, so they have only
    recall and precision. Questions without evidence have no score; LoCoMo's official code counts them as 1.

    `retrieval_any_at_<k>` is 1 if one of the evidence turns is among the first k different turns named, and
    `retrieval_all_at_<k>` if all are. `retrieval_session_any_at_<k>` and `retrieval_session_all_at_<k>` are the same
    for sessions. A turn or session that is named but not shown keeps its rank and does not count.
    """

    name = "memory-retrieval"
    version = 4
    score_fields = (
        *("retrieval_recall", "retrieval_recall_claimed", "retrieval_precision", "retrieval_ndcg"),
        *(f"retrieval_recall_at_{depth}" for depth in DEPTHS),
        *(f"retrieval_{level}{share}_at_{depth}" for level in ("", "session_") for share in _SHARES for depth in FIRST),
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        record, found, whole = read_question(original), read_retrieved(processed), read_shown(processed)
        if record is None:
            return Scores(reason="not a question about a conversation")
        evidence = {str(each) for each in record.get("evidence_ids") or ()}
        if not evidence:
            return Scores(reason="the question has no evidence ids")
        if found is None or whole is None:
            return Scores(reason="the system does not report what it retrieved")
        if found and not any(item.get("ids") for item in found):
            return Scores(reason=NO_IDS)
        shown = [evidence & turns for turns in list_shown_turns(whole, original, processed)]
        if processed.get("is_control"):
            return Scores(_measure_set(shown, len(evidence)))
        named = [evidence.intersection(map(str, item.get("ids") or ())) for item in whole]
        scores = measure_ranking(shown, len(evidence))
        scores["retrieval_recall_claimed"] = _count_found(named) / len(evidence)
        turns = [
            name if name not in evidence or name in seen else mark_claimed(name)
            for item, seen in zip(whole, shown)
            for name in map(str, item.get("ids") or ())
        ]
        scores |= measure_first(turns, evidence, "")
        sessions = {str(each) for each in record.get("evidence_sessions") or ()}
        if sessions and "sessions" in processed:
            scores |= measure_first(processed["sessions"], sessions, "session_")
        return Scores(scores)


def measure_first(ranking: Iterable[str], wanted: set[str], level: str) -> dict[str, float]:
    """Measure whether any, and whether all, of the wanted names are among the first k of a ranking."""
    names, scores = list(dict.fromkeys(ranking)), dict[str, float]()
    for depth in FIRST:
        met = wanted.intersection(names[:depth])
        scores[f"retrieval_{level}any_at_{depth}"] = float(bool(met))
        scores[f"retrieval_{level}all_at_{depth}"] = float(met == wanted)
    return scores


def measure_ranking(groups: Sequence[set[str]], relevant: int) -> dict[str, float]:
    """Score a ranking, given the evidence turns that each item shows and their total number."""
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
    """Compute nDCG: each item gains for its new evidence turns; the ideal ranking has one new evidence turn at each
    rank.
    """
    seen: set[str] = set()
    gain = 0.0
    for place, group in enumerate(groups):
        gain += len(group - seen) / math.log2(place + 2)
        seen |= group
    ideal = sum(1 / math.log2(place + 2) for place in range(relevant))
    return min(1.0, gain / ideal)  # items that summarise several turns may exceed the ideal


LONGMEMEVAL_DEPTHS = (1, 3, 5, 10, 30, 50)
_MEASURES = ("recall_any", "recall_all", "ndcg_any")


class LongMemEvalRetrieval:
    """Scores `longmemeval_turn_recall_any_at_<k>`, `_recall_all_`, `_ndcg_any_`, and the same for `session`.

    The ids of turns are those of the dataset: `{session}_{number}`, with the suffix `a` for assistant turns. Assistant
    turns are ignored, as in the official corpus. A turn that is named but not shown keeps its rank and does not count.
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
        record, found = read_question(original), read_shown(processed)
        if record is None or "user_evidence" not in record:
            return Scores(reason="not a question of LongMemEval")
        if record.get("unanswerable"):
            return Scores(reason="abstention questions have no retrieval score")
        relevant = [str(each) for each in record["user_evidence"]]
        if not relevant:
            return Scores(reason="no turn of the user contains the answer")
        if found is None:
            return Scores(reason="the system does not report what it retrieved")
        ids = dict.fromkeys(str(each) for item in found for each in item.get("ids") or ())
        shown = set[str]().union(*list_shown_turns(found, original, processed))
        ranking = [
            each if each in shown or each not in relevant else mark_claimed(each)
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
    wanted = set(relevant)
    return _measure(wanted & set(ranking[:depth]), wanted, ranking, wanted, depth)


def measure_sessions(ranking: Sequence[str], relevant: Iterable[str], depth: int) -> dict[str, float]:
    """Measure sessions: read the ranking of turns until `depth` different sessions are found.

    A turn of an evidence session without the answer counts as a different session, as in the official code.
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


_SOURCES = "conversations?|history|dialogue|chats?|context|memory|memories|summary|messages?|you|user"
_REFUSALS = re.compile(
    rf"""no\ information\ (?:is\ )?(?:available|provided|found|given)|not\ mentioned|
    (?:is|was|are|were|has|have)\ not\ (?:been\ )?(?:stated|specified|provided|known|told|said|given|come\ up|
    in\ (?:the|my)\ (?:{_SOURCES}))|
    (?:isn't|wasn't|aren't|weren't)\ (?:mentioned|stated|specified|provided|known)|
    \b(?:i|we)\ (?:do|did)(?:n't|\ not)\ (?:know|recall|remember|
    have\ (?:any|that|this|the|enough|information|a\ record))|
    \b(?:{_SOURCES})\ (?:do|does|did)(?:n't|\ not)\ (?:mention|say|state|specify|tell|contain)|
    \b(?:i|it|this|that)\ (?:cannot|can't|can\ not|could\ not|couldn't|am\ unable\ to)\ (?:be\ )?
    (?:answer|determine|find|recall|tell|say|know)|
    \b(?:there\ is|there's|i\ have|i've|have)\ no\ (?:record|mention|memory|memories|answer|information|data)|
    \bno\ (?:record|mention)\ of\b|unanswerable|^\W*(?:unknown|none|n/a|no\ answer|not\ known)\W*$|^\W*not\ known\b|
    (?:not\ enough|insufficient)\ information|\byou\ (?:have\ )?never\ (?:mentioned|told|said|stated)|
    \bnever\ (?:mentioned|came\ up|been\ mentioned|said\ (?:how|when|where|what|who|which))""",
    re.IGNORECASE | re.VERBOSE,
)


def is_refusal(answer: str) -> bool:
    """Whether an answer is a refusal; an empty answer counts as one."""
    return not answer.strip() or _REFUSALS.search(answer.replace("\u2019", "'")) is not None


class Abstention:
    """Scores `abstention` on questions with a partner: refusing is right for the unanswerable question of a `pair`.

    Refusing is wrong for the answerable question. So the mean over matched pairs is the balanced accuracy: a system
    that always or never refuses scores 0.5. `refused` is 1 for every refused question.
    """

    name = "abstention"
    version = 3
    score_fields = ("abstention", "refused")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        record = read_question(original)
        if record is None:
            return Scores(reason="not a question about a conversation")
        if not isinstance(processed.get("response"), str):
            return Scores(reason="the system gave no answer")
        if processed.get("read_by_script"):
            return Scores(reason=READ_BY_SCRIPT)
        refused = is_refusal(response_text(processed))
        scores = {"refused": float(refused)}
        if record.get("pair"):
            scores["abstention"] = float(refused == bool(record.get("unanswerable")))
        return Scores(scores)


class MemoryChoice:
    """Scores `memory_choice`: 1.0 if the reply chooses the right letter and no other letter.

    A reply with the text of exactly one option chooses it; MemBench's own code accepts only letters. The options are
    part of the question, and only its record has the right letter, so that no field reveals it.
    """

    name = "memory-choice"
    version = 2
    needs_answer = True
    score_fields = ("memory_choice",)

    def __init__(self) -> None:
        self._reader = MultipleChoiceAccuracy()

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        record = read_question(original)
        if record is None or not record.get("correct_letter"):
            return Scores(reason="not a multiple-choice question")
        if not response_text(processed).strip():
            return Scores({"memory_choice": 0.0})
        asked = {key: record[key] for key in ("correct_letter", "choices") if key in record}
        return Scores({"memory_choice": self._reader.score({**original, **asked}, processed)["mc_accuracy"]})


_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the|and)\b")
_CORRUPTING = ("H", "T", "A", "M", "I")


class LocomoScore:
    """Scores `locomo_f1` (categories 1 to 4), `locomo_refusal` (5), each category by name, and `locomo_official`.

    `locomo_f1_clean` is `locomo_f1` without the questions whose gold is known to be wrong. `locomo_official` is the
    authors' mean over all five categories; because always refusing scores 0.228, it is not the primary score.
    """

    name = "locomo"
    version = 2
    score_fields = (
        *("locomo_f1", "locomo_f1_clean", "locomo_refusal", "locomo_official"),
        *(f"locomo_{name}" for name in CATEGORIES.values()),
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        record = read_question(original)
        category = record.get("category") if record else None
        if record is None or category not in CATEGORIES:
            return Scores(reason="not a question of LoCoMo")
        if not isinstance(processed.get("response"), str):
            return Scores(reason="the system gave no answer")
        answer = response_text(processed)
        if category == 5:
            value = float(is_official_refusal(_read_choice(answer, record.get("options"))))
            scores = {"locomo_refusal": value}
        else:
            golds = gold_answers(original)
            if not golds:
                return Scores(reason="no gold answer")
            value = score_answer(category, answer, golds[0][0])
            scores = {"locomo_f1": value}
            if record.get("known_error") not in _CORRUPTING:
                scores["locomo_f1_clean"] = value
        return Scores({**scores, "locomo_official": value, f"locomo_{CATEGORIES[category]}": value})


def score_answer(category: int, answer: str, gold: str) -> float:
    if category == 3:
        gold = gold.split(";")[0].strip()
    if category != 1:
        return _score_words(answer, gold)
    parts = [part.strip() for part in answer.split(",")]
    golds = [part.strip() for part in gold.split(",")]
    return sum(max(_score_words(part, each) for part in parts) for each in golds) / len(golds)


def is_official_refusal(answer: str) -> bool:
    """Whether an answer to category 5 is right by the official rule."""
    lowered = answer.lower()
    return "no information available" in lowered or "not mentioned" in lowered


def _score_words(answer: str, gold: str) -> float:
    return token_f1(_split_stems(answer), _split_stems(gold))[0]


def _split_stems(text: str) -> list[str]:
    plain = text.replace(",", "").lower().translate(_WITHOUT_PUNCTUATION)
    return [stem_word(word) for word in _ARTICLES.sub(" ", plain).split()]


def _read_choice(answer: str, options: Any) -> str:
    """Replace the letter of a choice by its text. As in the official code, only `a` and `(a)` are accepted forms."""
    chosen = answer.strip().lower()
    if not isinstance(options, Mapping) or len(chosen) not in (1, 3):
        return answer
    letter = "a" if chosen in ("a", "(a)") else "b"
    return str(options[letter])
