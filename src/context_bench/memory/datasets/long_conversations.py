"""Public datasets with many questions about each conversation: `locomo`, `beam` and `halumem`.

`locomo` has ten long conversations of two people and 1,986 questions in five categories (Maharana et al., 2024).
Captions of shared pictures are included; the search `query` of a picture is not, because it contains gold words.
Summaries and observations of the file are omitted too: a model that knew the conversation made them. The known wrong
golds, listed by sample and index in `qa`, come from the audit dial481/locomo-audit (commit 9493fb4, CC BY-NC 4.0; by a
model with human review, categories 1 to 4). 99 wrong golds make right answers score as wrong, so no honest system can
exceed 93.57%; 57 other golds have the right answer but wrong evidence.

`beam` has chats of 100 thousand to 10 million tokens, twenty questions each, judged by rubric (Tavakoli et al., 2025).
Some golds of its repository contradict its rubrics; the rubric counts.

`halumem` has twenty users, each with months of dialogue, a list of memory points, and questions (MemTensor, 2025).
The memory points of each session, with updates and interference, are in the `meta` of the conversation, for systems
that list their `memories()`.

`beam` and `halumem` were not tested on real records: their loaders follow the authors' layout or description. Every
loader also takes `data_dir` (a folder with the files in `<dataset>/`; CONTEXT_BENCH_DATA by default), `n` (the largest
number of conversations), `seed` and `types` (the types of questions to ask, by default all).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import orjson

from context_bench.datasets.synthetic.building import Draw
from context_bench.errors import DataError, UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets import ConversationFiles, Folder, Types, choose_types, find_files, match_pairs

ERROR_KINDS = {
    "H": "the gold is not in the conversation",
    "T": "the gold has a wrong date",
    "A": "the gold is about the other speaker",
    "M": "the question is ambiguous",
    "I": "the gold is incomplete",
    "W": "the evidence is wrong",
}
"""The meaning of each letter in the list of known errors; W affects only retrieval."""

_KNOWN_ERRORS = """
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
def _read_known_errors() -> dict[tuple[str, int], str]:
    errors: dict[tuple[str, int], str] = {}
    for line in _KNOWN_ERRORS.strip().splitlines():
        sample, _, kinds = line.partition(": ")
        for group in kinds.split("; "):
            kind, *places = group.split()
            errors.update({(sample, int(place)): kind for place in places})
    return errors


CATEGORIES = {1: "multi_hop", 2: "temporal", 3: "open_domain", 4: "single_hop", 5: "adversarial"}
"""The paper's names of the categories; its table has them in the order 4, 1, 2, 3, 5."""

PROTOCOLS = ("free", "choice")
"""The forms of category 5: an open question or, in the official form, a choice between the false answer and a refusal.
"""

REFUSAL = "Not mentioned in the conversation"
_LOCOMO_SOURCE = "https://github.com/snap-research/locomo (data/locomo10.json, CC BY-NC 4.0)"
_SHORT = "Answer with a short phrase, in words of the conversation where possible."
_DATED = f"{_SHORT} Use the date of the conversation to give an approximate date."
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")  # also "D:11:26", "D30:05" and several in one text
_SESSION = re.compile(r"session_(\d+)")


def load_locomo(
    refusal: str = "free",
    data_dir: Folder = None,
    n: int | None = None,
    seed: int = 0,
    types: Types = None,
    file: str | None = None,
) -> ConversationFiles:
    """Ten long conversations of two people, with 1,986 questions in five categories."""
    if refusal not in PROTOCOLS:
        raise UsageError(f"refusal must be one of {', '.join(PROTOCOLS)} (got {refusal!r})")
    chosen = choose_types(types, tuple(CATEGORIES.values()), "locomo")
    files = find_files("locomo", ("locomo10.json", "*.json"), data_dir, _LOCOMO_SOURCE, file)
    return ConversationFiles("locomo", files[:1], partial(_convert_locomo, refusal=refusal, seed=seed), n, chosen)


def _convert_locomo(record: Mapping[str, Any], place: str, *, refusal: str, seed: int) -> Iterable[Conversation]:
    turns = list(_read_locomo_turns(record["conversation"]))
    known = {turn["id"] for turn in turns}
    sample = str(record["sample_id"])
    questions = [
        _read_locomo_question(item, index, sample, known, refusal, seed) for index, item in enumerate(record["qa"])
    ]
    match_pairs(questions)
    speakers = [record["conversation"]["speaker_a"], record["conversation"]["speaker_b"]]
    return [Conversation(id=sample, turns=turns, questions=questions, meta={"speakers": speakers})]


def _read_locomo_turns(conversation: Mapping[str, Any]) -> Iterator[Turn]:
    """Yield the turns; some dated sessions do not exist, and keys are not in order."""
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        date = conversation[f"session_{number}_date_time"].strip()  # "1:56 pm on 8 May, 2023"
        when = datetime.strptime(date, "%I:%M %p on %d %B, %Y").isoformat()
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


def _read_locomo_question(
    item: Mapping[str, Any], index: int, sample: str, known: set[str], refusal: str, seed: int
) -> Question:
    category = int(item["category"])
    named = [f"D{int(a)}:{int(b)}" for text in item["evidence"] for a, b in _EVIDENCE.findall(str(text))]
    evidence = list(dict.fromkeys(each for each in named if each in known))
    question = Question(
        id=str(index),  # twelve questions occur twice: the text is not unique
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
        question["answer"] = str(item["answer"])  # six golds are numbers
    if error := _read_known_errors().get((sample, index)):
        question["known_error"] = error
    return question


def _offer_choice(question: Question, false_answer: str, draw: Draw) -> None:
    """Make a choice of two answers. The options are part of the question, so that a memory gets them too."""
    options = draw.shuffle([REFUSAL, false_answer])
    question["options"] = {"a": options[0], "b": options[1]}
    question["question"] += f" Select the correct answer: (a) {options[0]} (b) {options[1]}."
    question["instruction"] = "Answer with (a) or (b)."


ABILITIES = (
    *("abstention", "contradiction_resolution", "event_ordering", "information_extraction", "instruction_following"),
    *("knowledge_update", "multi_session_reasoning", "preference_following", "summarization", "temporal_reasoning"),
)
SIZES = ("100K", "500K", "1M", "10M")
_GOLDS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
_BEAM_SOURCE = "https://github.com/mohammadtavakoli78/BEAM (folder chats; no licence stated)"
_MARK = re.compile(r"\s*->->[\s\d,.]*$")


def load_beam(
    size: str = "100K", data_dir: Folder = None, n: int | None = None, seed: int = 0, types: Types = None
) -> ConversationFiles:
    """Chats of 100 thousand to 10 million tokens, judged by rubric (not tested on real records)."""
    if size not in SIZES:
        raise UsageError(f"beam has the sizes {', '.join(SIZES)} (got {size!r})")
    chosen = choose_types(types, ABILITIES, "beam")
    files = find_files("beam", (f"chats/{size}/*/chat.json",), data_dir, _BEAM_SOURCE)
    files.sort(key=lambda path: (len(path.parent.name), path.parent.name))  # numeric order: 2 before 10
    return ConversationFiles("beam", files, partial(_convert_beam, size=size), n, chosen, _read_folder)


def _read_folder(path: Path) -> Iterator[tuple[str, Any]]:
    """Read a chat with its questions; prefer the truncated chat, because it has the stated size."""
    shortened = path.with_name("chat_trunecated.json")  # the authors' spelling
    chat = shortened if shortened.is_file() else path
    questions = path.parent / "probing_questions" / "probing_questions.json"
    if not questions.is_file():
        raise DataError(f"beam: {questions}: no such file")
    try:
        read = {"chat": orjson.loads(chat.read_bytes()), "questions": orjson.loads(questions.read_bytes())}
    except orjson.JSONDecodeError as error:
        raise DataError(f"beam: {path.parent}: broken JSON: {error}") from error
    yield str(path.parent), {**read, "id": path.parent.name}


def _convert_beam(record: Mapping[str, Any], place: str, *, size: str) -> Iterable[Conversation]:
    turns = list(_read_beam_turns(record["chat"]))
    known = {turn["id"] for turn in turns}
    questions = [
        _read_beam_question(item, ability, number, known)
        for ability, items in record["questions"].items()
        for number, item in enumerate(items)
    ]
    match_pairs(questions)
    return [Conversation(id=f"{size}-{record['id']}", turns=turns, questions=questions, meta={"size": size})]


def _read_beam_turns(chat: Any) -> Iterator[Turn]:
    """Yield the messages of all batches; in 10M they are one level deeper, grouped by plan."""
    for batch in chat:
        if "turns" not in batch:  # {"plan-1": [batch, ...], "plan-2": null}
            for part in batch.values():
                yield from _read_beam_turns(part or ())
            continue
        anchor = batch.get("time_anchor")
        for group in batch["turns"]:
            for message in group:
                anchor = message.get("time_anchor") or anchor  # "March-15-2024"
                when = datetime.strptime(str(anchor).strip(), "%B-%d-%Y").isoformat() if anchor else None
                yield Turn(
                    id=str(message["id"]),
                    role=str(message["role"]),
                    speaker=str(message["role"]).capitalize(),
                    content=_MARK.sub("", str(message["content"])),
                    timestamp=when,
                    session=f"batch_{batch.get('batch_number')}",
                )


def _read_beam_question(item: Mapping[str, Any], ability: str, number: int, known: set[str]) -> Question:
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
    if isinstance(ids, Mapping):
        ids = list(ids.values())
    if isinstance(ids, list):
        return list(dict.fromkeys(each for part in ids for each in _flatten(part)))
    return [] if ids is None else [str(ids)]


HALUMEM_VARIANTS = {"medium": ("*[Mm]edium*.jsonl",), "long": ("*[Ll]ong*.jsonl",)}
_HALUMEM_SOURCE = "https://huggingface.co/datasets/IAAR-Shanghai/HaluMem (CC BY-NC-ND 4.0)"


def load_halumem(
    variant: str = "medium",
    data_dir: Folder = None,
    n: int | None = None,
    seed: int = 0,
    types: Types = None,
    file: str | None = None,
) -> ConversationFiles:
    """Twenty users, each with months of dialogue and a list of memory points (not tested on real records).

    `medium` has about 160,000 tokens for each user, `long` a million.
    """
    if variant not in HALUMEM_VARIANTS:
        raise UsageError(f"halumem has the variants {', '.join(HALUMEM_VARIANTS)} (got {variant!r})")
    chosen = [each.strip() for each in types.split(",")] if isinstance(types, str) else types
    files = find_files("halumem", HALUMEM_VARIANTS[variant], data_dir, _HALUMEM_SOURCE, file)
    return ConversationFiles("halumem", files[:1], _convert_halumem, n, chosen or None)


def _convert_halumem(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    turns: list[Turn] = []
    questions: list[Question] = []
    points: list[dict[str, Any]] = []
    for number, session in enumerate(record["sessions"], 1):
        if str(session.get("is_generated_qa_session")).lower() == "true":
            continue  # a session of questions, not to be remembered
        name = f"s{number}"
        turns += _read_halumem_turns(session, name)
        points += [_read_point(point, name) for point in session.get("memory_points") or ()]
        questions += [
            _read_halumem_question(item, f"{name}-{place_in}", name)
            for place_in, item in enumerate(session.get("questions") or ())
        ]
    meta = {"memory_points": points}
    return [Conversation(id=str(record["uuid"]), turns=turns, questions=questions, meta=meta)]


def _read_halumem_turns(session: Mapping[str, Any], name: str) -> Iterator[Turn]:
    for number, turn in enumerate(session["dialogue"], 1):
        role = str(turn["role"])
        when = datetime.strptime(turn["timestamp"].strip(), "%b %d, %Y, %H:%M:%S")  # "Dec 15, 2025, 06:11:23"
        yield Turn(
            id=f"{name}:{number}",
            role=role,
            speaker=role.capitalize(),
            content=str(turn["content"]),
            timestamp=when.isoformat(),
            session=name,
        )


def _read_point(point: Mapping[str, Any], session: str) -> dict[str, Any]:
    """Read a memory point; the file has booleans as texts."""
    return {
        "text": str(point["memory_content"]),
        "type": str(point["memory_type"]),
        "source": str(point["memory_source"]),  # nothing in `interference` should be remembered
        "is_update": str(point["is_update"]).lower() == "true",
        "replaces": [str(each) for each in point.get("original_memories") or ()],
        "importance": float(point["importance"]),
        "session": session,
    }


def _read_halumem_question(item: Mapping[str, Any], name: str, session: str) -> Question:
    """Read a question. Its evidence is a list of memories without turn ids."""
    return Question(
        id=name,
        question=str(item["question"]),
        answer=str(item["answer"]),
        type=str(item["question_type"]),
        evidence_ids=[],
        evidence_sessions=[session],
        evidence_texts=[str(each["memory_content"]) for each in item.get("evidence") or ()],
    )
