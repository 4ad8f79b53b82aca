"""Adapters: functions that turn a record of a public dataset into examples, one for each dataset.

    def hotpotqa(record: Mapping[str, Any], where: Where) -> Iterator[Example]

An adapter is pure: the same record gives the same examples. It leaves `dataset` and (unless it differs by task)
`instruction` to the loader, and raises `KeyError` for a missing column; the loader adds the place.
A dataset whose files are not one record after another also has a reader, `(paths: list[Path]) -> Iterator[record]`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_bench.errors import DataError
from context_bench.text.formats import FORMATS
from context_bench.types import Example


@dataclass(frozen=True)
class Where:
    """The place of a record in its dataset."""

    config: str  # the configuration of the record; if it combines several, the record's own
    split: str  # the split
    index: int  # the number of the record in its configuration, from 0
    name: str = ""  # the dataset, for adapters that serve several


Adapter = Callable[[Mapping[str, Any], Where], Iterator[Example]]
Reader = Callable[[list[Path]], Iterator[Any]]


def permutation(seed_text: str, n: int) -> list[int]:
    """Return the numbers 0 to n-1 in an order that depends only on the text, on every machine."""
    order = list(range(n))
    random.Random(hashlib.sha256(seed_text.encode("utf-8", "surrogatepass")).hexdigest()).shuffle(order)
    return order


Place = tuple[int, int]
Span = dict[str, Any]


class Page:
    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0

    def add(self, text: str) -> Place:
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start, self._length

    def add_paragraph(self, text: str, gap: str = "\n\n") -> Place:
        """Append a text after a blank line, or another gap."""
        if self._length:
            self.add(gap)
        return self.add(text)

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return "".join(self._parts)


def make_span(context: str, start: int, end: int) -> Span:
    """Make a span of the context, without the white space at its ends."""
    inner = context[start:end]
    start += len(inner) - len(inner.lstrip())
    return {"start": start, "end": start + len(inner.strip()), "text": inner.strip()}


def make_documents(context: str, places: Sequence[tuple[str, int, int]], evidence: Sequence[Span]) -> Example:
    """Make the documents that a context consists of, by title, start and end; those with evidence are relevant."""
    documents = [
        {"id": f"d{number}", "title": title, "text": context[start:end]}
        for number, (title, start, end) in enumerate(places)
    ]
    relevant = [any(start <= span["start"] < end for span in evidence) for _, start, end in places]
    return {"documents": documents, "relevant_ids": [each["id"] for each, wanted in zip(documents, relevant) if wanted]}


def make_example(identity: str | int, context: str, question: str, answers: Sequence[str], **more: Any) -> Example:
    """Make an example whose `answer` is the first of the accepted answers."""
    answer = answers[0] if answers else ""
    return {
        "id": identity, "context": context, "question": question, "answer": answer, "answers": list(answers), **more
    }  # fmt: skip


def read_rows(paths: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of several files, each read by its suffix."""
    for path in paths:
        if path.suffix not in FORMATS:
            raise DataError(f"{path}: unknown kind of file; use {', '.join(FORMATS)}")
        with path.open("rb") as source:
            for number, row in FORMATS[path.suffix](source, str(path)):
                if not isinstance(row, Mapping):
                    raise DataError(f"{path}, line {number}: a record must be an object (got {type(row).__name__})")
                yield row


def read_either(record: Mapping[str, Any], one: str, other: str) -> Any:
    """Read a column that has one of two names."""
    for name in (one, other):
        if name in record:
            return record[name]
    raise KeyError(f"{one} or {other}")
