"""Relations: each varies an input without changing its meaning, and defines what must stay the same."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from unicodedata import normalize

from context_bench.errors import SystemFailure
from context_bench.evaluators.text_search import TextSearch
from context_bench.fuzz.cases import CHANGES, KINDS, OWN_DATA, Case, make_item, rename_case


class Target(Protocol):
    """Tested system: turns an input into the text that a model would read.

    `budgets` are the shares of tokens that the system can keep, ascending; empty if its output size is fixed.
    """

    name: str
    budgets: Sequence[float]

    async def read(self, case: Case, budget: float | None = None) -> str: ...


class Skipped(Exception):
    """The relation does not apply to this input."""


class Broken(Exception):
    """The relation does not hold.

    Attributes:
        reason: One sentence.
        before: Output for the original input.
        after: Output for the varied input.
        variant: The varied input.
    """

    def __init__(self, reason: str, before: str, after: str, variant: Case | None = None) -> None:
        super().__init__(reason)
        self.reason, self.before, self.after, self.variant = reason, before, after, variant


Check = Callable[[Any, Case, random.Random], Awaitable[None]]
"""Function of the target (for some relations a proxy or memory), an input, and a source of randomness."""


@dataclass(frozen=True)
class Relation:
    """One metamorphic relation."""

    id: str  # name on the command line and in `breaks`
    reason: str  # reason why it should hold
    check: Check  # raises `Broken` or `Skipped`
    kinds: Sequence[str] = (*KINDS, OWN_DATA)  # kinds of input that it applies to
    judged: bool = True  # False: only reported
    # whether it compares the kept evidence: a system with random output is then judged against its own loss rate
    # on unchanged inputs
    keeps_evidence: bool = False


def holds_evidence(case: Case, text: str) -> bool:
    """Whether a text still contains all evidence, in whatever Unicode form."""
    search = TextSearch([normalize("NFC", text)], case.to_example())
    return all(search.find_state(normalize("NFC", span)) != "lost" for span in case.spans)


def _keep_evidence(vary: Callable[[Case, random.Random], Case], lost: str) -> Check:
    """Make a check: evidence that is kept from the original input must also be kept from the changed input."""

    async def check(target: Target, case: Case, source: random.Random) -> None:
        before = await target.read(case)
        if not holds_evidence(case, before):
            raise Skipped("the evidence is lost before any change")
        variant = vary(case, source)
        after = await target.read(variant)
        if not holds_evidence(variant, after):
            raise Broken(lost, before, after, variant)

    return check


def _shuffle(case: Case, source: random.Random) -> Case:
    order = list(range(len(case.items)))
    source.shuffle(order)
    return case.reorder(order)


def _move_evidence(case: Case, source: random.Random) -> Case:
    others = [place for place in range(len(case.items)) if place not in case.evidence]
    where = source.choice((0, len(others) // 2, len(others)))
    return case.reorder([*others[:where], *case.evidence, *others[where:]])


def _pad(case: Case, source: random.Random) -> Case:
    kind = case.kind if case.kind in KINDS else "prose"
    added = [make_item(kind, source) for _ in range(max(3, len(case.items) // 3))]
    if case.kind == OWN_DATA:
        added = [f"{item}\n" for item in added]
    place = source.choice((0, len(case.items) // 2, len(case.items)))
    return case.insert(place, *added)


def _reorder_keys(case: Case, source: random.Random) -> Case:
    def turn(item: str) -> str:
        pairs = list(json.loads(item).items())
        source.shuffle(pairs)
        return json.dumps(dict(pairs))

    return replace(case, items=tuple(map(turn, case.items)))


def _change_layout(case: Case, source: random.Random) -> Case:
    changes = [name for name, change in CHANGES.items() if change(case.text) != case.text]
    if not changes:
        raise Skipped("the text has no line ends and no accents")
    return replace(case, text_change=source.choice(changes))


async def _check_output(target: Target, case: Case, _: random.Random) -> None:
    try:
        await target.read(case)
    except SystemFailure as error:
        raise Broken(str(error), case.text, str(error), case) from None


async def _check_repeat(target: Target, case: Case, _: random.Random) -> None:
    before, after = await target.read(case), await target.read(case)
    if before != after:
        raise Broken("the same input gave a different output", before, after, case)


async def _check_again(target: Target, case: Case, _: random.Random) -> None:
    before = await target.read(case)
    after = await target.read(replace(case, kind=OWN_DATA, items=(before,), evidence=(0,), text_change=""))
    if before != after:
        raise Broken("the output changes when it is compressed again", before, after)


async def _check_budget(target: Target, case: Case, source: random.Random) -> None:
    if len(target.budgets) < 2:
        raise Skipped("the output size cannot be set")
    less, more = sorted(source.sample(list(target.budgets), 2))
    before, after = await target.read(case, less), await target.read(case, more)
    if holds_evidence(case, before) and not holds_evidence(case, after):
        raise Broken(f"evidence kept with a budget of {less:g} is lost with {more:g}", before, after, case)


def _stay_valid(what: str, is_valid: Callable[[str], bool]) -> Check:
    async def check(target: Target, case: Case, _: random.Random) -> None:
        if not is_valid(case.text):
            raise Skipped(f"the input is not {what}")
        after = await target.read(case)
        if not is_valid(after):
            raise Broken(f"the input is {what}, the output is not", case.text, after, case)

    return check


def _is_json(text: str) -> bool:
    for lines in ([text], [line for line in text.splitlines() if line.strip()]):
        try:
            if lines and all(isinstance(json.loads(line), dict | list) for line in lines):
                return True
        except ValueError:
            continue
    return False


_STATEMENTS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
"""Statements that show that a text is a program; others do not, as a single word of prose also parses as Python."""


def _is_python(text: str) -> bool:
    try:
        return any(isinstance(each, _STATEMENTS) for each in ast.parse(text).body)
    except (SyntaxError, ValueError):
        return False


def _has_columns(text: str) -> bool:
    rows = [line for line in text.splitlines() if "|" in line]
    return len(rows) > 1 and len({row.count("|") for row in rows}) == 1


_LITERAL = re.compile(r"https?://[^\s\"'<>)]+(?<![.,])|(?:/[\w.-]+){2,}|\"[^\"\n]{2,}\"|\b[A-Z]?\d[\w.-]*\d\b")


async def _check_literals(target: Target, case: Case, _: random.Random) -> None:
    after = await target.read(case)
    if holds_evidence(case, after):
        literals = [each.strip('"') for span in case.spans for each in _LITERAL.findall(span)]
        changed = [each for each in literals if each not in after and not _is_cut(each, after.strip())]
    else:
        changed = _find_altered(case, after)
        if not changed:
            raise Skipped("the evidence is lost")
    if changed:
        raise Broken(f"the evidence is kept, but {changed[0]!r} in it is missing or changed", case.text, after, case)


def _is_cut(literal: str, text: str) -> bool:
    """Whether a text ends or begins within a literal, as truncated texts do."""
    return any(text.endswith(literal[:n]) or text.startswith(literal[-n:]) for n in range(3, len(literal)))


def _find_altered(case: Case, after: str) -> list[str]:
    """List the literals of lost evidence that were replaced: the text around is kept, but has another value."""
    altered = []
    for span in case.spans:
        for found in _LITERAL.finditer(span):
            before, end = span[max(0, found.start() - 20) : found.start()], found.end()
            follows = re.escape(span[end : end + 3]) or r"(?=\s)"
            around = f"{re.escape(before)}(?!{re.escape(found[0])})(\\S{{1,80}}?){follows}"
            there = re.search(around, after) if case.text.count(before) == 1 else None
            if there is not None and there[1] not in case.text:
                altered.append(found[0])
    return altered


OUTPUT = "output"
"""The relation that a system breaks by failing: other relations skip inputs on which the system fails."""

RELATIONS: dict[str, Relation] = {
    each.id: each
    for each in (
        Relation(OUTPUT, "Every input gives an output.", _check_output),
        Relation(
            "order",
            "Independent items mean the same in any order.",
            _keep_evidence(_shuffle, "the evidence is lost when the items are in another order"),
            keeps_evidence=True,
            kinds=("logs", "json", "table", "documents", "code"),
        ),
        Relation(
            "position",
            "Evidence is needed at any place: first, in the middle or last.",
            _keep_evidence(_move_evidence, "the evidence is lost when it moves"),
            keeps_evidence=True,
        ),
        Relation(
            "padding",
            "Irrelevant text before, after or in between changes no answer.",
            _keep_evidence(_pad, "the evidence is lost when irrelevant text is added"),
            keeps_evidence=True,
        ),
        Relation(
            "renaming",
            "Consistently replaced names and numbers change no meaning.",
            _keep_evidence(rename_case, "the evidence is lost when names and numbers are replaced"),
            keeps_evidence=True,
        ),
        Relation(
            "json-keys",
            "The keys of a JSON object have no order.",
            _keep_evidence(_reorder_keys, "the evidence is lost when keys are in another order"),
            keeps_evidence=True,
            kinds=("json",),
        ),
        Relation(
            "layout",
            "Line ends, trailing spaces and forms of accents carry no meaning.",
            _keep_evidence(_change_layout, "the evidence is lost when only the layout changes"),
            keeps_evidence=True,
        ),
        Relation("repeat", "The same input gives the same output, so that caches and tests work.", _check_repeat),
        Relation(
            "again",
            "Compressing twice: only reported, because many good compressors shrink further.",
            _check_again,
            judged=False,
        ),
        Relation("budget", "A larger budget never loses what a smaller one kept.", _check_budget, keeps_evidence=True),
        Relation(
            "json",
            "JSON stays valid, so that tools can read it.",
            _stay_valid("JSON", _is_json),
            kinds=("json", OWN_DATA),
        ),
        Relation(
            "python",
            "Python stays valid, so that patches apply.",
            _stay_valid("Python", _is_python),
            kinds=("code", OWN_DATA),
        ),
        Relation(
            "table",
            "Table rows keep their columns, so that values keep their meaning.",
            _stay_valid("a table", _has_columns),
            kinds=("table", OWN_DATA),
        ),
        Relation(
            "literals", "Numbers, paths, URLs and quoted texts of the evidence are copied exactly.", _check_literals
        ),
    )
}
"""Relations for compressors and proxies, in the order of the report."""


def list_relations(names: Sequence[str], known: dict[str, Any] = RELATIONS) -> list[Any]:
    """Return the relations with these names, in report order; all without names."""
    from context_bench.errors import UnknownName

    for name in names:
        if name not in known:
            raise UnknownName("relation", name, known)
    return [each for key, each in known.items() if not names or key in names]
