"""Diff of two texts: which stretches a system kept, dropped, added or changed, and where the evidence is.

Documents are aligned first, then lines, then sentences, and words only in the remaining stretches.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from context_bench.text.words import STOP_WORDS, UNSPACED, split_words
from context_bench.traffic.alignment import Span, align, count_common

_MIN_MOVED_CHARS = 12
_MAX_ISLAND_WORDS = 3
_MAX_CANDIDATES = 20
_MAX_LOOKAHEAD = 50

Cut = Callable[[str], list[str]]


_SENTENCE_END = re.compile(
    r"""[.!?。！？}\]"\n](?:"""  # the character comes first, so that the search can skip to the next one
    r"""(?<=[.!?])["'”’)\]]*(?:\n+|(?=\s|[A-Z"'“‘(\[{]))|(?<=[。！？])[”’」』）]*\n*|(?<=[}\]"]),\n*|(?<=\n)\n*)"""
)
_MAX_EVIDENCE_WORDS = 400


def _cut_documents(text: str) -> list[str]:
    """Cut after empty lines, which separate documents and paragraphs."""
    *ended, last = text.split("\n\n")
    return [piece + "\n\n" for piece in ended] + [last] * bool(last)


def _cut_sentences(text: str) -> list[str]:
    """Cut after sentences, and after members of single-line JSON."""
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if start < end]


_PASSAGES: tuple[Cut, ...] = (
    _cut_documents,
    re.compile(r".*\n(?:[ \t]*\n)*|.+").findall,  # lines, with following empty ones
    _cut_sentences,
)
_WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"
_cut_words: Cut = re.compile(rf"\s*(?:{_WORD})|\s+\Z").findall
_cut_tokens: Cut = re.compile(rf"{_WORD}|\s").findall


class Segment(NamedTuple):
    """A stretch of both texts.

    `text` is the stretch in the first text, empty if it was added; `new` is the stretch in the second text, empty if it
    was dropped. All `text` joined in order give the first text, and all `new` the second. Moved text has two segments:
    one with `text` at the old place, one with `new` at the new place.
    """

    kind: Literal["kept", "dropped", "added", "changed", "moved"]
    text: str
    new: str
    evidence: bool = False


def diff_texts(before: str, after: str) -> list[Segment]:
    """Return the segments that turn one text into the other.

    Documents are aligned first, then lines, sentences and words of the remaining stretches. If the second text is a
    selection from the first, nothing was added. Alignment by words can miss such a selection, so selections are checked
    for separately.
    """
    place = before.find(after)
    if place >= 0:
        end = place + len(after)
        return [
            _make_segment(*pair) for pair in ((before[:place], ""), (after, after), (before[end:], "")) if any(pair)
        ]
    segments = [_make_segment(before, after)]
    for cut in _PASSAGES:
        segments = _mark_moved([part for each in segments for part in _compare_pieces(each, cut)], cut)
    segments = [part for each in segments for part in _compare_pieces(each, _cut_words)]
    if any(segment.new and segment.kind != "kept" for segment in segments):
        segments = _find_selection(before, after) or [part for each in segments for part in _compare_ends(each)]
    return list(_join_neighbours(segments))


def _make_segment(old: str, new: str) -> Segment:
    if old == new:
        return Segment("kept", old, new)
    return Segment("changed" if old and new else "dropped" if old else "added", old, new)


def _compare_pieces(segment: Segment, cut: Cut) -> Iterator[Segment]:
    """Align the pieces of a changed segment. Spaces around a piece are compared separately."""
    if segment.kind != "changed" or segment.text.isspace() or segment.new.isspace():
        yield segment
        return
    olds, news = cut(segment.text), cut(segment.new)
    for (start, end), (at, to), same in align(*([piece.strip() for piece in side] for side in (olds, news))):
        if not same:
            yield _make_segment("".join(olds[start:end]), "".join(news[at:to]))
            continue
        for equal, pairs in groupby(zip(olds[start:end], news[at:to]), key=lambda pair: pair[0] == pair[1]):
            if equal:
                kept = "".join(old for old, _ in pairs)
                yield Segment("kept", kept, kept)
                continue
            for old, new in pairs:
                key = old.strip()
                i, j = (old.index(key), new.index(key)) if key else (len(old), len(new))
                k, m = i + len(key), j + len(key)
                if i or j:
                    yield from _compare_ends(_make_segment(old[:i], new[:j]))
                if key:
                    yield Segment("kept", key, key)
                if k < len(old) or m < len(new):
                    yield from _compare_ends(_make_segment(old[k:], new[m:]))


def _compare_ends(segment: Segment) -> Sequence[Segment]:
    """Split a word that was cut, or spaces whose number changed, into a kept and a changed part."""
    kind, old, new, _ = segment
    if kind == "changed":
        if old.startswith(new):
            return Segment("kept", new, new), Segment("dropped", old[len(new) :], "")
        if old.endswith(new):
            return Segment("dropped", old[: -len(new)], ""), Segment("kept", new, new)
        if old.isspace() and new.startswith(old):
            return Segment("kept", old, old), Segment("added", "", new[len(old) :])
    return (segment,)


def _mark_moved(segments: list[Segment], cut: Cut) -> list[Segment]:
    """Mark pieces that were dropped in one place and added in another as moved."""
    if not any(segment.new for segment in segments if segment.kind not in ("kept", "moved")):
        return segments
    counts: list[Counter[str]] = [Counter(), Counter()]
    for segment in segments:
        if segment.kind not in ("kept", "moved"):
            for count, text in zip(counts, (segment.text, segment.new)):
                count.update(key for piece in cut(text) if len(key := piece.strip()) >= _MIN_MOVED_CHARS)
    shared = counts[0] & counts[1]
    if not shared:
        return segments
    left, marked = (shared.copy(), shared.copy()), list[Segment]()
    for segment in segments:
        if segment.kind in ("kept", "moved"):
            marked.append(segment)
            continue
        runs = _group_moved(cut(segment.text), left[0]), _group_moved(cut(segment.new), left[1])
        # Of the other pieces, the longest runs of both sides are compared in later passes.
        (i, old), (j, new) = (
            max(
                ((n, text) for n, (text, moved) in enumerate(side) if not moved),
                key=lambda run: len(run[1]),
                default=(0, ""),
            )
            for side in runs
        )
        kinds: tuple[Literal["dropped", "added"], ...] = ("dropped", "added")
        sides = [
            [
                Segment("moved" if moved else kind, *((text, "") if kind == "dropped" else ("", text)))
                for text, moved in side
            ]
            for side, kind in zip(runs, kinds)
        ]
        marked += [*sides[0][:i], *sides[1][:j], _make_segment(old, new)]
        marked += [*sides[0][i + bool(old) :], *sides[1][j + bool(new) :]]
    return [segment for segment in marked if segment.text or segment.new]


def _group_moved(pieces: Iterable[str], left: Counter[str]) -> list[tuple[str, bool]]:
    """Join neighbouring pieces that have all moved or all stayed; `left` counts the moved pieces not yet seen."""
    runs: list[tuple[str, bool]] = []
    for piece in pieces:
        key = piece.strip()
        moved = left[key] > 0
        left[key] -= moved
        if runs and runs[-1][1] == moved:
            runs[-1] = (runs[-1][0] + piece, moved)
        else:
            runs.append((piece, moved))
    return runs


def _find_selection(before: str, after: str) -> list[Segment]:
    """Return a text as an ordered selection of another text's pieces; empty if it is no such selection."""
    old, new = _cut_tokens(before), _cut_tokens(after)
    latest = [0] * len(new)  # last possible place of each token, with room for all that follow
    place = len(old)
    for number in range(len(new) - 1, -1, -1):
        place -= 1
        while place >= 0 and old[place] != new[number]:
            place -= 1
        if place < 0:
            return []
        latest[number] = place
    places: dict[str, list[int]] = {}
    for place, token in enumerate(old):
        places.setdefault(token, []).append(place)
    segments: list[Segment] = []
    start = number = 0
    while number < len(new):
        known = places[new[number]]
        first, last = bisect_left(known, start), bisect_right(known, latest[number])
        rest = new[number : number + _MAX_LOOKAHEAD]
        candidates = known[first : min(last, first + _MAX_CANDIDATES)]
        at = max(candidates, key=lambda place: count_common(old[place : place + _MAX_LOOKAHEAD], rest))
        size = 0
        while number + size < len(new) and at + size < len(old) and old[at + size] == new[number + size]:
            size += 1
        kept = "".join(new[number : number + size])
        segments += [Segment("dropped", "".join(old[start:at]), ""), Segment("kept", kept, kept)]
        start, number = at + size, number + size
    return [*segments, Segment("dropped", "".join(old[start:]), "")]


def _join_neighbours(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Join neighbours of one kind. Punctuation and stop words between rewritten stretches become part of them."""
    change, kept = Segment("kept", "", ""), list[str]()
    for segment in [*segments, None]:
        if segment is not None and segment.kind == "kept":
            kept.append(segment.text)
            continue
        same = "".join(kept)
        kept = []
        if segment is not None and segment.kind != "moved" != change.kind and _is_island(same, change, segment):
            change = _make_segment(change.text + same + segment.text, change.new + same + segment.new)
            continue
        if change.text or change.new:
            yield change
        if same:
            yield Segment("kept", same, same)
        change = segment or change


def _is_island(kept: str, before: Segment, after: Segment) -> bool:
    """Whether a kept stretch between two rewritten ones has only stop words; between dropped stretches, it counts as
    kept.
    """
    if not kept:
        return True
    if not (before.new and after.new) or "\n" in kept:
        return False
    words = split_words(kept)
    return len(words) <= _MAX_ISLAND_WORDS and STOP_WORDS.issuperset(words)


# --- evidence

_MAX_EVIDENCE_PLACES = 50  # in one changed stretch; with more, all of it counts as evidence


def mark_evidence(segments: Iterable[Segment], evidence: Iterable[str]) -> list[Segment]:
    """Divide segments so that evidence, on either side, is in separate segments."""
    segments = list(segments)
    evidence = list(evidence)
    spans = _find_places(evidence, "".join(segment.text for segment in segments))
    others = _find_places(evidence, "".join(segment.new for segment in segments))
    marked: list[Segment] = []
    i = j = 0
    for segment in segments:
        old, new = _clip_spans(spans, i, i + len(segment.text)), _clip_spans(others, j, j + len(segment.new))
        if segment.kind != "changed":
            marked += _divide(segment, old + new)
        elif 0 < len(old) + len(new) <= _MAX_EVIDENCE_PLACES:  # each side has its own evidence
            marked += _divide(segment._replace(kind="dropped", new=""), old)
            marked += _divide(segment._replace(kind="added", text=""), new)
        else:
            marked.append(segment._replace(evidence=bool(old or new)))
        i, j = i + len(segment.text), j + len(segment.new)
    return marked


def _find_places(evidence: Iterable[str], text: str) -> list[Span]:
    """Return the places of evidence in order; overlapping places are merged."""
    places: list[Span] = []
    for start, end in sorted(place for span in evidence for place in _find_span(span.strip(), text)):
        if places and start <= places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((start, end))
    return places


def _find_span(span: str, text: str) -> Iterator[Span]:
    """Find a span verbatim or by its words, ignoring case; of a very long span, find only the beginning."""
    if not span:
        return
    ways = [re.escape(span)]
    words = split_words(span)[:_MAX_EVIDENCE_WORDS]
    if words:
        ways.append(r"\b" + r"[\W_]*".join(map(re.escape, words)) + r"\b")
    pattern = re.compile("|".join(ways), re.IGNORECASE)
    if not (span.isascii() and text.isascii()):
        yield from (match.span() for match in pattern.finditer(text))
        return
    # A search that ignores case is slow, so it runs only where the first character or word occurs.
    lower, first, end = text.lower(), words[0] if words else span, 0
    heads = {head.lower() for head in (first, span[: len(first)])}
    for start in sorted({start for head in heads for start in _list_places(head, lower)}):
        if start >= end and (match := pattern.match(text, start)):
            end = match.end()
            yield match.span()


def _list_places(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _clip_spans(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Return the parts of spans inside a range, relative to its start."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    last = bisect_left(spans, end, key=lambda span: span[0])
    return [(max(a, start) - start, min(b, end) - start) for a, b in spans[first:last]]


def _divide(segment: Segment, spans: Sequence[Span]) -> Iterator[Segment]:
    """Cut a segment at each start and end of evidence."""
    text = segment.text or segment.new
    cuts = sorted({0, len(text), *(place for span in spans for place in span)})
    for start, end in pairwise(cuts):
        piece = text[start:end]
        evidence = any(a <= start and end <= b for a, b in spans)
        old, new = piece if segment.text else "", piece if segment.new else ""
        yield Segment(segment.kind, old, new, evidence)
