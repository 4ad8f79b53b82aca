"""`longmemeval`: 500 questions, each with a history of its own (Wu et al., 2025): `s`, `m` and `oracle`.

`s` has about 115,000 tokens of history for each question, `m` about 500 sessions, `oracle` the evidence sessions alone.
The marks of evidence (`has_answer`) are used for gold and never shown. Not verified on real records: made after the
authors' description and code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles, choose_types, find_files

TYPES = (
    *("single-session-user", "single-session-assistant", "single-session-preference"),
    *("multi-session", "temporal-reasoning", "knowledge-update"),
)
VARIANTS = {
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s.json"),
    "m": ("longmemeval_m_cleaned.json", "longmemeval_m.json"),
    "oracle": ("longmemeval_oracle.json",),
}
"""The files of each variant: the cleaned one of September 2025 before the first one."""

KNOWN_ERRORS = {
    "a3332713": "the gold was wrong before the cleaned release",
    "ad7109d1": "the gold was wrong before the cleaned release",
    "eac54add": "the evidence names a wrong session",
    "51a45a95": "has_answer is incomplete",
    **dict.fromkeys(("370a8ff4", "gpt4_88806d6e", "9aaed6a3", "gpt4_f420262d"), "the dates do not give the gold"),
}
"""Questions whose gold is reported to be wrong (issues 11, 12, 22, 37, 40 and 50 of the authors' repository)."""

_SOURCE = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned (MIT)"
_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2})[^\d]*(?:(\d{1,2}):(\d{2}))?")


def load(
    variant: str = "s",
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """500 questions, each with a history of its own; a file of gigabytes is read one record at a time.

    Args:
        variant: `s`, `m` or `oracle`.
        data_dir: A folder whose `longmemeval/` holds the file; CONTEXT_BENCH_DATA by default.
        n: At most so many conversations, which have one question each.
        seed: Not used.
        types: The types of questions to ask; all by default. `abstention` questions keep their type.
    """
    if variant not in VARIANTS:
        raise UsageError(f"longmemeval has the variants {', '.join(VARIANTS)} (got {variant!r})")
    chosen = choose_types(types, TYPES, "longmemeval")
    files = find_files("longmemeval", VARIANTS[variant], data_dir, _SOURCE)
    return ConversationFiles("longmemeval", files[:1], _convert, n, chosen)


def _convert(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    turns: list[Turn] = []
    evidence: list[str] = []
    for session, when, messages in _order_sessions(record):
        for number, message in enumerate(messages, 1):
            # The ids of the official corpus, which has user turns alone; those of the assistant are marked.
            turn_id = f"{session}_{number}" if message["role"] == "user" else f"{session}_{number}a"
            turns.append(
                Turn(
                    id=turn_id,
                    role=str(message["role"]),
                    speaker=str(message["role"]).capitalize(),
                    content=str(message["content"]),
                    timestamp=when,
                    session=session,
                )
            )
            if message.get("has_answer"):
                evidence.append(turn_id)
    question = _read_question(record, evidence)
    question["user_evidence"] = [each for each in evidence if not each.endswith("a")]
    return [Conversation(id=str(record["question_id"]), turns=turns, questions=[question], meta={})]


def _order_sessions(record: Mapping[str, Any]) -> list[tuple[str, str, Sequence[Mapping[str, Any]]]]:
    """Pair ids, dates and sessions, in the order of their dates: those of `oracle` are unsorted."""
    ids, dates, sessions = (record[f"haystack_{name}"] for name in ("session_ids", "dates", "sessions"))
    if not len(ids) == len(dates) == len(sessions):
        raise ValueError(f"{len(ids)} ids, {len(dates)} dates and {len(sessions)} sessions")
    joined = [(str(name), _read_date(when), messages) for name, when, messages in zip(ids, dates, sessions)]
    return sorted(joined, key=lambda each: each[1])


def _read_date(text: str) -> str:
    """Read "2023/05/30 (Tue) 23:40"."""
    found = _DATE.match(text.strip())
    if found is None:
        raise ValueError(f"a date must be like 2023/05/30 (Tue) 23:40 (got {text!r})")
    return datetime(*(int(part or 0) for part in found.groups())).isoformat()  # type: ignore[arg-type]


def _read_question(record: Mapping[str, Any], evidence: list[str]) -> Question:
    name = str(record["question_id"])
    if record["question_type"] not in TYPES:
        raise ValueError(f"question_type must be one of {', '.join(TYPES)} (got {record['question_type']!r})")
    question = Question(
        id="0",
        question=f"Current date: {record['question_date']}. {record['question']}",
        answer=str(record["answer"]),  # of an abstention question it is an explanation, of a preference a rubric
        type=str(record["question_type"]),
        evidence_ids=evidence,
        evidence_sessions=[str(each) for each in record["answer_session_ids"]],
        unanswerable="_abs" in name,
        date=_read_date(record["question_date"]),
    )
    if name in KNOWN_ERRORS:
        question["known_error"] = KNOWN_ERRORS[name]
    return question
