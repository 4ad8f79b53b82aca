"""Public datasets with one history per question: `longmemeval`, `convomem` and `membench`.

`longmemeval` has 500 questions (Wu et al., 2025). `s` has about 115,000 tokens of history for each question, `m` about
500 sessions, and `oracle` has only the evidence sessions. The marks of evidence (`has_answer`) are used as gold and
never shown.

`convomem` has questions with evidence in one to six conversations, among any number of other conversations (Salesforce,
2025). The history is filled up to `size` conversations with other items of the same file, about other people, in seeded
order.

`membench` has short histories of remarks or dialogues with a multiple-choice question (Tan et al., 2025); the authors'
repository holds no data files.

None of the loaders was tested on real records; they follow the authors' descriptions and code. Every loader also takes
`data_dir` (a folder with the files in `<dataset>/`; CONTEXT_BENCH_DATA by default), `n` (the largest number of
histories), `seed` and `types` (the types of questions to ask; all by default).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from context_bench.datasets.synthetic.building import Draw
from context_bench.errors import DataError, UsageError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets import ConversationFiles, Folder, Types, choose_types, find_files
from context_bench.memory.systems.turn_store import check_count

LONGMEMEVAL_TYPES = (
    *("single-session-user", "single-session-assistant", "single-session-preference"),
    *("multi-session", "temporal-reasoning", "knowledge-update"),
)
LONGMEMEVAL_VARIANTS = {
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s.json"),
    "m": ("longmemeval_m_cleaned.json", "longmemeval_m.json"),
    "oracle": ("longmemeval_oracle.json",),
}
"""The files of each variant; the cleaned file of September 2025 is first."""

KNOWN_ERRORS = {
    "a3332713": "the gold was wrong before the cleaned release",
    "ad7109d1": "the gold was wrong before the cleaned release",
    "eac54add": "the evidence names a wrong session",
    "51a45a95": "has_answer is incomplete",
    **dict.fromkeys(("370a8ff4", "gpt4_88806d6e", "9aaed6a3", "gpt4_f420262d"), "the dates do not give the gold"),
}
"""Questions whose gold is reported to be wrong (issues 11, 12, 22, 37, 40 and 50 of the authors' repository)."""

_LONGMEMEVAL_SOURCE = "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned (MIT)"
_DATE = re.compile(r"(\d{4})/(\d{2})/(\d{2})[^\d]*(?:(\d{1,2}):(\d{2}))?")


def load_longmemeval(
    variant: str = "s",
    data_dir: Folder = None,
    n: int | None = None,
    seed: int = 0,
    types: Types = None,
    file: str | None = None,
) -> ConversationFiles:
    """500 questions, each with its own history (not tested on real records).

    Large files are read one record at a time.
    """
    if variant not in LONGMEMEVAL_VARIANTS:
        raise UsageError(f"longmemeval has the variants {', '.join(LONGMEMEVAL_VARIANTS)} (got {variant!r})")
    chosen = choose_types(types, LONGMEMEVAL_TYPES, "longmemeval")
    files = find_files("longmemeval", LONGMEMEVAL_VARIANTS[variant], data_dir, _LONGMEMEVAL_SOURCE, file)
    return ConversationFiles("longmemeval", files[:1], _convert_longmemeval, n, chosen)


def _convert_longmemeval(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    turns: list[Turn] = []
    evidence: list[str] = []
    for session, when, messages in _order_sessions(record):
        for number, message in enumerate(messages, 1):
            # The ids of the official corpus, which has only user turns; assistant turns are marked.
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
    question = _read_longmemeval_question(record, evidence)
    question["user_evidence"] = [each for each in evidence if not each.endswith("a")]
    return [Conversation(id=str(record["question_id"]), turns=turns, questions=[question], meta={})]


def _order_sessions(record: Mapping[str, Any]) -> list[tuple[str, str, Sequence[Mapping[str, Any]]]]:
    """Sort ids, dates and sessions by date; the files of `oracle` are unsorted."""
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


def _read_longmemeval_question(record: Mapping[str, Any], evidence: list[str]) -> Question:
    name = str(record["question_id"])
    if record["question_type"] not in LONGMEMEVAL_TYPES:
        raise ValueError(
            f"question_type must be one of {', '.join(LONGMEMEVAL_TYPES)} (got {record['question_type']!r})"
        )
    question = Question(
        id="0",
        question=f"Current date: {record['question_date']}. {record['question']}",
        answer=str(record["answer"]),  # an explanation for abstention questions, a rubric for preferences
        type=str(record["question_type"]),
        evidence_ids=evidence,
        evidence_sessions=[str(each) for each in record["answer_session_ids"]],
        unanswerable="_abs" in name,
        date=_read_date(record["question_date"]),
    )
    if name in KNOWN_ERRORS:
        question["known_error"] = KNOWN_ERRORS[name]
    return question


CONVOMEM_TYPES = ("user", "assistant_facts", "changing", "abstention", "preference", "implicit_connection")
_RULES = {"changing": "update", "preference": "rubric", "implicit_connection": "rubric"}
_CONVOMEM_SOURCE = "https://huggingface.co/datasets/Salesforce/ConvoMem (core_benchmark; code Apache-2.0)"


def load_convomem(
    size: int = 10, data_dir: Folder = None, n: int | None = None, seed: int = 0, types: Types = None
) -> ConversationFiles:
    """Questions with evidence in one to six of many conversations (not tested on real records).

    A history has `size` conversations; the authors use 2 to 300.
    """
    check_count(size, "size")
    chosen = choose_types(types, CONVOMEM_TYPES, "convomem")
    patterns = ("core_benchmark/evidence_questions/*/*_evidence/**/*.json", "**/*.json")
    files = find_files("convomem", patterns, data_dir, _CONVOMEM_SOURCE)
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
    for text in (category.lower(), *(part.lower() for part in reversed(path.parts[:-1]))):
        for name in ("implicit", "abstention", "assistant", "changing", "preference", "user"):
            if name in text:
                return next(each for each in CONVOMEM_TYPES if each.startswith(name))
    raise DataError(
        f"convomem: {path}: neither the category {category!r} nor a folder names one of {', '.join(CONVOMEM_TYPES)}"
    )


def _mix(record: Mapping[str, Any], place: str, *, size: int, seed: int) -> Iterable[Conversation]:
    draw = Draw("convomem", seed, record["_id"])
    own = list(record["conversations"])
    pool = [each for item in record["_others"] for each in item["conversations"]]
    mixed = list(own)
    for other in draw.sample(pool, min(max(0, size - len(own)), len(pool))):
        mixed.insert(
            draw.between(0, len(mixed)), other
        )  # the evidence keeps its order, since later values replace earlier ones
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
    return [
        Conversation(id=record["_id"], turns=turns, questions=[_read_convomem_question(record, evidence)], meta=meta)
    ]


def _read_turn(message: Mapping[str, Any], session: str, number: int) -> Turn:
    speaker = str(message["speaker"])
    role = "user" if speaker.lower() == "user" else "assistant"
    text = str(message["text"])
    return Turn(id=f"{session}:{number}", role=role, speaker=speaker, content=text, timestamp=None, session=session)


def _read_convomem_question(record: Mapping[str, Any], evidence: list[str]) -> Question:
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


_MEMBENCH_SOURCE = "https://github.com/import-myself/Membench (no licence stated)"


def load_membench(
    data_dir: Folder = None, n: int | None = None, seed: int = 0, types: Types = None
) -> ConversationFiles:
    """Short histories of remarks or dialogues, each with a multiple-choice question (not tested on real records)."""
    chosen = [each.strip() for each in types.split(",")] if isinstance(types, str) else types
    files = find_files("membench", ("**/*.json",), data_dir, _MEMBENCH_SOURCE)
    return ConversationFiles("membench", files, _convert_membench, n, chosen or None, _read_trajectories)


def _read_trajectories(path: Path) -> Iterator[tuple[str, Any]]:
    """Read {type: {scenario: [trajectory]}}."""
    try:
        document = orjson.loads(path.read_bytes())
        for kind, scenarios in document.items():
            for scenario, trajectories in scenarios.items():
                for trajectory in trajectories:
                    name = f"{path.stem}-{kind}-{scenario}-{trajectory['tid']}"
                    yield f"{path}, {name}", {**trajectory, "_type": kind, "_id": name}
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        problem = f"not a file of {{type: {{scenario: [trajectory]}}}} ({type(error).__name__}: {error})"
        raise DataError(f"membench: {path}: {problem}") from error


def _convert_membench(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    turns: list[Turn] = []
    steps: list[list[str]] = []
    for number, message in enumerate(record["message_list"]):
        made = list(_read_step(message, number))
        turns += made
        steps.append([turn["id"] for turn in made])
    question = _read_membench_question(record, steps)
    return [Conversation(id=record["_id"], turns=turns, questions=[question], meta={})]


def _read_step(message: Any, number: int) -> Iterator[Turn]:
    """Yield the turns of a step: one remark, or a user and an assistant message."""
    if isinstance(message, str):
        message = {"message": message}
    when = f" (place: {message.get('place')}; time: {message.get('time')})" if message.get("time") else ""
    user = message.get("message") or message.get("user") or message.get("user_message")
    reply = message.get("agent") or message.get("assistant") or message.get("assistant_message")
    if user is None:
        raise KeyError("message")
    for role, text in (("user", f"{user}{when}"), ("assistant", reply)):
        if text:
            turn_id = f"{number}" if role == "user" else f"{number}a"
            yield Turn(id=turn_id, role=role, speaker=role.capitalize(), content=str(text), timestamp=None, session="1")


def _read_membench_question(record: Mapping[str, Any], steps: list[list[str]]) -> Question:
    asked = record["QA"]
    choices = asked["choices"]
    if isinstance(choices, Mapping):
        choices = [choices[letter] for letter in sorted(choices)]
    letters = string.ascii_uppercase[: len(choices)]
    letter = str(asked["ground_truth"]).strip().upper()
    if letter not in letters:
        raise ValueError(f"ground_truth must be one of {letters} (got {asked['ground_truth']!r})")
    target = asked.get("target_step_id") or []
    if target and isinstance(target[0], list):
        target = target[0]  # in noisy sets
    evidence = [each for step in target if 0 <= int(step) < len(steps) for each in steps[int(step)]]
    options = "\n".join(f"{name}. {choice}" for name, choice in zip(letters, choices))
    date = f"Time: {asked['time']}. " if asked.get("time") else ""
    return Question(
        id="0",
        question=f"{date}{asked['question']}\n{options}",
        answer=str(choices[letters.index(letter)]),
        type=record["_type"],
        correct_letter=letter,
        choices=[str(choice) for choice in choices],
        instruction="Answer with the letter of the right option.",
        evidence_ids=evidence,
    )
