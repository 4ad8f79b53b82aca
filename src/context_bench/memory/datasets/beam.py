"""`beam`: chats of 100 thousand to 10 million tokens, twenty questions each, judged by rubric (Tavakoli et al., 2025).

Not verified on real records: made after the layout of the authors' repository. Golds of that repository contradict its
rubrics in places; the rubric counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from context_bench.errors import DataError, UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles, choose_types, find_files, match_pairs

ABILITIES = (
    *("abstention", "contradiction_resolution", "event_ordering", "information_extraction", "instruction_following"),
    *("knowledge_update", "multi_session_reasoning", "preference_following", "summarization", "temporal_reasoning"),
)
SIZES = ("100K", "500K", "1M", "10M")
_GOLDS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
_SOURCE = "https://github.com/mohammadtavakoli78/BEAM (folder chats; no licence stated)"
_MARK = re.compile(r"\s*->->[\s\d,.]*$")


def load(
    size: str = "100K",
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """Chats of 100 thousand to 10 million tokens, with twenty questions each, judged by rubric.

    Args:
        size: 100K, 500K, 1M or 10M.
        data_dir: A folder whose `beam/` holds the `chats` of the repository; CONTEXT_BENCH_DATA by default.
        n: At most so many conversations.
        seed: Not used.
        types: The abilities to ask for; all by default.
    """
    if size not in SIZES:
        raise UsageError(f"beam has the sizes {', '.join(SIZES)} (got {size!r})")
    chosen = choose_types(types, ABILITIES, "beam")
    files = find_files("beam", (f"chats/{size}/*/chat.json",), data_dir, _SOURCE)
    files.sort(key=lambda path: (len(path.parent.name), path.parent.name))  # 2 before 10
    return ConversationFiles("beam", files, partial(_convert, size=size), n, chosen, _read_folder)


def _read_folder(path: Path) -> Iterator[tuple[str, Any]]:
    """Read a chat with its questions; a shortened chat, where there is one, is that of the size."""
    shortened = path.with_name("chat_trunecated.json")  # as the authors spell it
    chat = shortened if shortened.is_file() else path
    questions = path.parent / "probing_questions" / "probing_questions.json"
    if not questions.is_file():
        raise DataError(f"beam: {questions}: no such file")
    try:
        read = {"chat": orjson.loads(chat.read_bytes()), "questions": orjson.loads(questions.read_bytes())}
    except orjson.JSONDecodeError as error:
        raise DataError(f"beam: {path.parent}: broken JSON: {error}") from error
    yield str(path.parent), {**read, "id": path.parent.name}


def _convert(record: Mapping[str, Any], place: str, *, size: str) -> Iterable[Conversation]:
    turns = list(_read_turns(record["chat"]))
    known = {turn["id"] for turn in turns}
    questions = [
        _read_question(item, ability, number, known)
        for ability, items in record["questions"].items()
        for number, item in enumerate(items)
    ]
    match_pairs(questions)
    return [Conversation(id=f"{size}-{record['id']}", turns=turns, questions=questions, meta={"size": size})]


def _read_turns(chat: Any) -> Iterator[Turn]:
    """Yield the messages of all batches; those of 10M lie one level deeper, by plan."""
    for batch in chat:
        if "turns" not in batch:  # {"plan-1": [batch, ...], "plan-2": null}
            for part in batch.values():
                yield from _read_turns(part or ())
            continue
        anchor = batch.get("time_anchor")
        for group in batch["turns"]:
            for message in group:
                anchor = message.get("time_anchor") or anchor
                yield Turn(
                    id=str(message["id"]),
                    role=str(message["role"]),
                    speaker=str(message["role"]).capitalize(),
                    content=_MARK.sub("", str(message["content"])),
                    timestamp=_read_date(anchor),
                    session=f"batch_{batch.get('batch_number')}",
                )


def _read_date(text: Any) -> str | None:
    """Read "March-15-2024"."""
    return datetime.strptime(str(text).strip(), "%B-%d-%Y").isoformat() if text else None


def _read_question(item: Mapping[str, Any], ability: str, number: int, known: set[str]) -> Question:
    if ability not in ABILITIES:
        raise ValueError(f"an ability must be one of {', '.join(ABILITIES)} (got {ability!r})")
    gold = next((item[field] for field in _GOLDS if item.get(field)), None)
    question = Question(
        id=f"{ability}-{number}",
        question=str(item["question"]),
        type=ability,
        rubric=[str(each) for each in item["rubric"]],
        evidence_ids=[each for each in _flatten(item.get("source_chat_ids")) if each in known],
        unanswerable=ability == "abstention",
    )
    if gold is not None:
        question["answer"] = gold if isinstance(gold, str) else "\n".join(map(str, gold))
    return question


def _flatten(ids: Any) -> list[str]:
    """List message ids, which come as a list or as lists by name."""
    if isinstance(ids, Mapping):
        ids = list(ids.values())
    if isinstance(ids, list):
        return list(dict.fromkeys(each for part in ids for each in _flatten(part)))
    return [] if ids is None else [str(ids)]
