"""Building blocks of synthetic datasets: seeded choices and names, and texts of an exact length with facts in them.

Choices give the same result in every process and on every Python version. Only `Random.random()` is used, seeded by a
string: the standard library promises a stable sequence for it, but not for `choice`, `shuffle` or `sample`.

`assemble` puts facts at given depths in filler, to an exact length in cl100k_base tokens. Filler comes in units (a
sentence, a log line, a record) that include their separators. Each unit is counted once on its own, and the last few
units of a stretch are chosen by subset sum to meet its budget. Then the whole text is counted, and the difference from
the sum of its parts is corrected. The text is never longer than requested, and at most 2% shorter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from context_bench.errors import UsageError
from context_bench.options import is_number
from context_bench.utils.tokens import count_tokens

T = TypeVar("T")


class Draw:
    """A stream of random choices, named by the parts of its seed."""

    def __init__(self, *seed: object) -> None:
        self._random = random.Random("/".join(map(str, seed))).random

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random() < probability

    def fraction(self) -> float:
        """Return a number from 0 up to, but not including, 1."""
        return self._random()

    def between(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self._random() * len(items))]

    def sample(self, items: Sequence[T], size: int) -> list[T]:
        """Return `size` different items of `items`, in random order."""
        pool = list(items)
        for index in range(size):
            other = self.between(index, len(pool) - 1)
            pool[index], pool[other] = pool[other], pool[index]
        return pool[:size]

    def shuffle(self, items: Sequence[T]) -> list[T]:
        return self.sample(items, len(items))

    def digits(self, size: int) -> str:
        """Return a number of exactly `size` digits, as text."""
        return str(self.between(10 ** (size - 1), 10**size - 1))

    def hexadecimal(self, size: int) -> str:
        """Return `size` (at most 12) hexadecimal digits, at least one of which is a letter."""
        while True:
            text = f"{int(self._random() * 16**size):0{size}x}"
            if not text.isdigit():
                return text

    def uuid(self) -> str:
        a, b, c = self.hexadecimal(12), self.hexadecimal(8), self.hexadecimal(12)
        return f"{a[:8]}-{a[8:]}-{b[:4]}-{b[4:]}-{c}"


def choose_depth(depth: float | None, index: int, n: int) -> float:
    """Return the depth for example `index` of `n`: the given depth, or an even spread from 0 to 1."""
    if depth is not None:
        return float(depth)
    return index / (n - 1) if n > 1 else 0.5


def write_depth_tag(depth: float | None, index: int, n: int) -> str:
    """Return the depth as a part of an id; a spread also names `n`, as its depths depend on it."""
    asked = choose_depth(depth, index, n)
    if depth is None:
        return f"d{asked:.2f}-of{n}"
    return f"d{asked:.2f}" if round(asked, 2) == asked else f"d{asked!r}"


def make_example(
    dataset: str, cell: str, context: str, question: str, answers: list[Any], meta: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """Make an example with the dataset and the `cell` as id; a list as answer has several parts."""
    answer = ", ".join(answers[0]) if isinstance(answers[0], list) else answers[0]
    text = {"id": f"{dataset}-{cell}", "context": context, "question": question}
    return {**text, "answer": answer, "answers": answers, **more, "dataset": dataset, "meta": meta}


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def phrases(text: str) -> tuple[str, ...]:
    """Split `text` at semicolons; line breaks inside a phrase count as one space."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(";"))


def check_whole(name: str, value: int, low: int, high: int | None = None) -> None:
    """Refuse a `value` that is not a whole number from `low` to `high`."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value and (high is None or value <= high):
        return
    allowed = f"of at least {low}" if high is None else f"from {low} to {high}"
    raise UsageError(f"{name} must be a whole number {allowed} (got {value!r})")


def check_share(name: str, value: float | None) -> None:
    """Refuse a `value` other than None or a number from 0 to 1."""
    if value is None or (is_number(value) and 0 <= value <= 1):
        return
    raise UsageError(f"{name} must be a number from 0 (start) to 1 (end), or None to spread it (got {value!r})")


def check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)} (got {value!r})")


def check_cell(length: int, floor: int, n: int, seed: int, *, what: str) -> None:
    """Check the parameters of every generator; `floor` is the shortest context that can contain `what`."""
    check_whole("length", length, 1)
    if length < floor:
        raise UsageError(f"length={length} is too short to hold {what}: use at least {floor} tokens")
    check_whole("n", n, 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UsageError(f"seed must be a whole number (got {seed!r})")


ADJECTIVES = words(
    """cobalt saffron crimson ivory emerald amber violet scarlet indigo turquoise jasper velvet copperplate granite
    silver golden obsidian coral maroon teal lunar solar polar arctic tropical desert nomad royal imperial feral
    sunken hollow crooked rugged veiled frozen blazing twisted gilded masked"""
)
NOUNS = words(
    """falcon heron otter panther lynx jackal raven condor pelican walrus mammoth phoenix griffin dragon unicorn
    kraken lantern compass anchor hourglass pendulum prism sextant trident chalice sceptre gauntlet obelisk
    pyramid citadel bastion rampart cathedral labyrinth glacier volcano canyon lagoon monsoon avalanche"""
)
THINGS = words("vault locker safe depot hangar strongroom")
LABELS = phrases("access code; serial number; inventory number; licence number; clearance code")


class Names:
    """A source of unique names and unique six-digit values."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._names: set[tuple[str, str]] = set()
        self._values: set[str] = set()

    def name(self) -> tuple[str, str]:
        """Return a new pair of words, such as ("cobalt", "falcon")."""
        while True:
            name = (self._draw.pick(ADJECTIVES), self._draw.pick(NOUNS))
            if name not in self._names:
                self._names.add(name)
                return name

    def other(self, name: tuple[str, str]) -> tuple[str, str]:
        """Return a pair other than `name`, which in most cases shares one word with `name`."""
        adjective, noun = self._draw.pick(ADJECTIVES), self._draw.pick(NOUNS)
        near = self._draw.pick(((name[0], noun), (adjective, name[1]), (adjective, noun)))
        return near if near != name else self.other(name)

    def value(self) -> str:
        while True:
            value = self._draw.digits(6)
            if value not in self._values:
                self._values.add(value)
                return value


class Secret(NamedTuple):
    """One fact in prose: `sentence` says that the `label` for `subject` is `value`."""

    label: str
    subject: str
    value: str
    sentence: str


SENTENCES: tuple[str, ...] = (
    "The {label} for {subject} is {value}.",
    "According to the register, the {label} for {subject} is {value}.",
    "A note on the door says that the {label} for {subject} is {value}.",
    "Staff were reminded that the {label} for {subject} is {value}.",
    "As of the last inspection, the {label} for {subject} is {value}.",
)


def secret(draw: Draw, names: Names, label: str) -> Secret:
    """Make a new fact about `label`, in one natural sentence."""
    subject = f"the {' '.join(names.name())} {draw.pick(THINGS)}"
    value = names.value()
    return Secret(label, subject, value, draw.pick(SENTENCES).format(label=label, subject=subject, value=value))


ENCODING = "cl100k_base"
CANDIDATE_UNITS = 32  # how many units, and then how many scraps, are tried to meet a budget
MAX_REFITS = 12  # how often a text is refitted; two are usual
MIN_UNIT_TOKENS = 3  # no unit or scrap has fewer tokens


def tokens(text: str) -> int:
    """Count the tokens of `text`, always in cl100k_base, whatever the default tokenizer is."""
    return count_tokens(text, ENCODING)


class Fact(NamedTuple):
    """A hidden fact: the `unit` that goes into the text, and the part of this unit that is the evidence."""

    unit: str
    evidence: str
    depth: float


class Stock(NamedTuple):
    """A source of filler text.

    `unit` returns a usual piece, and `scrap` a small piece for gaps that no usual piece fills. `glue` is the typical
    end of a piece; sizes are counted behind it, because a token may span two pieces. `render` puts a frame around the
    pieces.
    """

    unit: Callable[[], str]
    scrap: Callable[[], str]
    glue: str
    render: Callable[[Sequence[str]], str]

    def size(self, unit: str) -> int:
        """Count the tokens that `unit` adds to a text when appended to it."""
        return tokens(self.glue + unit) - tokens(self.glue)


class Assembled(NamedTuple):
    """A finished context; `depths` (by tokens) and `evidence` are in the order of the facts."""

    context: str
    depths: list[float]
    evidence: list[dict[str, Any]]


@dataclass
class Stretch:
    """Filler between two facts: a `bulk` of pieces as drawn, and a `tail` of pieces chosen to meet the budget."""

    bulk: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    used: int = 0
    tail_used: int = 0

    def grow(self, more: int, stock: Stock, slop: int) -> None:
        """Change the size by about `more` tokens, which may be negative: the bulk first, then a new tail."""
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
    # A fact at depth 1 comes last: missing tokens are then added before it, not after it.
    stretches.append(_make_stretch(0 if facts[-1].depth == 1.0 else total - used, stock, slop))
    context = _refit(length, facts, stock, stretches)
    spans = [span(context, fact.evidence) for fact in facts]
    return Assembled(context, measure_depths(context, spans), spans)


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


def measure_depths(context: str, spans: Sequence[dict[str, Any]]) -> list[float]:
    """Return for each span, in the order of the text, the share of the other tokens before it."""
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
    for _ in range(MAX_REFITS):
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
    for index in range(2 * CANDIDATE_UNITS):
        if room - most <= slop or room < MIN_UNIT_TOKENS:
            break
        unit = stock.unit() if index < CANDIDATE_UNITS else stock.scrap()
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
