"""The diff of a text: which stretches a system kept, dropped, added or changed, and where the evidence is.

Documents are aligned first, then lines, then sentences, and words only within what is left. `compare_passed_on` does so
for what a system passed on to the model.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Literal, NamedTuple

from rapidfuzz.distance import Indel

from context_bench.text import dump_json
from context_bench.text.words import STOP_WORDS, UNSPACED, split_words
from context_bench.traffic.exchanges import Exchange, read_exchanges
from context_bench.wire.prompts import Prompt

_MAX_CELLS = 25_000_000  # pairs of pieces up to which the longest common subsequence is computed: some 3 MB and 10 ms
_MAX_DEPTH = 8
_WINDOW = 4_000  # pieces of each side that are compared at once where nothing divides a long text
_MIN_MOVED_CHARS = 12
_MAX_ISLAND_WORDS = 3
_MAX_CANDIDATES = 20
_MAX_LOOKAHEAD = 50

Match = tuple[int, int, int]
Span = tuple[int, int]
Cut = Callable[[str], list[str]]


# --- alignment


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
    """Find where the same pieces stand in both, in order: (place in the one, place in the other, how many).

    Pieces that occur once on each side divide the texts. A longest common subsequence alone would align two texts on
    their most frequent words.
    """
    head = _count_common(old, new)
    tail = _count_common(old[head:][::-1], new[head:][::-1])
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
        if i < at and j < other:
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
    return _find_rising([(place, there[piece]) for piece, place in once.items() if piece in there])


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


# --- texts

_SENTENCE_END = re.compile(
    r"""(?<=[.!?])["'”’)\]]*(?:\n+|(?=\s|[A-Z"'“‘(\[{]))|(?<=[。！？])[”’」』）]*\n*|(?<=[}\]"]),\n*|\n+"""
)
_MAX_EVIDENCE_WORDS = 400


def _cut_sentences(text: str) -> list[str]:
    """Cut after sentences, and after the members of JSON that stands on one line."""
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts) if start < end]


_PASSAGES: tuple[Cut, ...] = (
    re.compile(r"(?<=\n\n)").split,  # documents and paragraphs
    re.compile(r".*\n(?:[ \t]*\n)*|.+").findall,  # lines, with the empty ones after them
    _cut_sentences,
)
_WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]"
_cut_words: Cut = re.compile(rf"\s*(?:{_WORD})|\s+\Z").findall
_cut_tokens: Cut = re.compile(rf"{_WORD}|\s").findall


class Segment(NamedTuple):
    """A stretch of both texts.

    `text` is what stood in the first one, empty for what was added; `new` what stands in the second, empty for
    what was dropped. All `text` in order are the first text, all `new` the second one. Text that moved is two
    segments: one with `text` where it was, one with `new` where it is now.
    """

    kind: Literal["kept", "dropped", "added", "changed", "moved"]
    text: str
    new: str
    evidence: bool = False


class DiffPart(NamedTuple):
    """One message, or another part of a prompt, before and after."""

    title: str
    segments: list[Segment]


def diff_texts(before: str, after: str) -> list[Segment]:
    """Find the segments that lead from one text to the other.

    Documents are aligned first, then the lines, sentences and words of what is left. Where the second text is a
    selection from the first, nothing is added: some alignments by words would not find it, so it is searched for.
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
    """Align the pieces of a changed segment. Spaces around a piece do not count, and are compared on their own."""
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
    """Show a word that was cut off, and spaces of another length, as kept in part."""
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
    """Find the pieces that were dropped in one place and added in another."""
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
        # What did not move is compared further on: the longest such run of one side with that of the other.
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
    """Join neighbouring pieces that moved, and those that did not; `left` counts the pieces still to be found."""
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
    """Find a text as pieces of another one, in their order; empty where it is no such selection."""
    old, new = _cut_tokens(before), _cut_tokens(after)
    latest = [0] * len(new)  # the last place that each token can take so that those after it still find theirs
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
        at = max(candidates, key=lambda place: _count_common(old[place : place + _MAX_LOOKAHEAD], rest))
        size = 0
        while number + size < len(new) and at + size < len(old) and old[at + size] == new[number + size]:
            size += 1
        kept = "".join(new[number : number + size])
        segments += [Segment("dropped", "".join(old[start:at]), ""), Segment("kept", kept, kept)]
        start, number = at + size, number + size
    return [*segments, Segment("dropped", "".join(old[start:]), "")]


def _join_neighbours(segments: Iterable[Segment]) -> Iterator[Segment]:
    """Join neighbours of one kind. Signs and stop words alone between two rewritten stretches are part of them."""
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
    """Whether a kept stretch says nothing between two rewritten ones; between dropped ones it is what is left."""
    if not kept:
        return True
    if not (before.new and after.new) or "\n" in kept:
        return False
    words = split_words(kept)
    return len(words) <= _MAX_ISLAND_WORDS and STOP_WORDS.issuperset(words)


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

_MAX_EVIDENCE_PLACES = 50  # in one changed stretch, up to which they are told apart


def mark_evidence(segments: Iterable[Segment], evidence: Iterable[str]) -> list[Segment]:
    """Divide segments so that the evidence, on either side, stands in segments of its own."""
    segments = list(segments)
    patterns = [pattern for span in evidence if (pattern := _compile_evidence(span)) is not None]
    spans = _find_places(patterns, "".join(segment.text for segment in segments))
    others = _find_places(patterns, "".join(segment.new for segment in segments))
    marked: list[Segment] = []
    i = j = 0
    for segment in segments:
        old, new = _clip_spans(spans, i, i + len(segment.text)), _clip_spans(others, j, j + len(segment.new))
        if segment.kind != "changed":
            marked += _divide(segment, old + new)
        elif 0 < len(old) + len(new) <= _MAX_EVIDENCE_PLACES:  # two sides, each with its own evidence
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
    words = split_words(span)[:_MAX_EVIDENCE_WORDS]
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
            why = "goes on from a reply that the tap did not see" if call.conversation is None else "holds no messages"
            yield PassedOn(f"{title}: {call.path} {why}", [])
        else:
            parts = diff_prompts(sent, call.prompt)
            if changes := [each for each in exchange.list_changes(call) if each != "tools"]:
                parts.append(DiffPart("settings", diff_texts("", "\n".join(changes))))
            hidden = [f"{prompt.count_opaque()} encrypted or stored items" for prompt in (sent, call.prompt)]
            if any(not each.startswith("0 ") for each in hidden):
                parts.append(DiffPart("items that only the API can read", diff_texts(*hidden)))
            if call.edits:
                edits = "\n".join(", ".join(f"{key}: {edit[key]}" for key in edit) for edit in call.edits)
                parts.append(DiffPart("edited by the API before the model read it", diff_texts("", edits)))
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
