"""Datasets for memory systems: each is an iterable of conversations that are generated or read, and checked, one at a
time.

Public ones are read from local files in `DIR/<dataset>/`. Nothing is downloaded, since the authors publish files,
not hub tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from context_bench.datasets.public.fetch import find_data_folder
from context_bench.errors import DataError, UsageError, printable, suggest, suggest_file
from context_bench.memory.conversations import Conversation, Question
from context_bench.text.formats import read_json, read_jsonl
from context_bench.text.words import split_words, stem_word

_HOME = "context_bench.memory.datasets"

DATASETS: dict[str, str] = {
    "synthetic-memory": f"{_HOME}.synthetic_memory:load",
    "locomo": f"{_HOME}.long_conversations:load_locomo",
    "longmemeval": f"{_HOME}.question_histories:load_longmemeval",
    "beam": f"{_HOME}.long_conversations:load_beam",
    "convomem": f"{_HOME}.question_histories:load_convomem",
    "halumem": f"{_HOME}.long_conversations:load_halumem",
    "membench": f"{_HOME}.question_histories:load_membench",
}
"""The loader of each dataset, by its name for `--dataset`."""

UNVERIFIED = ("longmemeval", "beam", "convomem", "halumem", "membench")
"""Datasets whose loaders follow the authors' layout or description, but were not tested on real records."""


Folder = str | Path | None
Types = Sequence[str] | str | None  # types of questions: a list, or names with commas; None for all

Convert = Callable[[Mapping[str, Any], str], Iterable[Conversation]]
"""Converts one record of a file to conversations; the text names the record in messages."""


def find_files(
    dataset: str, patterns: Sequence[str], data_dir: Folder, source: str, file: str | None = None
) -> list[Path]:
    """Find the files of a dataset: those of the first pattern with matches, or the given `file`.

    `source` is their public address.
    """
    if file is not None:
        if not Path(file).is_file():
            raise UsageError(f"{file}: no such file{suggest_file(Path(file))}")
        return [Path(file)]
    wanted = " or ".join(f"DIR/{dataset}/{pattern}" for pattern in patterns)
    folder = find_data_folder(data_dir)
    if folder is None:
        raise UsageError(
            f"{dataset} is read from local files: get it from {source}, put it at {wanted}, and add --data-dir DIR"
        )
    for pattern in patterns:
        if found := sorted(path for path in (folder / dataset).glob(pattern) if path.is_file()):
            return found
    raise UsageError(f"{folder / dataset}: no file for {dataset}; expected {wanted} (from {source})")


def read_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each record of a .json list or .jsonl file with its place in the file, without reading ahead."""
    read = read_jsonl if path.suffix == ".jsonl" else read_json
    try:
        with path.open("rb") as source:
            for line, record in read(source, str(path)):
                yield f"{path}, line {line}", record
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


@dataclass(frozen=True)
class ConversationFiles:
    """The conversations of one or more files; can be iterated any number of times."""

    dataset: str  # the name of the dataset
    files: Sequence[Path]  # the files with its records
    convert: Convert  # converts one record to conversations
    n: int | None = None  # the largest number of conversations
    types: Collection[str] | None = None  # the types of questions to ask; None for all
    read: Callable[[Path], Iterable[tuple[str, Any]]] = read_records  # reads a file into records

    def __iter__(self) -> Iterator[Conversation]:
        count = 0
        records = (each for path in self.files for each in self.read(path))
        for conversation in chain.from_iterable(self._convert_record(record, place) for place, record in records):
            if self.n is not None and count >= self.n:
                return
            if self.types is not None:
                asked = [question for question in conversation["questions"] if question.get("type") in self.types]
                conversation = Conversation(**{**conversation, "questions": asked})
            if conversation["questions"]:
                count += 1
                yield conversation

    def _convert_record(self, record: Any, place: str) -> Iterator[Conversation]:
        if not isinstance(record, Mapping):
            raise DataError(f"{self.dataset}: {place}: a record must be an object (got {type(record).__name__})")
        try:
            yield from self.convert(record, place)
        except KeyError as error:
            fields = ", ".join(map(str, record))
            raise DataError(f"{self.dataset}: {place}: no field {error.args[0]!r}; it has {fields}") from error
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            problem = f"{type(error).__name__}: {printable(str(error))}"
            raise DataError(f"{self.dataset}: {place}: the layout is unknown ({problem})") from error


def choose_types(types: Types, known: Sequence[str], dataset: str) -> Collection[str]:
    """Return the chosen types, by default all; `-` and `_` in them are equivalent."""
    if not types:
        return known
    named = types.replace("|", ",").split(",") if isinstance(types, str) else types
    by_key = {_key(name): name for name in known}
    chosen: list[str] = []
    for name in named:
        if _key(name) not in by_key:
            advice = suggest(name, known) or f"it has {', '.join(known)}"
            raise UsageError(f"{dataset} has no questions of type {name!r}; {advice}")
        chosen.append(by_key[_key(name)])
    return chosen


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def match_pairs(questions: Sequence[Question]) -> None:
    """Give each unanswerable question of a conversation and its partner the same `pair`.

    The partner is the most similar answerable question that has no partner yet: first by common evidence (LoCoMo's
    false questions were made from true questions about the same turns), then by common words, then by position. Pairs
    are assigned from the best match down, so that the result does not depend on the order of the questions.
    Unanswerable questions without a partner do not count.
    """
    open_questions = [question for question in questions if question.get("unanswerable")]
    answerable = [question for question in questions if not question.get("unanswerable")]
    words = {id(question): set(map(stem_word, split_words(question["question"]))) for question in questions}
    evidence = {id(question): set(question.get("evidence_ids", ())) for question in questions}

    def measure(one: Question, other: Question) -> tuple[int, float]:
        shared = len(evidence[id(one)] & evidence[id(other)])
        mine, theirs = words[id(one)], words[id(other)]
        return shared, len(mine & theirs) / max(1, len(mine | theirs))

    ranked = sorted(
        ((measure(one, other), i, j) for i, one in enumerate(open_questions) for j, other in enumerate(answerable)),
        key=lambda each: (-each[0][0], -each[0][1], each[1], each[2]),
    )
    taken: set[int] = set()
    for _, i, j in ranked:
        if "pair" not in open_questions[i] and j not in taken:
            taken.add(j)
            open_questions[i]["pair"] = answerable[j]["pair"] = f"pair-{open_questions[i]['id']}"
