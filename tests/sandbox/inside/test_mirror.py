"""Changes that a function made to copies of its arguments, repeated on the arguments."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import pytest

from context_bench.sandbox.inside.peer import mirror


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([1, 2], [2, 1]),
        ([1], []),
        ([], [1, 2]),
        ({1: 2}, {3: 4}),
        ({1, 2}, {3}),
        (bytearray(b"ab"), bytearray(b"c")),
        (deque([1]), deque([2, 3])),
        (Counter("a"), Counter("bb")),
    ],
)
def test_the_object_stays_and_its_content_changes(old: Any, new: Any) -> None:
    assert mirror(old, new) is old
    assert old == new


def test_objects_inside_stay_too() -> None:
    row, table = [1], {"a": [1]}
    outer = ([row], table)
    mirror(outer, ([[1, 2]], {"a": [3], "b": 4}))
    assert row == [1, 2]
    assert outer[0][0] is row
    assert table == {"a": [3], "b": 4}


def test_what_cannot_be_changed_is_replaced() -> None:
    assert mirror(1, 2) == 2
    assert mirror([1], (1,)) == (1,)
    assert mirror((1, 2), (3,)) == (3,)
