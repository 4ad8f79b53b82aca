"""Keys: equal for what is equal, different for what is not, and the gold apart from the rest."""

from __future__ import annotations

from typing import Any

import pytest

from banks import each_case
from context_bench.core.cache import GOLD_FIELDS, digest_of, example_digests
from context_bench.store.origin import digest

BASE: dict[str, Any] = {"id": 1, "context": "text", "question": "q", "answer": "a"}


def test_the_order_of_fields_does_not_matter() -> None:
    assert example_digests(BASE) == example_digests(dict(reversed(BASE.items())))


@each_case(
    "other",
    [
        {"id": "1"},
        {"id": 2},
        {"context": "text "},
        {"context": "Text"},
        {"question": None},
        {"question": ["q"]},
        {"extra": 0},
        {"extra": False},
        {"extra": None},
        {"extra": 0.0},
        {"extra": ""},
        {"extra": []},
        {"extra": {"a": [1, {"b": "c"}]}},
        {"extra": "\ud800"},
        {"extra": 2**70},
        {"extra": str(2**70)},
        {"extra": {1, 2}},
        {"extra": b"bytes"},
    ],
    ids=repr,
)
def test_every_difference_is_seen(other: dict[str, Any]) -> None:
    seen = {example_digests({**BASE, **change}) for change in ({}, other, {"extra": "another"})}
    assert len(seen) == 3
    assert example_digests({**BASE, **other}) == example_digests({**BASE, **other})


def test_odd_values_are_told_apart_from_each_other() -> None:
    odd = ["\ud800", "\ud801", "'\\ud800'", 2**70, 2**71, str(2**70), None, "None", True, "True", {1}, b"x", "b'x'"]
    assert len({example_digests({**BASE, "extra": [value, "\udfff"]}) for value in odd}) == len(odd)


@pytest.mark.parametrize("field", sorted(GOLD_FIELDS))
def test_the_gold_changes_the_whole_and_not_what_a_system_sees(field: str) -> None:
    whole, visible = example_digests({**BASE, field: "another"})
    assert whole != example_digests(BASE)[0]
    assert visible == example_digests(BASE)[1]


@pytest.mark.parametrize("field", ["context", "question", "choices", "turns", "tools", "prompt", "instruction", "meta"])
def test_what_a_system_may_read_changes_both(field: str) -> None:
    whole, visible = example_digests({**BASE, field: "another"})
    assert whole != example_digests(BASE)[0]
    assert visible != example_digests(BASE)[1]


def test_large_arrays_are_told_apart() -> None:
    numpy = pytest.importorskip("numpy")
    first, second = numpy.zeros(5000), numpy.zeros(5000)
    second[2500] = 1.0
    assert example_digests({**BASE, "extra": first}) != example_digests({**BASE, "extra": second})


def test_parts_do_not_run_into_each_other() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("a", "") != digest("a")
    assert digest("é") == digest("é".encode())
    assert digest("\ud800")
    assert len(digest()) == len(digest_of(b"x" * 16, b"y" * 16)) == 16
    assert digest_of(b"x" * 16, b"y" * 16) != digest_of(b"y" * 16, b"x" * 16)
