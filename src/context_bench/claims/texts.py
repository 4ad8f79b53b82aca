"""Search by hash for the texts that a private bundle withholds, and search for the datasets of a bundle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from context_bench.claims.bundle import hash_value, withhold_answer
from context_bench.claims.reading import Bundle, Damage
from context_bench.core.judge import Scorer
from context_bench.datasets.files import parse_mapping
from context_bench.datasets.open import Choices, open_datasets
from context_bench.errors import ContextBenchError
from context_bench.memory.questions import Questions, open_conversations
from context_bench.refs import read_signature
from context_bench.registry import registry
from context_bench.settings import RunSettings
from context_bench.store.records import to_bytes
from context_bench.utils.tokens import get_tokenizer

_ODD = re.compile(r"data_dir|file=|\d{8}")  # parameters that name other files, or generate without end


class Texts:
    """Texts in a folder: examples of the run's datasets, and examples in bundles with texts.

    Args:
        folder: Folder with records of public datasets, data files or bundles; None for no texts.
        settings: Record of the run.
        wanted: Hashes of the examples of the bundle.
    """

    def __init__(self, folder: Path | None, settings: RunSettings, wanted: set[str]) -> None:
        self.examples: dict[str, dict[str, Any]] = {}  # wanted examples found, by hash
        self.answers: dict[str, dict[str, Any]] = {}  # answers found, by the hash of their private form
        self.datasets: list[str] = []  # datasets found and read
        self.problems: list[str] = []  # reasons why datasets could not be read
        if folder is None:
            return
        self._named = [*read_flag(settings, "--dataset")]
        for name in dict.fromkeys([*self._named, *settings.datasets]):
            self._read_dataset(name, folder, settings, wanted)
        for path in sorted(folder.glob("*.ctxb")):
            self._read_bundle(path, wanted)

    def _read_dataset(self, name: str, folder: Path, settings: RunSettings, wanted: set[str]) -> None:
        own = folder / Path(name).name
        if not own.is_file() and not _is_harmless(name, folder, settings):
            if name in self._named:
                self.problems.append(f"{name}: neither a file in {folder} nor a known dataset")
            return
        scorer = Scorer(score_field=settings.score_field)
        try:
            for example in _open(str(own) if own.is_file() else name, folder, settings):
                for one in (scorer.make_item(example).example, example):
                    plain = orjson.loads(to_bytes(one))
                    if (digest := hash_value(plain)) in wanted:
                        self.examples[digest] = plain
        except ContextBenchError as error:
            if name not in settings.datasets or name in self._named:
                self.problems.append(f"{name}: {error}")
        else:
            self.datasets.append(name)

    def _read_bundle(self, path: Path, wanted: set[str]) -> None:
        try:
            with Bundle(path) as bundle:
                if bundle.private or bundle.damage:
                    return
                for example in bundle.read_lines("examples.jsonl"):
                    if (digest := hash_value(example)) in wanted:
                        self.examples.setdefault(digest, example)
                for answer in bundle.read_lines("answers.jsonl"):
                    if answer is not None:
                        self.answers[hash_value(withhold_answer(answer))] = answer
        except (ContextBenchError, Damage):
            return


def _open(reference: str, folder: Path, settings: RunSettings) -> Iterable[dict[str, Any]]:
    """Open a whole dataset with the parameters of the run."""
    limit, types, plant, mapping = (
        next(read_flag(settings, *flags), None)
        for flags in (("-n", "--max-examples", "--max-conversations"), ("--types",), ("--plant",), ("--map",))
    )
    most, planted = (None if each is None else int(each) for each in (limit, plant))
    wanted = types.split(",") if types else None
    if not settings.memory:
        columns = parse_mapping(mapping) if mapping else None
        choices = Choices(settings.seed, most, "first", str(folder), mapping=columns)
        return open_datasets([reference], choices).sources[0]
    opened, tag = open_conversations(
        reference, n=most, seed=settings.seed or 0, data_dir=str(folder), types=wanted, plant=planted
    )
    return Questions(opened, tag, get_tokenizer(settings.tokenizer), most, wanted)


def _is_harmless(name: str, folder: Path, settings: RunSettings) -> bool:
    """Whether this is a known dataset that is generated or read from the folder: no code, and no other files."""
    kind, (head, _, parameters) = "memory_dataset" if settings.memory else "dataset", name.partition(":")
    if (kind, head) not in registry or _ODD.search(parameters):
        return False
    needs_records = ("file" if settings.memory else "data_dir") in read_signature(registry.get(kind, head))
    return not needs_records or any((folder / each).is_dir() for each in (head, head.replace("-", "_")))


def read_flag(settings: RunSettings, *wanted: str) -> Iterator[str]:
    """Yield the values of a flag in the recorded command line."""
    before = ""
    for word in map(str, settings.command):
        flag, equals, value = word.partition("=")
        if flag in wanted and equals:
            yield value
        elif before in wanted:
            yield word
        before = word


def join_answer(answer: Mapping[str, Any], texts: Texts) -> dict[str, Any] | None:
    """Return an answer with its texts; None if they are withheld and were not found."""
    if "withheld" not in answer["processed"]:
        return dict(answer)
    return texts.answers.get(hash_value(answer))
