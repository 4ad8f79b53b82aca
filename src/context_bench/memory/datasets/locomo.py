"""`locomo`: ten long conversations of two people, 1,986 questions in five categories (Maharana et al., 2024).

Captions of shared pictures are shown; the `query` by which a picture was searched is not, because it holds gold
words. Summaries and observations of the file are hidden as well: they were made by a model that knew the
conversation.

Golds that are known to be wrong, by sample and place in `qa`, come from the audit dial481/locomo-audit (commit
9493fb4, CC BY-NC 4.0), made by a model with human review, categories 1 to 4: 99 golds that cost or give points
wrongly, so that no honest system can pass 93.57%, and 57 whose answer is right but whose evidence is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from context_bench.datasets.synthetic.draw import Draw
from context_bench.errors import UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles, choose_types, find_files, match_pairs

KINDS = {
    "H": "the gold is not in the conversation",
    "T": "the gold has a wrong date",
    "A": "the gold is about the other speaker",
    "M": "the question is ambiguous",
    "I": "the gold is incomplete",
    "W": "the evidence is wrong",
}
"""The letters of the list; W concerns retrieval alone."""

_ERRORS = """
conv-26: H 2 23 26 56 149; T 5 135; A 94 138 144; M 43 66 77; I 32 137; W 1 4 37 38 48 70 72 106 107 111 132 139
conv-30: T 31; A 57; M 47 63; W 24 43 44
conv-41: T 48 68 69; A 129; M 63; W 5 10 16 32 44 49 116
conv-42: H 4 34 52 58 61 66 81 91; T 24 43 73; A 119; M 68; I 5; W 50 51 54 55 67 69 88 184
conv-43: H 9 128; T 6 16 56 60; A 74 86 135 136 164 165 166; W 11 17 26 59
conv-44: H 2; T 5 37 57; M 4 18 41; W 8 51 103
conv-47: H 2 17; T 11 31 61 88; A 37; M 65; W 19 24 38 53 93 113 115
conv-48: H 0 75 87; A 116 123 174 179; W 78 105 117 152 155 188
conv-49: H 4 18 33 36 37 43 54 106; T 74 80 102 103; A 24 144; W 7 28
conv-50: H 1 19 60 63; T 50 62; A 88 137 147 151; M 29 72; W 11 58 69 105 111
"""


@cache
def _read_errors() -> dict[tuple[str, int], str]:
    errors: dict[tuple[str, int], str] = {}
    for line in _ERRORS.strip().splitlines():
        sample, _, kinds = line.partition(": ")
        for group in kinds.split("; "):
            kind, *places = group.split()
            errors.update({(sample, int(place)): kind for place in places})
    return errors


def find_known_error(sample: str, index: int) -> str | None:
    """Find the letter of the error that a question is known to have; None for most."""
    return _read_errors().get((sample, index))


CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
"""The names of the paper, whose table has the columns in the order 4, 1, 2, 3, 5."""

PROTOCOLS = ("free", "choice")
"""How category 5 is asked: freely, or as a choice between the false answer and a refusal, as the official code does."""

REFUSAL = "Not mentioned in the conversation"
_SOURCE = "https://github.com/snap-research/locomo (data/locomo10.json, CC BY-NC 4.0)"
_SHORT = "Answer with a short phrase, in words of the conversation where possible."
_DATED = f"{_SHORT} Use the date of the conversation to give an approximate date."
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # also "D:11:26", "D30:05" and several in one text
_SESSION = re.compile(r"session_(\d+)")


def load(
    refusal: str = "free",
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """Ten long conversations of two people, with 1,986 questions in five categories.

    Args:
        refusal: `free` or `choice`: the protocol of category 5.
        data_dir: A folder whose `locomo/` holds the file; CONTEXT_BENCH_DATA by default.
        n: At most so many conversations.
        seed: For the order of the two choices of category 5.
        types: The categories to ask, by name; all by default.
    """
    if refusal not in PROTOCOLS:
        raise UsageError(f"refusal must be one of {', '.join(PROTOCOLS)} (got {refusal!r})")
    chosen = choose_types(types, tuple(CATEGORIES.values()), "locomo")
    files = find_files("locomo", ("locomo10.json", "*.json"), data_dir, _SOURCE)
    return ConversationFiles("locomo", files[:1], partial(_convert, refusal=refusal, seed=seed), n, chosen)


def _convert(record: Mapping[str, Any], place: str, *, refusal: str, seed: int) -> Iterable[Conversation]:
    turns = list(_read_turns(record["conversation"]))
    known = {turn["id"] for turn in turns}
    sample = str(record["sample_id"])
    questions = [_read_question(item, index, sample, known, refusal, seed) for index, item in enumerate(record["qa"])]
    match_pairs(questions)
    speakers = [record["conversation"]["speaker_a"], record["conversation"]["speaker_b"]]
    return [Conversation(id=sample, turns=turns, questions=questions, meta={"speakers": speakers})]


def _read_turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield the turns; there are dates of sessions that do not exist, and keys are not in order."""
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        when = _read_date(conversation[f"session_{number}_date_time"])
        for turn in conversation[f"session_{number}"]:
            speaker = str(turn["speaker"])
            caption = turn.get("blip_caption")
            yield Turn(
                id=str(turn["dia_id"]),
                role="user" if speaker == conversation["speaker_a"] else "assistant",
                speaker=speaker,
                content=f"{turn['text']} [shares {caption}]" if caption else str(turn["text"]),
                timestamp=when,
                session=f"session_{number}",
            )


def _read_date(text: str) -> str:
    """Read "1:56 pm on 8 May, 2023"."""
    return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").isoformat()


def _read_question(
    item: Mapping[str, Any], index: int, sample: str, known: set[str], refusal: str, seed: int
) -> Question:
    category = int(item["category"])
    named = [f"D{int(a)}:{int(b)}" for text in item["evidence"] for a, b in _EVIDENCE.findall(str(text))]
    evidence = list(dict.fromkeys(each for each in named if each in known))
    question = Question(
        id=str(index),  # twelve questions are asked twice: the text is no key
        question=str(item["question"]),
        type=CATEGORIES[category],
        category=category,
        evidence_ids=evidence,
        evidence_sessions=list(dict.fromkeys(f"session_{each[1:].split(':')[0]}" for each in evidence)),
        unanswerable=category == 5,
        instruction=_DATED if category == 2 else _SHORT,
    )
    if category == 5:
        question["answer"] = "No information available"
        if refusal == "choice":
            _offer_choice(question, str(item["adversarial_answer"]), Draw("locomo", seed, sample, index))
    else:
        question["answer"] = str(item["answer"])  # six are numbers
    if error := find_known_error(sample, index):
        question["known_error"] = error
    return question


def _offer_choice(question: Question, false_answer: str, draw: Draw) -> None:
    """Ask for one of two answers. The options are part of the question, so that a memory sees them too."""
    options = draw.shuffle([REFUSAL, false_answer])
    question["options"] = {"a": options[0], "b": options[1]}
    question["question"] += f" Select the correct answer: (a) {options[0]} (b) {options[1]}."
    question["instruction"] = "Answer with (a) or (b)."
