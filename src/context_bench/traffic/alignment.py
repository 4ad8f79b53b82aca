"""Alignment of two sequences of pieces: the stretches that both sequences contain, in the same order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rapidfuzz.distance import Indel

_MAX_CELLS = 25_000_000  # limit on pairs for a longest common subsequence: about 3 MB and 10 ms
_MAX_DEPTH = 8
_WINDOW = 4_000  # pieces of each side in one comparison, for long texts without anchors

Match = tuple[int, int, int]
Span = tuple[int, int]


def align(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Span, Span, bool]]:
    """Yield pairs of stretches that cover both sequences, (start, end) in each, and whether the two are equal."""
    i = j = 0
    for at, other, size in [*_find_runs(old, new), (len(old), len(new), 0)]:
        if i < at or j < other:
            yield (i, at), (j, other), False
        i, j = at + size, other + size
        if size:
            yield (at, i), (other, j), True


def _find_runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Yield the runs of equal pieces; skip pieces that only one side has."""
    there, here = set(new), set(old)
    places = [place for place, piece in enumerate(old) if piece in there]
    others = [place for place, piece in enumerate(new) if piece in here]
    start = end = (0, 0)
    for at, other, size in _find_matches([old[place] for place in places], [new[place] for place in others]):
        for pair in zip(places[at : at + size], others[other : other + size]):
            if pair != end:
                if end != start:
                    yield *start, end[0] - start[0]
                start = pair
            end = pair[0] + 1, pair[1] + 1
    if end != start:
        yield *start, end[0] - start[0]


def _find_matches(old: Sequence[str], new: Sequence[str], depth: int = 0) -> Iterator[Match]:
    """Yield equal pieces of both sequences, in order: (place in the old one, place in the new one, number of pieces).

    Pieces that occur once on each side divide the texts. Without these anchors, a longest common subsequence would
    align two texts on their most frequent words.
    """
    head = count_common(old, new)
    tail = count_common(old[head:][::-1], new[head:][::-1])
    if head:
        yield 0, 0, head
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if inner_old and inner_new:
        anchors = _find_anchors(inner_old, inner_new) if depth < _MAX_DEPTH else []
        if anchors:
            found: Iterable[Match] = _match_between(inner_old, inner_new, anchors, depth)
        elif len(inner_old) * len(inner_new) <= _MAX_CELLS:
            found = _match_all(inner_old, inner_new)
        else:
            found = _match_windows(inner_old, inner_new)
        for at, other, size in found:
            yield head + at, head + other, size
    if tail:
        yield len(old) - tail, len(new) - tail, tail


def count_common(old: Sequence[str], new: Sequence[str]) -> int:
    return next((place for place, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))


def _match_all(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Return as many equal pieces as possible, in order; for short stretches."""
    blocks = Indel.editops(old, new).as_matching_blocks()
    return [(block.a, block.b, block.size) for block in blocks if block.size]


def _match_between(
    old: Sequence[str], new: Sequence[str], anchors: Sequence[tuple[int, int]], depth: int
) -> Iterator[Match]:
    """Yield the anchors, and the matches between them."""
    i = j = 0
    for at, other in [*anchors, (len(old), len(new))]:
        if i < at and j < other:
            for inner, across, size in _find_matches(old[i:at], new[j:other], depth + 1):
                yield i + inner, j + across, size
        if at < len(old):
            yield at, other, 1
        i, j = at + 1, other + 1


def _match_windows(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Match within a window that moves over both sides; each step uses only the matches in the window's first half."""
    i = j = 0
    half = _WINDOW // 2
    while i < len(old) and j < len(new):
        ended = i + _WINDOW >= len(old) and j + _WINDOW >= len(new)
        found = _match_all(old[i : i + _WINDOW], new[j : j + _WINDOW])
        if not ended:
            found = [(at, other, min(size, half)) for at, other, size in found if at < half and other < half]
        for at, other, size in found:
            yield i + at, j + other, size
        if ended:
            return
        step = (found[-1][0] + found[-1][2], found[-1][1] + found[-1][2]) if found else (half, half)
        i, j = i + max(1, step[0]), j + max(1, step[1])


def _find_anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest sequence of pieces that occur once on each side, in the same order on both."""
    once, there = _find_unique(old), _find_unique(new)
    return _find_rising([(place, there[piece]) for piece, place in once.items() if piece in there])


def _find_unique(pieces: Sequence[str]) -> dict[str, int]:
    counts = Counter(pieces)
    return {piece: place for place, piece in enumerate(pieces) if counts[piece] == 1}


def _find_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs, sorted by their first numbers, whose second numbers increase."""
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for number, (_, other) in enumerate(pairs):
        place = bisect_left(tops, other)
        before.append(ends[place - 1] if place else -1)
        tops[place : place + 1], ends[place : place + 1] = [other], [number]
    chosen = []
    number = ends[-1] if ends else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]
