"""The index of rows: queries over it give what a plain filter over the same rows gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from context_bench.output.page.row_index import RowIndex, RowQuery
from context_bench.output.page.run_facts import RowValues, Source, read_values
from rows import make_row

RUN = 3


def _make_values(count: int) -> list[RowValues]:
    draw = random.Random(7)
    made = []
    for number in range(count):
        score = draw.choice([None, 0.0, 0.5, 1.0])
        facts: dict[str, Any] = {
            "system": draw.choice("ab"),
            "dataset": draw.choice(["x", "y%"]),
            "example_id": f"E{number // 4}",
            "repeat": number % 2,
            "latency": draw.random(),
            "response": draw.choice(["Straße", "100% sure", "under_score", "plain"]),
            "error": draw.choice([None, None, "Timeout: late", "Refused: no"]),
        }
        row = make_row(None if facts["error"] else score, **facts)
        if draw.random() < 0.5:
            row.scores["evidence_survived"] = float(draw.random() < 0.5)
        made.append(read_values(RUN << 32 | number, RUN, Source(row), row.scores.get("score"), 0.7))
    return made


@pytest.fixture(scope="module")
def values() -> list[RowValues]:
    return _make_values(600)


@pytest.fixture(scope="module")
def index(values: list[RowValues]) -> Iterator[RowIndex]:
    index = RowIndex()
    index.set_baseline(RUN, "a")
    for start in range(0, len(values), 50):
        index.add(values[start : start + 50])
    index.find_flips()
    yield index
    index.close()


def _find(index: RowIndex, **conditions: Any) -> list[int]:
    found = index.find(RowQuery(runs=(RUN,), **conditions), 0, 10_000)
    assert found.total == len(found.rows)
    return [row["id"] for row in found.rows]


CASES: list[tuple[dict[str, Any], Callable[[RowValues], bool]]] = [
    ({}, lambda row: True),
    ({"low": 0.5}, lambda row: row.score is not None and row.score >= 0.5),
    ({"high": 0.5}, lambda row: row.score is not None and row.score <= 0.5),
    ({"equal": (("outcome", 2),)}, lambda row: row.error is not None),
    ({"equal": (("outcome", 3),)}, lambda row: row.error is None and row.score is None),
    ({"equal": (("evidence", None),)}, lambda row: row.evidence is None),
    ({"equal": (("evidence", 0),)}, lambda row: row.evidence == 0),
    ({"words": ("STRASSE",)}, lambda row: False),
    ({"words": ("STRAßE",)}, lambda row: row.response == "Straße"),
    ({"words": ("100%",)}, lambda row: row.response == "100% sure"),
    ({"words": ("r_s",)}, lambda row: row.response == "under_score"),
    ({"words": ("e1", "PLAIN")}, lambda row: "e1" in row.name.lower() and row.response == "plain"),
    ({"words": ("timeout",)}, lambda row: row.error == "Timeout"),
    ({"words": ("y%",)}, lambda row: row.dataset == "y%"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_query_finds_what_a_plain_filter_does(index: RowIndex, values: list[RowValues], number: int) -> None:
    conditions, holds = CASES[number]
    assert _find(index, **conditions) == [row.id for row in values if holds(row)]


@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("sort", ["score", "latency", "id", "system"])
def test_an_order_is_that_of_a_plain_sort(index: RowIndex, values: list[RowValues], sort: str, down: bool) -> None:
    keys: dict[str, Callable[[RowValues], Any]] = {
        "score": lambda row: row.score,
        "latency": lambda row: row.latency,
        "id": lambda row: int(row.name[1:]),
        "system": lambda row: row.system,
    }
    measured = [row for row in values if keys[sort](row) is not None]
    wanted = sorted(measured, key=keys[sort], reverse=down)
    if down:  # equals stay in the order of the run
        wanted = sorted(measured, key=lambda row: row.id)
        wanted.sort(key=keys[sort], reverse=True)
    missing = [row.id for row in values if keys[sort](row) is None]
    assert _find(index, sort=sort, down=down) == [row.id for row in wanted] + missing


def test_flips_are_those_of_a_plain_join(index: RowIndex, values: list[RowValues]) -> None:
    base = {(row.dataset, row.name, row.repeat): row.outcome for row in values if row.system == "a"}
    wanted = {}
    for row in values:
        before = base.get((row.dataset, row.name, row.repeat))
        known = row.system != "a" and before is not None and 3 not in (before, row.outcome)
        wanted[row.id] = int(row.outcome == 0) - int(before == 0) if known else 0
    found = index.find(RowQuery(runs=(RUN,)), 0, 10_000).rows
    several = {key for key in base if sum((r.dataset, r.name, r.repeat) == key for r in values if r.system == "a") > 1}
    compared = [row for row in found if (names(index, row), row["name"], row["repeat"]) not in several]
    assert len(compared) > 300
    assert {row["id"]: row["flip"] for row in compared} == {row["id"]: wanted[row["id"]] for row in compared}


def names(index: RowIndex, row: dict[str, Any]) -> str:
    """The dataset of a row, by its name."""
    return index.list_names([RUN])["dataset"][row["dataset"]]


def test_a_row_that_comes_twice_is_counted_once(values: list[RowValues]) -> None:
    index = RowIndex()
    index.add(values[:10])
    index.add(values[5:15])
    assert index.count([RUN]) == 15
    index.remove(RUN)
    assert index.count([RUN]) == 0
    assert index.list_names([RUN]) == {"system": {}, "dataset": {}, "error": {}}
    index.close()
