"""Alignment: what two sequences have in common, whatever their size."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest
from rapidfuzz.distance import LCSseq

from banks import each_case
from context_bench.traffic import alignment
from context_bench.traffic.alignment import align


def _matched(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pieces are matched; the stretches must cover both sides in order and be what they say."""
    i = j = matched = 0
    for (start, end), (at, to), same in align(old, new):
        assert (start, at) == (i, j)
        assert end > start or to > at
        if same:
            assert old[start:end] == new[at:to]
            matched += end - start
        i, j = end, to
    assert (i, j) == (len(old), len(new))
    return matched


@pytest.mark.parametrize(
    ("old", "new", "matched"),
    [
        ("", "", 0),
        ("abc", "", 0),
        ("", "abc", 0),
        ("abc", "abc", 3),
        ("abcd", "axcd", 3),
        ("abcabc", "cab", 3),
        ("aaaa", "aa", 2),
        ("xay", "zaz", 1),
    ],
)
def test_by_hand(old: str, new: str, matched: int) -> None:
    assert _matched(list(old), list(new)) == matched


@each_case("seed", range(20))
def test_short_sequences_are_matched_as_well_as_can_be(seed: int) -> None:
    rng = random.Random(seed)
    old, new = ([rng.choice("abcdef") for _ in range(rng.randrange(200))] for _ in range(2))
    assert _matched(old, new) == LCSseq.similarity(old, new)


@pytest.mark.parametrize("seed", range(10))
def test_divided_by_anchors_and_windows_it_is_still_an_alignment(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_MAX_CELLS", 400)
    monkeypatch.setattr(alignment, "_WINDOW", 80)
    rng = random.Random(seed)
    old = [rng.choice([*"abcdef", *map(str, range(40))]) for _ in range(1000)]
    new = [piece for piece in old if rng.random() < 0.6]
    assert _matched(old, new) > 0.8 * len(new)
    rng.shuffle(new)
    assert 0 < _matched(old, new) <= LCSseq.similarity(old, new)


WORDS = [f"w{number}" for number in range(3000)]
RNG = random.Random(1)
LONG = [RNG.choice(WORDS) for _ in range(80_000)]
HALF = [word for word in LONG if RNG.random() < 0.5]


@pytest.mark.parametrize(
    ("old", "new", "least"),
    [
        (LONG, HALF, 0.8 * len(HALF)),  # no word occurs once, so that nothing divides them
        (LONG, LONG[:30_000] + LONG[50_000:], 60_000),
        ([*"ab"] * 50_000, [*"ba"] * 40_000 + ["c"], 60_000),
        ([f"x{n}" for n in range(100_000)], [f"y{n}" for n in range(100_000)], 0),
        ([f"x{n}" for n in range(60_000)], [f"x{n}" for n in range(59_999, -1, -1)], 1),
    ],
    ids=["half", "a hole", "two words", "nothing in common", "backwards"],
)
def test_a_hundred_thousand_pieces_take_seconds_at_most(old: list[str], new: list[str], least: float) -> None:
    started = time.process_time()
    assert _matched(old, new) >= least
    assert time.process_time() - started < 4
