"""The place of the evidence in the context, and the share of the evidence that a naive cut to a given size would keep.

The evidence is located once. Truncation and random deletion are then judged by position, so each system can be compared
with controls of exactly its size, without a request and without cutting any text.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from context_bench.evaluators.text_search import list_prompt_texts
from context_bench.systems.reference import shuffle_indices, split
from context_bench.text.golds import Gold, evidence_texts, gold_answers
from context_bench.text.words import normalise
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer

DROP = "random-drop"
SEEDS = 5  # orders in which random deletion is tried

MAX_PIECES = 5_000
"""Most pieces (sentences or lines) that are dropped one by one; in longer contexts, neighbours are joined."""
MAX_PLACES = 200  # most places of one span that are kept: an answer such as "1" may occur anywhere

_CONCLUSIONS = ("yes", "no")

Place = tuple[int, int]  # start and end of a span, in characters


@dataclass(frozen=True)
class EvidenceMap:
    """The places of the evidence of one example."""

    # alternatives, of which one suffices. Each is a list of spans, all of which are needed; each span is a list of its
    # places. Evidence has one alternative, accepted answers one each
    needs: Sequence[Sequence[Sequence[Place]]]
    ends: Sequence[int]  # where each sentence or line of the text ends, in characters
    tokens: Sequence[int]  # how many tokens there are up to each of these ends
    seed: str  # names the example in the order of random deletion
    whole: int  # the tokens of the text, which are fewer than those of its pieces counted one by one
    counted: Mapping[int, int] = field(default_factory=dict)  # exact tokens before some characters

    @property
    def total(self) -> int:
        """The tokens of all pieces together; places are measured in these tokens."""
        return self.tokens[-1] if self.tokens else 0

    def find_depths(self) -> tuple[float, float]:
        """Return the shares of the tokens before the first and before the last of the needed spans.

        A span with several places counts at the first of them; of several accepted answers, the earliest counts.
        """
        total = self.total or 1
        firsts = [[self._measure(places[0][0]) / total for places in spans] for spans in self.needs]
        earliest = min(firsts, key=max)
        return min(earliest), max(earliest)

    def count_places(self) -> int:
        """Count the places of the span that occurs least often."""
        return min(len(places) for spans in self.needs for places in spans)

    def score_controls(self, kept: int) -> dict[str, list[float]]:
        """Score each control that keeps this many of the `whole` tokens: the share of the needed spans that it keeps.

        Returns:
            One share for each kept stretch, and one for each seed of random deletion.
        """
        total = self.total
        kept = round(min(max(kept / self.whole if self.whole else 0.0, 0.0), 1.0) * total)
        half = (total - kept) / 2
        bounds: dict[str, tuple[float, float]] = {
            "head": (0, kept),
            "tail": (total - kept, total),
            "middle": (half, total - half),
        }
        scores = {name: [self._score(partial(self._fits, low, high))] for name, (low, high) in bounds.items()}
        scores[DROP] = [self._score_drop(seed, kept) for seed in range(SEEDS)]
        return scores

    def describe_cut(self, kept: int) -> dict[str, Any]:
        """Describe a cut that keeps this many of the `whole` tokens, for the metadata of a row."""
        kept = min(max(kept, 0), self.whole)
        return {
            "evidence_depth": list(self.find_depths()),
            "context_tokens": [self.whole, kept],
            "matched_controls": self.score_controls(kept),
        }

    def _score(self, keeps: Callable[[Place], bool]) -> float:
        """Return the share of spans with at least one kept place, for the best alternative."""
        return max(sum(any(keeps(place) for place in places) for places in spans) / len(spans) for spans in self.needs)

    def _fits(self, low: float, high: float, place: Place) -> bool:
        start, end = map(self._measure, place)
        return low - 0.5 <= start and end <= high + 0.5  # a cut in the middle of a token keeps it

    def _measure(self, position: int) -> float:
        """Return the number of tokens before a character; tokens that were not counted are estimated from the piece."""
        if position in self.counted:
            return self.counted[position]
        piece = min(bisect_left(self.ends, position), len(self.ends) - 1)
        first = self.ends[piece - 1] if piece else 0
        before = self.tokens[piece - 1] if piece else 0
        length = self.ends[piece] - first
        return before + (self.tokens[piece] - before) * ((position - first) / length if length else 0.0)

    @cached_property
    def _costs(self) -> list[int]:
        return [after - before for before, after in zip((0, *self.tokens), self.tokens)]

    @cached_property
    def _orders(self) -> list[list[int]]:
        return [shuffle_indices(len(self.ends), f"{DROP} {seed} {self.seed}") for seed in range(SEEDS)]

    def _score_drop(self, seed: int, kept: int) -> float:
        """Score random deletion: whole pieces are kept, in a random order, until they fill the size.

        The first piece that does not fit is kept with a probability equal to the share of it that fits. Filling up with
        smaller pieces instead would favour short pieces, and so evidence in a short line.
        """
        taken, left = set(), kept
        for piece in self._orders[seed]:
            cost = self._costs[piece]
            if cost <= left or (seed + 0.5) / SEEDS < left / cost:
                taken.add(piece)
            left -= cost
            if left <= 0:
                break

        def keeps(place: Place) -> bool:
            first, last = bisect_right(self.ends, place[0]), bisect_left(self.ends, place[1])
            return all(piece in taken for piece in range(first, last + 1))

        return self._score(keeps)


def locate_evidence(example: Example, count: Tokenizer) -> EvidenceMap | None:
    """Locate what the answer to an example needs: its evidence, else its accepted answers.

    A conversation is read as one text.

    Returns:
        None if the text contains nothing of that, so that nothing can be lost.
    """
    text = "\n".join(list_prompt_texts(example))
    if not text.strip():
        return None
    wanted = [evidence_texts(example)] if example.get("evidence") else list(map(_list_stated, gold_answers(example)))
    pieces = join_pieces(split(text))
    ends = list(accumulate(map(len, pieces)))
    finder = _Finder(text, pieces, ends)
    needs = [spans for need in wanted if (spans := [places for span in need if (places := finder.find(span))])]
    if not needs:
        return None
    tokens = list(accumulate(map(count, pieces)))
    counted = {}
    for position in {side for spans in needs for places in spans for side in places[0]}:
        piece = bisect_left(ends, position)
        first, before = (ends[piece - 1], tokens[piece - 1]) if piece else (0, 0)
        counted[position] = before + count(text[first:position])
    return EvidenceMap(needs, ends, tokens, repr(example["id"]), count(text), counted)


def _list_stated(gold: Gold) -> list[str]:
    """List the parts of an answer that a context can state; not `yes` or `no`, which would occur by chance."""
    return [part for part in gold if normalise(part).strip() not in _CONCLUSIONS]


def join_pieces(pieces: list[str]) -> list[str]:
    """Join neighbouring pieces if there are too many for random deletion to tell apart."""
    width = -(-len(pieces) // MAX_PIECES)
    return pieces if width < 2 else ["".join(pieces[at : at + width]) for at in range(0, len(pieces), width)]


class _Finder:
    """Finds the places of spans in one text: literally, else by normalised words within a piece."""

    def __init__(self, text: str, pieces: Sequence[str], ends: Sequence[int]) -> None:
        self._text, self._pieces, self._ends = text, pieces, ends

    def find(self, span: str) -> list[Place]:
        """Return the places of a span in whole words, in their order."""
        wanted = normalise(span)
        found = [place for place in _find_literally(self._text, span.strip()) if self._is_whole(place)]
        if found or not wanted.strip():
            return found[:MAX_PLACES]
        return list(self._find_words(wanted))[:MAX_PLACES]

    def _is_whole(self, place: Place) -> bool:
        start, end = place
        text = self._text
        cut_before = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        cut_after = end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
        return not (cut_before or cut_after)

    @cached_property
    def _words(self) -> tuple[str, list[int]]:
        """The normalised words of all pieces as one text, and where in this text each piece ends."""
        forms = [" ".join(normalise(piece).split()) for piece in self._pieces]
        return " " + " ".join(forms) + " ", list(accumulate(len(form) + 1 for form in forms))

    def _find_words(self, wanted: str) -> Iterable[Place]:
        words, ends = self._words
        for start, end in _find_literally(words, wanted):
            first, last = bisect_right(ends, start), bisect_left(ends, end - 1)
            yield (self._ends[first - 1] if first else 0), self._ends[min(last, len(self._ends) - 1)]


def _find_literally(text: str, span: str) -> Iterable[Place]:
    start = text.find(span)
    while start >= 0 and span:
        yield start, start + len(span)
        start = text.find(span, start + 1)
