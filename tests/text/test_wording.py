"""Parts of a sentence."""

from __future__ import annotations

import pytest

from context_bench.text import count_things, list_names


@pytest.mark.parametrize(
    ("names", "text"),
    [(["a"], "a"), (["a", "b"], "a and b"), (list("abcdefgh"), "a, b, c, d, e, f and 2 more"), ([], "nothing")],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], text: str) -> None:
    assert list_names(names) == text


def test_how_many_are_named_can_be_chosen() -> None:
    assert list_names(["a", "b", "c", "d"], 3) == "a, b, c and 1 more"
    assert list_names(["a", "b", "c"], 3) == "a, b and c"


@pytest.mark.parametrize(("number", "text"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (2_000, "2,000 rows")])
def test_how_many_there_are(number: int, text: str) -> None:
    assert count_things(number, "row") == text
