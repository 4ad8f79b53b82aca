"""Files of retrieved contexts: written after a run, and read by another run that changes only the reader.

Each line has one system's items for one question: `{"system", "question_id", "retrieved": [{"text", "ids"}]}`, with a
`budget` if the items depend on the budget. Instead of a list with one item, a line may have `text` and `ids`. The id of
a question is `CONVERSATION/QUESTION`, as in a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from context_bench.errors import DataError, UsageError, suggest_file
from context_bench.memory.conversations import Retrieved, check_retrieved
from context_bench.memory.datasets import read_records
from context_bench.memory.systems.turn_store import join_texts
from context_bench.store.origin import digest

Answers = dict[tuple[str, int | None], list[Retrieved]]
"""The retrieved items by question and budget; the budget None stands for all budgets."""


class Recorded(Protocol):
    """A row of a run with its answer."""

    @property
    def row(self) -> Any: ...

    @property
    def example(self) -> Mapping[str, Any]: ...

    @property
    def answer(self) -> Any: ...


def list_contexts(records: Iterable[Recorded], reports: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """List the lines of the file for the rows of a run; `reports` describe the systems of its result.

    Controls are omitted, because every run makes them itself. Failed questions are omitted too.
    """
    for record in records:
        about = reports.get(record.row.system, {}).get("memory") or {}
        found = None if record.answer is None else record.answer.processed.get("retrieved")
        if found is None or about.get("is_control") or about.get("budget") is None:
            continue
        kept = [{key: item[key] for key in ("text", "ids", "score") if key in item} for item in found]
        line = {
            "system": about.get("system"),
            "budget": about["budget"],
            "question_id": str(record.row.example_id),
            "question": record.example.get("question", ""),
            "retrieved": kept,
        }
        yield f"{json.dumps(line, ensure_ascii=False)}\n"


class FrozenMemory:
    """A memory that returns the items recorded in a file, whatever it ingests."""

    is_frozen = True
    takes_dates = True

    def __init__(self, name: str, answers: Answers) -> None:
        self.name, self._answers = name, answers
        self._asked = ""
        self.fingerprint = digest(name, json.dumps(sorted((repr(key), value) for key, value in answers.items()))).hex()

    def reset(self) -> None:
        """Do nothing: the file stays loaded."""

    def ingest(self, turns: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing: only the file counts."""

    def point_to(self, ids: Sequence[str]) -> None:
        """Set the id of the next question."""
        (self._asked,) = ids

    def retrieve(
        self,
        question: str,  # noqa: ARG002 - the id of the question is more specific
        k: int | None = None,
        budget_tokens: int | None = None,
    ) -> list[Retrieved]:
        for key in ((self._asked, budget_tokens), (self._asked, None)):
            if key in self._answers:
                return self._answers[key][:k]
        largest = max((budget or 0 for name, budget in self._answers if name == self._asked), default=None)
        if largest is None:
            raise LookupError(f"the file has no retrieved items for {self._asked!r}")
        return self._answers[self._asked, largest][:k]

    def query(self, question: str) -> str:
        return join_texts(self.retrieve(question))


def read_contexts(path: str | Path) -> list[partial[FrozenMemory]]:
    """Read a file of contexts; return a factory of a memory for each system in it."""
    if not Path(path).is_file():
        raise UsageError(f"{path}: no such file{suggest_file(Path(path))}")
    systems: dict[str, Answers] = {}
    for place, record in read_records(Path(path)):
        if not isinstance(record, Mapping) or "question_id" not in record:
            raise DataError(f"{place}: must be an object with 'question_id' and 'retrieved'")
        found = record.get("retrieved", [record] if isinstance(record.get("text"), str) else None)
        name = str(record.get("system") or Path(path).stem)
        key = str(record["question_id"]), record.get("budget")
        answers = systems.setdefault(f"{name} (file)", {})
        if key in answers:
            raise DataError(f"{place}: {name} has two lines for question {key[0]!r}")
        answers[key] = check_retrieved(found, f"{place}: {name}")
    if not systems:
        raise DataError(f"{path}: is empty")
    return [partial(FrozenMemory, name, answers) for name, answers in systems.items()]
