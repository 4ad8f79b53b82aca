"""The diff of a text: which stretches a system kept, dropped, added or changed, and where the evidence is.

Lines are compared first, then the words of lines that differ. `compare_passed_on` does so for what a system passed on
to the model.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from rapidfuzz.distance import Indel

from context_bench.text import dump_json
from context_bench.text.words import split_words
from context_bench.traffic.exchanges import Exchange, read_exchanges
from context_bench.wire.prompts import Prompt

__all__ = [
    "DiffPart",
    "PassedOn",
    "Segment",
    "align",
    "compare_passed_on",
    "diff_prompts",
    "diff_texts",
    "mark_evidence",
]

_CELLS = 200_000_000
"""Pairs of pieces that are compared as a whole: some 25 MB, and a tenth of a second."""

_DEPTH = 8
_WINDOW = 8_000

Match = tuple[int, int, int]
Span = tuple[int, int]


def align(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[Span, Span, bool]]:
    """Yield both sequences in stretches, (start, end) in each, that are the same or not."""
    i = j = 0
    for at, other, size in [*_find_runs(old, new), (len(old), len(new), 0)]:
        if i < at or j < other:
            yield (i, at), (j, other), False
        i, j = at + size, other + size
        if size:
            yield (at, i), (other, j), True


def _find_runs(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Find the runs of equal pieces; pieces that only one side has are left out of the search."""
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
    """Find where the same pieces stand in both, in order: (place in the one, place in the other, how many)."""
    head = _count_common(old, new)
    tail = _count_common(old[head:][::-1], new[head:][::-1])
    if head:
        yield 0, 0, head
    inner_old, inner_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(inner_old) * len(inner_new) <= _CELLS:
        found: Iterable[Match] = _match_all(inner_old, inner_new)
    else:
        anchors = _find_anchors(inner_old, inner_new) if depth < _DEPTH else []
        if anchors:
            found = _match_between(inner_old, inner_new, anchors, depth)
        else:
            found = _match_windows(inner_old, inner_new)
    for at, other, size in found:
        yield head + at, head + other, size
    if tail:
        yield len(old) - tail, len(new) - tail, tail


def _count_common(old: Sequence[str], new: Sequence[str]) -> int:
    return next((place for place, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))


def _match_all(old: Sequence[str], new: Sequence[str]) -> list[Match]:
    """Find as many equal pieces as possible, in order; for short stretches."""
    blocks = Indel.editops(old, new).as_matching_blocks()
    return [(block.a, block.b, block.size) for block in blocks if block.size]


def _match_between(
    old: Sequence[str], new: Sequence[str], anchors: Sequence[tuple[int, int]], depth: int
) -> Iterator[Match]:
    """Yield the anchors, and what is found between them."""
    i = j = 0
    for at, other in [*anchors, (len(old), len(new))]:
        for inner, across, size in _find_matches(old[i:at], new[j:other], depth + 1):
            yield i + inner, j + across, size
        if at < len(old):
            yield at, other, 1
        i, j = at + 1, other + 1


def _match_windows(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Move a window on both sides, which goes on by what was found in its first half."""
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
    """Find the longest row of pieces that occur once on each side and come in the same order on both."""
    once, there = _find_unique(old), _find_unique(new)
    pairs = [(place, there[piece]) for piece, place in once.items() if piece in there]
    return _find_rising(pairs)


def _find_unique(pieces: Sequence[str]) -> dict[str, int]:
    counts = Counter(pieces)
    return {piece: place for place, piece in enumerate(pieces) if counts[piece] == 1}


def _find_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Choose, of pairs that rise in the first number, the most that rise in the second too."""
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


_PIECES = re.compile(r"(\s*)(\w+|[^\w\s]|\Z)")
_LONGEST_EVIDENCE = 400


class Segment(NamedTuple):
    """A stretch of both texts.

    `text` is what stood in the first one, empty for what was added; `new` what stands in the second, empty for
    what was dropped. All `text` in order are the first text, all `new` the second one.
    """

    kind: Literal["kept", "dropped", "added", "changed"]
    text: str
    new: str
    evidence: bool = False


class DiffPart(NamedTuple):
    """One message, or another part of a prompt, before and after."""

    title: str
    segments: list[Segment]


def diff_texts(before: str, after: str) -> list[Segment]:
    """Find the segments that lead from one text to the other."""
    segments: list[Segment] = []
    lines, others = before.splitlines(keepends=True), after.splitlines(keepends=True)
    for (start, end), (at, to), same in align(lines, others):
        old, new = "".join(lines[start:end]), "".join(others[at:to])
        segments += [_make_segment(old, new)] if same else _diff_words(old, new)
    return list(_join_neighbours(segments))


def _diff_words(before: str, after: str) -> Iterator[Segment]:
    """Find the segments of lines that differ. Only words and signs are compared: spaces are all alike."""
    olds, news = _PIECES.findall(before), _PIECES.findall(after)
    for (start, end), (at, to), same in align([word for _, word in olds], [word for _, word in news]):
        old, new = olds[start:end], news[at:to]
        if not same or old == new:
            yield _make_segment("".join(map("".join, old)), "".join(map("".join, new)))
            continue
        for (space, word), (other, _) in zip(old, new):
            yield _make_segment(space, other)
            yield _make_segment(word, word)


def _make_segment(old: str, new: str) -> Segment:
    if old == new:
        return Segment("kept", old, new)
    return Segment("changed" if old and new else "dropped" if old else "added", old, new)


def _join_neighbours(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Join neighbours of one kind; a sign or space alone between two changes is part of them."""
    old: list[str] = []
    new: list[str] = []
    kept: list[str] = []
    for segment in segments:
        if segment.kind == "kept":
            kept.append(segment.text)
            continue
        same = "".join(kept)
        if re.search(r"[\w\n]", same) or (same and not (old or new)):
            if old or new:
                yield _make_segment("".join(old), "".join(new))
            yield Segment("kept", same, same)
            old, new = [segment.text], [segment.new]
        else:
            old += same, segment.text
            new += same, segment.new
        kept = []
    if old or new:
        yield _make_segment("".join(old), "".join(new))
    if same := "".join(kept):
        yield Segment("kept", same, same)


# --- prompts


def diff_prompts(before: Prompt, after: Prompt) -> list[DiffPart]:
    """Find what became of each part of a prompt; prompts that mean the same to a model show no change.

    Messages are paired by their order. Where there are more or fewer of them than before, which of them became
    which is anybody's guess: then all of their text is compared as one.
    """
    before, after = before.as_read(), after.as_read()
    old, new = before.messages_and_system(), after.messages_and_system()
    if len(old) == len(new):
        parts = [_diff_messages(number, len(old), *pair) for number, pair in enumerate(zip(old, new), 1)]
    else:
        title = f"all messages ({len(old)} sent, {len(new)} passed on)"
        parts = [DiffPart(title, diff_texts(*("\n\n".join(map(_join_texts, side)) for side in (old, new))))]
    if before.tools or after.tools:
        parts.append(DiffPart("tools", diff_texts(_list_tools(before.tools), _list_tools(after.tools))))
    return parts


def _diff_messages(number: int, total: int, old: Any, new: Any) -> DiffPart:
    """Compare the texts of two messages; where those are equal and the messages are not, all that the messages hold."""
    title = f"message {number} of {total}: {_read_role(old)}"
    if _read_role(old) != _read_role(new):
        title += f", passed on as {_read_role(new)}"
    texts = _join_texts(old), _join_texts(new)
    if texts[0] == texts[1] and _drop_role(old) != _drop_role(new):
        texts = dump_json(old), dump_json(new)
    return DiffPart(title, diff_texts(*texts))


def _read_role(message: Any) -> str:
    return str(message.get("role")) if isinstance(message, dict) else "?"


def _join_texts(message: Any) -> str:
    return "\n".join(filter(None, Prompt(messages=[message]).texts()))


def _drop_role(message: Any) -> Any:
    return {**message, "role": None} if isinstance(message, dict) else message


def _list_tools(tools: Iterable[Any]) -> str:
    return "".join(dump_json(tool) + "\n" for tool in tools)


# --- evidence

_MANY = 50
"""Places of evidence in one changed stretch, up to which they are told apart."""


def mark_evidence(segments: Iterable[Segment], evidence: Iterable[str]) -> list[Segment]:
    """Divide segments so that the evidence, on either side, stands in segments of its own."""
    segments = list(segments)
    patterns = [pattern for span in evidence if (pattern := _compile_evidence(span)) is not None]
    spans = _find_places(patterns, "".join(segment.text for segment in segments))
    others = _find_places(patterns, "".join(segment.new for segment in segments))
    marked: list[Segment] = []
    i = j = 0
    for segment in segments:
        if segment.kind in ("kept", "dropped"):
            inside = _clip_spans(spans, i, i + len(segment.text))
            if segment.kind == "kept":
                inside += _clip_spans(others, j, j + len(segment.new))
            marked += _divide(segment, inside)
        elif segment.kind == "added":
            marked += _divide(segment, _clip_spans(others, j, j + len(segment.new)))
        else:
            old, new = _clip_spans(spans, i, i + len(segment.text)), _clip_spans(others, j, j + len(segment.new))
            if 0 < len(old) + len(new) <= _MANY:  # two sides, each with its own evidence
                marked += _divide(segment._replace(kind="dropped", new=""), old)
                marked += _divide(segment._replace(kind="added", text=""), new)
            else:
                marked.append(segment._replace(evidence=bool(old or new)))
        i, j = i + len(segment.text), j + len(segment.new)
    return marked


def _compile_evidence(span: str) -> re.Pattern[str] | None:
    """Compile a pattern that finds a span as it is, or by its words; a very long one by its beginning."""
    if not span.strip():
        return None
    ways = [re.escape(span.strip())]
    words = split_words(span)[:_LONGEST_EVIDENCE]
    if words:
        ways.append(r"\b" + r"[\W_]*".join(map(re.escape, words)) + r"\b")
    return re.compile("|".join(ways), re.IGNORECASE)


def _find_places(patterns: Iterable[re.Pattern[str]], text: str) -> list[Span]:
    """Find where evidence stands, in order; what overlaps is one."""
    places: list[Span] = []
    for start, end in sorted(match.span() for pattern in patterns for match in pattern.finditer(text)):
        if places and start <= places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((start, end))
    return places


def _clip_spans(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """Cut spans to their parts within a range, counted from its start."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    last = bisect_left(spans, end, key=lambda span: span[0])
    return [(max(a, start) - start, min(b, end) - start) for a, b in spans[first:last]]


def _divide(segment: Segment, spans: Sequence[Span]) -> Iterator[Segment]:
    """Cut a segment wherever evidence begins or ends."""
    text = segment.text or segment.new
    cuts = sorted({0, len(text), *(place for span in spans for place in span)})
    for start, end in pairwise(cuts):
        piece = text[start:end]
        evidence = any(a <= start and end <= b for a, b in spans)
        old, new = piece if segment.text else "", piece if segment.new else ""
        yield Segment(segment.kind, old, new, evidence)


class PassedOn(NamedTuple):
    """A request as sent against what was passed on; `parts` is empty where the title says it all."""

    title: str
    parts: list[DiffPart]


def compare_passed_on(example: Mapping[str, Any], processed: Mapping[str, Any] | None) -> list[PassedOn]:
    """Compare an example with what a system returned for it, or, with a tap, with each request that it sent on.

    Args:
        example: As the system got it.
        processed: What the system returned; None where no answer is stored.
    """
    if processed is None:
        return [PassedOn("nothing to compare: no answer is stored", [])]
    if processed.get("tapped"):
        exchanges = read_exchanges(processed["tapped"])
        return [
            each
            for number, exchange in enumerate(exchanges, 1)
            for each in _compare_tapped(exchange, f"request {number} of {len(exchanges)}")
        ]
    return _compare_contexts(example, processed)


def _compare_tapped(exchange: Exchange, name: str) -> Iterator[PassedOn]:
    """Compare what was sent with each request that it became."""
    sent, calls = exchange.prompt or Prompt(), exchange.calls
    seen: dict[str, int] = {}
    if not calls:
        why = "it is not known which request at the tap it became" if exchange.unmatched else "nothing was passed on"
        yield PassedOn(f"{name}: {why}", [])
    for number, call in enumerate(calls, 1):
        title = f"{name}, call {number} of {len(calls)}, answered with {call.status or 'nothing'}"
        if call.body in seen:
            yield PassedOn(f"{title}: the same as call {seen[call.body]}", [])
        elif call.prompt is None:
            yield PassedOn(f"{title}: {call.path} holds no messages", [])
        else:
            parts = diff_prompts(sent, call.prompt)
            if changes := [each for each in exchange.list_changes(call) if each != "tools"]:
                parts.append(DiffPart("settings", diff_texts("", "\n".join(changes))))
            yield PassedOn(title if len(calls) > 1 else name, parts)
        seen.setdefault(call.body, number)


def _compare_contexts(example: Mapping[str, Any], processed: Mapping[str, Any]) -> list[PassedOn]:
    """Compare the context or conversation with what a compressor in this process made of it."""
    context, turns = processed.get("context"), processed.get("turns")
    if isinstance(turns, list) and turns != example.get("turns"):
        return [PassedOn("", diff_prompts(Prompt(messages=example.get("turns") or []), Prompt(messages=turns)))]
    if isinstance(context, str):
        return [PassedOn("", [DiffPart("context", diff_texts(str(example.get("context") or ""), context))])]
    return [PassedOn("nothing to compare: the system returned an answer only; --tap shows what it sends on", [])]
