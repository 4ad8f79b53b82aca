"""`halumem`: twenty users with dialogues of months, what should be remembered of each, and questions (MemTensor, 2025).

Not verified on real records: made after the authors' description. The memory points of each session, with updates and
interference, are in the `meta` of the conversation, for systems that list their `memories()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles, find_files

VARIANTS = {"medium": ("*[Mm]edium*.jsonl",), "long": ("*[Ll]ong*.jsonl",)}
_SOURCE = "https://huggingface.co/datasets/IAAR-Shanghai/HaluMem (CC BY-NC-ND 4.0)"


def load(
    variant: str = "medium",
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """Twenty users with dialogues of months, what should be remembered of each, and questions.

    Args:
        variant: `medium` has about 160,000 tokens for each user, `long` a million.
        data_dir: A folder whose `halumem/` holds the file; CONTEXT_BENCH_DATA by default.
        n: At most so many users.
        seed: Not used.
        types: The types of questions, as the file names them; all by default.
    """
    if variant not in VARIANTS:
        raise UsageError(f"halumem has the variants {', '.join(VARIANTS)} (got {variant!r})")
    chosen = [each.strip() for each in types.split(",")] if isinstance(types, str) else types
    files = find_files("halumem", VARIANTS[variant], data_dir, _SOURCE)
    return ConversationFiles("halumem", files[:1], _convert, n, chosen or None)


def _convert(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    turns: list[Turn] = []
    questions: list[Question] = []
    points: list[dict[str, Any]] = []
    for number, session in enumerate(record["sessions"], 1):
        if str(session.get("is_generated_qa_session")).lower() == "true":
            continue  # made to ask, not to be remembered
        name = f"s{number}"
        turns += _read_turns(session, name)
        points += [_read_point(point, name) for point in session.get("memory_points") or ()]
        questions += [
            _read_question(item, f"{name}-{place_in}", name)
            for place_in, item in enumerate(session.get("questions") or ())
        ]
    meta = {"memory_points": points}
    return [Conversation(id=str(record["uuid"]), turns=turns, questions=questions, meta=meta)]


def _read_turns(session: Mapping[str, Any], name: str) -> Iterator[Turn]:
    for number, turn in enumerate(session["dialogue"], 1):
        role = str(turn["role"])
        yield Turn(
            id=f"{name}:{number}",
            role=role,
            speaker=role.capitalize(),
            content=str(turn["content"]),
            timestamp=_read_date(turn["timestamp"]),
            session=name,
        )


def _read_date(text: str) -> str:
    """Read "Dec 15, 2025, 06:11:23"."""
    return datetime.strptime(text.strip(), "%b %d, %Y, %H:%M:%S").isoformat()


def _read_point(point: Mapping[str, Any], session: str) -> dict[str, Any]:
    """Read what should be remembered; truth is written as a text in the file."""
    return {
        "text": str(point["memory_content"]),
        "type": str(point["memory_type"]),
        "source": str(point["memory_source"]),  # of `interference` nothing should be remembered
        "is_update": str(point["is_update"]).lower() == "true",
        "replaces": [str(each) for each in point.get("original_memories") or ()],
        "importance": float(point["importance"]),
        "session": session,
    }


def _read_question(item: Mapping[str, Any], name: str, session: str) -> Question:
    """Read a question. Its evidence is told as memories and not as turns: there are no evidence ids."""
    return Question(
        id=name,
        question=str(item["question"]),
        answer=str(item["answer"]),
        type=str(item["question_type"]),
        evidence_ids=[],
        evidence_sessions=[session],
        evidence_texts=[str(each["memory_content"]) for each in item.get("evidence") or ()],
    )
