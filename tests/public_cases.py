"""Cases for adapters of public datasets: a record made by hand, the reply that is right and one that is wrong.

Records go the way that a user's go: as a file in a data folder, through the loader, to examples.
"""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.errors import DataError
from context_bench.registry import registry
from context_bench.systems.prompts import build_messages
from context_bench.types import Example
from context_bench.wire.prompts import read_text

__all__ = ["Case", "load_case", "needed_columns", "primary", "prompt_of", "real", "write_file"]


@dataclass(frozen=True)
class Case:
    """One record in the layout that the card calls `layout`.

    Attributes:
        right: A reply, or a whole processed dict, that the primary score must give 1.0.
        wrong: One that it must give 0.0.
        asks: Texts that the prompt must hold.
        needs: The columns without which the record cannot be used.
        file: Where the authors keep such records; the fetched layout by default.
        tells: The column by which this layout is told from another: without it the other is looked for.
    """

    name: str
    record: dict[str, Any]
    right: Any
    wrong: Any
    asks: tuple[str, ...]
    needs: frozenset[str]
    config: str | None = None
    layout: str = "hub"
    file: str = ""
    tells: str = ""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.config or 'default'}-{self.layout}"


def load_case(case: Case, folder: Path, record: dict[str, Any] | None = None) -> list[Example]:
    """The examples that the case's record, or another in its place, makes."""
    config = catalog()[case.name].config(case.config)
    path = case.file or f"{config.name}/{config.split}.jsonl"
    write_file(folder / case.name / path, [case.record if record is None else record])
    return list(load(case.name, case.config, data_dir=folder))


def write_file(path: Path, records: list[dict[str, Any]]) -> None:
    """Records as a table with a byte order mark (`.csv`), as a JSON list (`.json`) or as one object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8-sig", newline="") as target:
            table = csv.DictWriter(target, list(records[0]))
            table.writeheader()
            table.writerows(records)
        return
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    path.write_text(f"[{','.join(lines)}]" if path.suffix == ".json" else "\n".join(lines), encoding="utf-8")


def prompt_of(example: Example) -> str:
    """All text that a model is sent."""
    return "\n".join(read_text(message["content"]) for message in build_messages(example))


def primary(name: str, example: Example, reply: Any) -> float | None:
    """What the dataset's primary score says of a reply."""
    card = catalog()[name]
    evaluators = [registry.get("evaluator", each)() for each in card.evaluators]
    (judge,) = (each for each in evaluators if card.primary in each.score_fields)
    scores = judge.score(example, reply if isinstance(reply, dict) else {"response": reply})
    return scores.get(card.primary)


def needed_columns(case: Case, folder: Path) -> set[str]:
    """The columns whose absence is an error that names them."""
    needed = set()
    for column in case.record:
        rest = {key: value for key, value in case.record.items() if key != column}
        problem = _problem(case, folder, rest)
        if problem:
            named = f"no column {column!r}" if column != case.tells else "no column"
            assert named in problem, problem
            assert column in problem, problem
            assert problem.startswith(f"{case.name}:"), problem
            needed.add(column)
    return needed


def _problem(case: Case, folder: Path, record: dict[str, Any]) -> str:
    try:
        load_case(case, folder, record)
    except DataError as error:
        return str(error)
    return ""


def real(name: str, file: str) -> str:
    """The data folder, where it has that file of the dataset; else the test is skipped."""
    root = os.environ.get("CONTEXT_BENCH_DATA")
    if not root or not (Path(root) / name / file).exists():
        pytest.skip(f"set CONTEXT_BENCH_DATA to a folder that has {name}/{file}")
    return root
