"""`convomem`: questions whose evidence lies in one to six conversations, among any number of others (Salesforce, 2025).

Not verified on real records: made after the authors' description. What fills the history up to `size` conversations is
taken from other items of the same file, about other people, in seeded order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from context_bench.datasets.synthetic.draw import Draw
from context_bench.errors import DataError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles, choose_types, find_files
from context_bench.memory.systems.turn_store import check_count

TYPES = ("user", "assistant_facts", "changing", "abstention", "preference", "implicit_connection")
_RULES = {"changing": "update", "preference": "rubric", "implicit_connection": "rubric"}
_SOURCE = "https://huggingface.co/datasets/Salesforce/ConvoMem (core_benchmark; code Apache-2.0)"


def load(
    size: int = 10,
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """Questions whose evidence lies in one to six conversations, among any number of others.

    Args:
        size: Conversations in a history; the authors use 2 to 300.
        data_dir: A folder whose `convomem/` holds `core_benchmark`; CONTEXT_BENCH_DATA by default.
        n: At most so many histories.
        seed: For what fills them up, and the order.
        types: The categories to ask; all by default.
    """
    check_count(size, "size")
    chosen = choose_types(types, TYPES, "convomem")
    patterns = ("core_benchmark/evidence_questions/*/*_evidence/**/*.json", "**/*.json")
    files = find_files("convomem", patterns, data_dir, _SOURCE)
    return ConversationFiles("convomem", files, partial(_mix, size=size, seed=seed), n, chosen, _read_shard)


def _read_shard(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        items = orjson.loads(path.read_bytes())["evidence_items"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError(f"convomem: {path}: not a file of evidence_items ({error})") from error
    for number, item in enumerate(items):
        kind = _find_type(str(item.get("category") or ""), path)
        others = [each for each in items if each is not item and each.get("personId") != item.get("personId")]
        yield f"{path}, item {number + 1}", {**item, "_type": kind, "_others": others, "_id": f"{path.stem}-{number}"}


def _find_type(category: str, path: Path) -> str:
    """Find the type by the item's category, or by the name of its folder."""
    for text in (category.lower(), *(part.lower() for part in reversed(path.parts[:-1]))):
        for name in ("implicit", "abstention", "assistant", "changing", "preference", "user"):
            if name in text:
                return next(each for each in TYPES if each.startswith(name))
    raise DataError(f"convomem: {path}: neither the category {category!r} nor a folder names one of {', '.join(TYPES)}")


def _mix(record: Mapping[str, Any], place: str, *, size: int, seed: int) -> Iterable[Conversation]:
    """Put the evidence conversations of an item among others."""
    draw = Draw("convomem", seed, record["_id"])
    own = list(record["conversations"])
    pool = [each for item in record["_others"] for each in item["conversations"]]
    mixed = list(own)
    for other in draw.sample(pool, min(max(0, size - len(own)), len(pool))):
        mixed.insert(draw.between(0, len(mixed)), other)  # the own ones keep their order: changes must stay changes
    texts = {str(each["text"]).strip() for each in record["message_evidences"]}
    turns: list[Turn] = []
    evidence: list[str] = []
    for number, conversation in enumerate(mixed, 1):
        is_own = any(conversation is each for each in own)
        for step, message in enumerate(conversation["messages"], 1):
            turn = _read_turn(message, f"c{number}", step)
            turns.append(turn)
            if is_own and turn["content"].strip() in texts:
                evidence.append(turn["id"])
    meta = {"conversations": len(mixed), "wanted": size}
    return [Conversation(id=record["_id"], turns=turns, questions=[_read_question(record, evidence)], meta=meta)]


def _read_turn(message: Mapping[str, Any], session: str, number: int) -> Turn:
    speaker = str(message["speaker"])
    role = "user" if speaker.lower() == "user" else "assistant"
    text = str(message["text"])
    return Turn(id=f"{session}:{number}", role=role, speaker=speaker, content=text, timestamp=None, session=session)


def _read_question(record: Mapping[str, Any], evidence: list[str]) -> Question:
    return Question(
        id="0",
        question=str(record["question"]),
        answer=str(record["answer"]),
        type=record["_type"],
        rule=_RULES.get(record["_type"], "exact"),
        evidence_ids=evidence,
        evidence_sessions=list(dict.fromkeys(each.split(":")[0] for each in evidence)),
        unanswerable=record["_type"] == "abstention",
    )
