"""Scores of answers from memory: refusals, multiple choice as MemBench has it, and LoCoMo's official score.

Refusals are judged over matched answerable and unanswerable questions. LoCoMo's rules give the same numbers as its
authors' code. Category 2 and 4: F1 of stemmed words. 3: against the gold up to its first ";". 1: gold and answer are
split at commas, and each part of the gold takes its best. 5: the answer must hold "no information available" or "not
mentioned".
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from context_bench.evaluators.choice import MultipleChoiceAccuracy
from context_bench.memory.datasets.long_conversations import CATEGORIES
from context_bench.memory.scoring import READ_BY_SCRIPT, read_question
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text, token_f1
from context_bench.text.words import stem_word

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
    """Tell whether an answer says that it cannot be given; an empty one says so too."""
    return not answer.strip() or _REFUSALS.search(answer.replace("\u2019", "'")) is not None


class Abstention:
    """Scores `abstention` on questions that have a partner: an unanswerable one is right when it is refused.

    Each answerable question with the same `pair` is right when it is not refused, so that over matched pairs the mean
    is the balanced accuracy: to refuse always, or never, earns 0.5. `refused` tells it for every question.
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
    """Scores `memory_choice`: 1.0 when the reply chooses the right letter, and no other.

    The options stand in the text of the question, and the right letter in its record: a memory is asked with them, and
    no other field of the example gives them away.

    A reply that gives the text of exactly one option chooses it, as with `MultipleChoiceAccuracy`, which reads the
    reply. MemBench's own code takes the letter alone.
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

    `locomo_f1_clean` is `locomo_f1` without the questions whose gold is known to be wrong. `locomo_official` is over
    all five categories, as the authors' code adds them up; always refusing earns 0.228 there, so it is no headline.
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
    """Score an answer of category 1 to 4."""
    if category == 3:
        gold = gold.split(";")[0].strip()
    if category != 1:
        return _score_words(answer, gold)
    parts = [part.strip() for part in answer.split(",")]
    golds = [part.strip() for part in gold.split(",")]
    return sum(max(_score_words(part, each) for part in parts) for each in golds) / len(golds)


def is_official_refusal(answer: str) -> bool:
    """Tell whether an answer to category 5 is right by the official rule."""
    lowered = answer.lower()
    return "no information available" in lowered or "not mentioned" in lowered


def _score_words(answer: str, gold: str) -> float:
    return token_f1(_split_stems(answer), _split_stems(gold))[0]


def _split_stems(text: str) -> list[str]:
    plain = text.replace(",", "").lower().translate(_WITHOUT_PUNCTUATION)
    return [stem_word(word) for word in _ARTICLES.sub(" ", plain).split()]


def _read_choice(answer: str, options: Any) -> str:
    """Replace the letter of a choice by its text, as the official code does: `a`, `(a)`, and no other form."""
    chosen = answer.strip().lower()
    if not isinstance(options, Mapping) or len(chosen) not in (1, 3):
        return answer
    letter = "a" if chosen in ("a", "(a)") else "b"
    return str(options[letter])
