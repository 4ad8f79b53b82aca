"""`membench`: short histories of remarks or dialogues with a multiple-choice question (Tan et al., 2025).

Not verified on real records: made after the authors' evaluator; their repository holds no data files.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from context_bench.errors import DataError
from context_bench.memory.conversations import Conversation, Question, Turn
from context_bench.memory.datasets.conversation_files import ConversationFiles, find_files

_SOURCE = "https://github.com/import-myself/Membench (no licence stated)"


def load(
    data_dir: str | Path | None = None,
    n: int | None = None,
    seed: int = 0,
    types: Sequence[str] | str | None = None,
) -> ConversationFiles:
    """Short histories of remarks or dialogues, each with a multiple-choice question.

    Args:
        data_dir: A folder whose `membench/` holds the JSON files; CONTEXT_BENCH_DATA by default.
        n: At most so many histories, which have one question each.
        seed: Not used.
        types: The types of questions, as the files name them; all by default.
    """
    chosen = [each.strip() for each in types.split(",")] if isinstance(types, str) else types
    files = find_files("membench", ("**/*.json",), data_dir, _SOURCE)
    return ConversationFiles("membench", files, _convert, n, chosen or None, _read_file)


def _read_file(path: Path) -> Iterator[tuple[str, Any]]:
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


def _convert(record: Mapping[str, Any], place: str) -> Iterable[Conversation]:
    turns: list[Turn] = []
    steps: list[list[str]] = []
    for number, message in enumerate(record["message_list"]):
        made = list(_read_turns(message, number))
        turns += made
        steps.append([turn["id"] for turn in made])
    question = _read_question(record, steps)
    return [Conversation(id=record["_id"], turns=turns, questions=[question], meta={})]


def _read_turns(message: Any, number: int) -> Iterator[Turn]:
    """Yield the turns of a step: one remark, or what the user and the assistant said."""
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


def _read_question(record: Mapping[str, Any], steps: list[list[str]]) -> Question:
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
