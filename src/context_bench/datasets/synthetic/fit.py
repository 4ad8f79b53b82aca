"""Assembly: facts at given depths in filler, to an exact length in cl100k_base tokens.

Filler comes in units (a sentence, a log line, a record) that carry what separates them. Each is counted once
on its own; the last few of a stretch are chosen by subset sum to meet its budget; then the whole text is
counted, and what the sum of the parts had missed is made up. The result is never longer than asked, and at
most 2% shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from context_bench.errors import UsageError
from context_bench.utils.tokens import count_tokens

ENCODING = "cl100k_base"
POOL = 32  # how many units, and then how many scraps, are tried to meet a budget
ROUNDS = 12  # how often a text is refitted; two are usual
SMALLEST = 3  # no unit or scrap has fewer tokens


def tokens(text: str) -> int:
    """Count the tokens of `text`, always in cl100k_base, whatever the default tokenizer is."""
    return count_tokens(text, ENCODING)


class Fact(NamedTuple):
    """A hidden fact: the `unit` that goes into the text, and the part of it that is the evidence."""

    unit: str
    evidence: str
    depth: float


class Stock(NamedTuple):
    """A source of filler.

    `unit` gives the usual piece, `scrap` a small one for gaps that no usual piece fills; `glue` is how a
    piece typically ends, as tokens run across the seam; `render` puts a frame around the pieces.
    """

    unit: Callable[[], str]
    scrap: Callable[[], str]
    glue: str
    render: Callable[[Sequence[str]], str]

    def size(self, unit: str) -> int:
        """Count what `unit` adds to a text that it is appended to."""
        return tokens(self.glue + unit) - tokens(self.glue)


class Assembled(NamedTuple):
    """A finished context; `depths` (by tokens) and `evidence` are in the order of the facts."""

    context: str
    depths: list[float]
    evidence: list[dict[str, Any]]


@dataclass
class Stretch:
    """Filler between two facts: `bulk` as it came, and a `tail` chosen to meet the budget."""

    bulk: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    used: int = 0
    tail_used: int = 0

    def grow(self, more: int, stock: Stock, slop: int) -> None:
        """Refill so that about `more` tokens come in (or go, if negative): bulk first, then a new tail."""
        room = self.tail_used + more
        self.used -= self.tail_used
        while room < 0 and self.bulk:
            size = stock.size(self.bulk.pop())
            room += size
            self.used -= size
        largest = 0
        while room > 0:
            unit = stock.unit()
            size = stock.size(unit)
            largest = max(largest, size)
            if room < size + 4 * largest:
                break
            self.bulk.append(unit)
            room -= size
            self.used += size
        self.tail, self.tail_used = fit(room, stock, slop)
        self.used += self.tail_used


def assemble(length: int, facts: Sequence[Fact], stock: Stock) -> Assembled:
    """Put `facts`, sorted by depth, into filler from `stock` so that the text has `length` tokens."""
    slop = min(length // 200, 4)
    sizes = [stock.size(fact.unit) for fact in facts]
    total = length - tokens(stock.render([])) - sum(sizes)
    stretches: list[Stretch] = []
    used = 0
    for fact, size in zip(facts, sizes):
        before = stock.size(fact.unit[: fact.unit.index(fact.evidence)])
        around = size - tokens(fact.evidence)  # the part of the unit that is not evidence is filler, too
        target = min(max(round(fact.depth * (total + around)) - before, 0), total)
        stretches.append(_make_stretch(target - used, stock, slop))
        used += stretches[-1].used
    # A fact at depth 1 comes last: what is missing then is added before it, not behind it.
    stretches.append(_make_stretch(0 if facts[-1].depth == 1.0 else total - used, stock, slop))
    context = _refit(length, facts, stock, stretches)
    spans = [span(context, fact.evidence) for fact in facts]
    return Assembled(context, _measure_depths(context, spans), spans)


def _make_stretch(budget: int, stock: Stock, slop: int) -> Stretch:
    stretch = Stretch()
    stretch.grow(budget, stock, slop)
    return stretch


def span(context: str, text: str) -> dict[str, Any]:
    """Locate the one occurrence of `text` in `context`."""
    start = context.index(text)
    if context.find(text, start + 1) != -1:
        raise AssertionError(f"evidence is not unique: {text!r}")
    return {"start": start, "end": start + len(text), "text": text}


def _measure_depths(context: str, spans: Sequence[dict[str, Any]]) -> list[float]:
    """Return for each span, in the order of the text, the share of the other tokens that stand before it."""
    before: list[int] = []
    own: list[int] = []
    total = end = 0
    for place in spans:
        before.append(total + tokens(context[end : place["start"]]))
        own.append(tokens(place["text"]))
        total, end = before[-1] + own[-1], place["end"]
    total += tokens(context[end:])
    return [round(first / max(total - size, 1), 4) for first, size in zip(before, own)]


def _refit(length: int, facts: Sequence[Fact], stock: Stock, stretches: list[Stretch]) -> str:
    """Count the whole text and refit the largest stretch until the length is right."""
    largest = max(stretches, key=lambda stretch: stretch.used)
    best = ""
    for _ in range(ROUNDS):
        context = stock.render(_list_units(facts, stretches))
        slack = length - tokens(context)
        if 0 <= slack <= length // 100:
            return context
        if 0 <= slack <= length // 50:
            best = best or context
        largest.grow(slack, stock, 0)
    if not best:
        raise UsageError(f"length={length} is too short for what has to go in: use a greater length")
    return best


def _list_units(facts: Sequence[Fact], stretches: list[Stretch]) -> list[str]:
    units = [*stretches[0].bulk, *stretches[0].tail]
    for fact, stretch in zip(facts, stretches[1:]):
        units += [fact.unit, *stretch.bulk, *stretch.tail]
    return units


def fit(room: int, stock: Stock, slop: int) -> tuple[list[str], int]:
    """Choose units whose sizes add up to `room`, or to at most `slop` less if possible; scraps only if needed."""
    chosen: dict[int, tuple[str, ...]] = {0: ()}
    most = 0
    for index in range(2 * POOL):
        if room - most <= slop or room < SMALLEST:
            break
        unit = stock.unit() if index < POOL else stock.scrap()
        size = stock.size(unit)
        for used in sorted(chosen):
            if used + size <= room and used + size not in chosen and unit not in chosen[used]:
                chosen[used + size] = (*chosen[used], unit)
                most = max(most, used + size)
    return list(reversed(chosen[most])), most  # scraps first: no oddity right before a fact


class ToolOutput(NamedTuple):
    """Filler of one kind, and the fact to hide in it: `unit` states it, `evidence` is the part that matters."""

    stock: Stock
    unit: str
    evidence: str
    question: str
    answer: str
    layout: str
