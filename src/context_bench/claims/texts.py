"""Search for the texts that a private bundle withholds, by their hashes, and for the datasets of a bundle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from context_bench.claims.bundle import canonical, hash_value
from context_bench.claims.reading import Bundle, Damage
from context_bench.core.judge import Scorer
from context_bench.datasets.open import Choices, open_datasets
from context_bench.errors import ContextBenchError
from context_bench.refs import read_signature
from context_bench.registry import registry
from context_bench.settings import RunSettings
from context_bench.store.records import to_bytes


class Texts:
    """Texts in a folder: examples of the run's datasets, and those of bundles with texts.

    Args:
        folder: Folder with records of public datasets, data files or bundles; None for no texts.
        settings: Record of the run.
        wanted: Hashes of the examples of the bundle.
    """

    def __init__(self, folder: Path | None, settings: RunSettings, wanted: set[str]) -> None:
        self.examples: dict[str, dict[str, Any]] = {}  # wanted examples found, by hash
        self.answers: dict[str, dict[str, Any]] = {}  # replies found, by hash
        self.datasets: list[str] = []  # datasets found and read
        self.problems: list[str] = []  # reasons why datasets could not be read
        if folder is None:
            return
        for name in dict.fromkeys([*list_datasets(settings), *settings.datasets]):
            self._read_dataset(name, folder, settings, wanted)
        for path in sorted(folder.glob("*.ctxb")):
            self._read_bundle(path, wanted)

    def _read_dataset(self, name: str, folder: Path, settings: RunSettings, wanted: set[str]) -> None:
        own = folder / Path(name).name
        reference = str(own) if own.is_file() else name
        if not own.is_file() and not _is_harmless(name, folder):
            if name in list_datasets(settings):
                self.problems.append(f"{name}: neither a file in {folder} nor a known dataset")
            return
        scorer = Scorer(score_field=settings.score_field)
        try:
            for example in open_datasets([reference], Choices(settings.seed, None, "first", str(folder))):
                for one in (scorer.make_item(example).example, example):
                    digest = hash_value(orjson.loads(to_bytes(one)))
                    if digest in wanted:
                        self.examples[digest] = orjson.loads(canonical(orjson.loads(to_bytes(one))))
        except ContextBenchError as error:
            if name not in settings.datasets or name in list_datasets(settings):
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
                    if answer is not None and (changed := answer["processed"]["changed"]):
                        self.answers[hash_value(changed)] = answer
        except (ContextBenchError, Damage):
            return


def list_datasets(settings: RunSettings) -> list[str]:
    """List the datasets in the recorded command line, as given."""
    return list(_read_flag(settings.command, "--dataset"))


def _is_harmless(name: str, folder: Path) -> bool:
    """Whether this is a known dataset that is generated or read from the folder: no code, and no other files."""
    head, _, parameters = name.partition(":")
    if ("dataset", head) not in registry or "data_dir" in parameters:
        return False
    needs_records = "data_dir" in read_signature(registry.get("dataset", head))
    return not needs_records or any((folder / each).is_dir() for each in (head, head.replace("-", "_")))


def _read_flag(words: Any, wanted: str) -> Iterator[str]:
    before = ""
    for word in words:
        flag, equals, value = str(word).partition("=")
        if flag == wanted and equals:
            yield value
        elif before == wanted:
            yield str(word)
        before = str(word)


def join_answer(answer: Mapping[str, Any], texts: Texts) -> dict[str, Any] | None:
    """Return an answer with its texts; None if they are withheld and were not found."""
    withheld = answer["processed"].get("withheld")
    if withheld is None:
        return dict(answer)
    found = texts.answers.get(withheld)
    return None if found is None else {**answer, **{key: found[key] for key in ("processed", "metadata")}}
