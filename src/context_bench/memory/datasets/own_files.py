"""Conversations of one's own: a .jsonl or .json file with turns and questions in each record.

    {"id": "c1", "turns": [{"role": "user", "content": "..."}], "questions": [{"question": "...", "answer": "..."}]}

All other fields of turns and questions are those of `context_bench.memory.conversations`; missing ids are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.errors import DataError, suggest_file
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles
from context_bench.memory.datasets.matched_pairs import match_pairs

__all__ = ["load"]

_ROLES = ("user", "assistant", "system")


def load(
    path: str | Path,
    data_dir: object = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """Read a file of conversations with questions.

    Args:
        path: The file.
        data_dir: Not used.
        n: At most so many conversations.
        seed: Not used.
        types: The types of questions to ask; all by default.
    """
    path = Path(path)
    if path.suffix not in (".jsonl", ".json"):
        raise DataError(f"{path}: a file of conversations must end in .jsonl or .json")
    if not path.is_file():
        raise DataError(f"{path}: no such file{suggest_file(path)}")
    chosen = types.replace("|", ",").split(",") if isinstance(types, str) else types
    return ConversationFiles(path.stem, [path], _convert, n, chosen or None)


def _convert(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    """Check a record, and fill in what is missing; numbers stand for missing ids."""
    for field in ("turns", "questions"):
        if not isinstance(record.get(field), list) or not record[field]:
            raise DataError(f"{place}: {field} must be a list that is not empty")
    turns = [_read_turn(turn, number, place) for number, turn in enumerate(record["turns"], 1)]
    ids = [turn["id"] for turn in turns]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise DataError(f"{place}: two turns have the id {twice!r}")
    known = set(ids)
    questions = [_read_question(each, number, place, known) for number, each in enumerate(record["questions"])]
    if len({question["id"] for question in questions}) < len(questions):
        raise DataError(f"{place}: two questions have the same id")
    if not any("pair" in question for question in questions):
        match_pairs(questions)
    name = str(record.get("id") or place.rpartition(" ")[2])
    return [Conversation(id=name, turns=turns, questions=questions, meta=dict(record.get("meta") or {}))]


def _read_turn(turn: Any, number: int, place: str) -> Turn:
    where = f"{place}: turn {number}"
    if not isinstance(turn, Mapping) or not isinstance(turn.get("content"), str):
        raise DataError(f"{where} must be an object with a text `content`")
    role = turn.get("role", "user")
    if role not in _ROLES:
        raise DataError(f"{where}: role must be one of {', '.join(_ROLES)} (got {role!r})")
    session = str(turn.get("session", "1"))
    return Turn(**{**turn, "role": role, "id": str(turn.get("id", number)), "session": session})  # type: ignore[typeddict-item]


def _read_question(question: Any, number: int, place: str, known: set[str]) -> Question:
    where = f"{place}: question {number + 1}"
    if not isinstance(question, Mapping) or not str(question.get("question") or "").strip():
        raise DataError(f"{where} must be an object with a text `question`")
    evidence = [str(each) for each in question.get("evidence_ids") or ()]
    unknown = [each for each in evidence if each not in known]
    if unknown:
        raise DataError(f"{where}: evidence {unknown[0]!r} is not the id of a turn")
    filled = {"id": str(question.get("id", number)), "type": str(question.get("type") or "question")}
    return Question(**{**question, **filled, "evidence_ids": evidence})  # type: ignore[typeddict-item]
