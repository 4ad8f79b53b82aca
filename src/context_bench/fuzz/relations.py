"""The relations: each varies an input in a way that does not matter, and says what must not change."""

from __future__ import annotations

import ast
import json
import random
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from context_bench.errors import SystemFailure
from context_bench.evaluators.text_search import TextSearch
from context_bench.fuzz.cases import CHANGES, KINDS, OWN_DATA, Case, make_item, rename_case


class Target(Protocol):
    """What is tested: it turns an input into the text that a model would read.

    `budgets` are shares of the tokens that it can be asked to keep, ascending; empty where its size cannot be set.
    """

    name: str
    budgets: Sequence[float]

    async def read(self, case: Case, budget: float | None = None) -> str: ...


class Skipped(Exception):
    """The relation says nothing about this input."""


class Broken(Exception):
    """The relation does not hold.

    Attributes:
        reason: One sentence.
        before: What came out at first.
        after: What came out of the varied input.
        variant: That input.
    """

    def __init__(self, reason: str, before: str, after: str, variant: Case | None = None) -> None:
        super().__init__(reason)
        self.reason, self.before, self.after, self.variant = reason, before, after, variant


Check = Callable[[Any, Case, random.Random], Awaitable[None]]
"""Takes the target (a proxy or memory for some relations), an input, and where chance comes from."""


@dataclass(frozen=True)
class Relation:
    """One relation."""

    id: str  # its name on the command line and in `breaks`
    reason: str  # why it should hold
    check: Check  # raises `Broken` or `Skipped`
    kinds: Sequence[str] = (*KINDS, OWN_DATA)  # the kinds of input that it is about
    judged: bool = True  # false where it is only reported
    # whether it compares what is left of the evidence: one that forgets at random is then judged by how often it
    # forgets when nothing changes
    keeps_evidence: bool = False


def holds_evidence(case: Case, text: str) -> bool:
    """Whether a text still holds all that the answer needs."""
    search = TextSearch([text], case.to_example())
    return all(search.find_state(span) != "lost" for span in case.spans)


def _keep_evidence(vary: Callable[[Case, random.Random], Case], lost: str) -> Check:
    """Make a check: where the evidence is kept, it must be kept after a change too."""

    async def check(target: Target, case: Case, source: random.Random) -> None:
        before = await target.read(case)
        if not holds_evidence(case, before):
            raise Skipped("the evidence is lost before anything changed")
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
    return replace(case, text_change=source.choice(list(CHANGES)))


async def _check_output(target: Target, case: Case, _: random.Random) -> None:
    try:
        await target.read(case)
    except SystemFailure as error:
        raise Broken(str(error), case.text, str(error), case) from None


async def _check_repeat(target: Target, case: Case, _: random.Random) -> None:
    before, after = await target.read(case), await target.read(case)
    if before != after:
        raise Broken("the same input gave another output", before, after, case)


async def _check_again(target: Target, case: Case, _: random.Random) -> None:
    before = await target.read(case)
    after = await target.read(replace(case, kind=OWN_DATA, items=(before,), evidence=(0,), text_change=""))
    if before != after:
        raise Broken("the output changes when it is compressed again", before, after)


async def _check_budget(target: Target, case: Case, source: random.Random) -> None:
    if len(target.budgets) < 2:
        raise Skipped("its size cannot be set")
    less, more = sorted(source.sample(list(target.budgets), 2))
    before, after = await target.read(case, less), await target.read(case, more)
    if holds_evidence(case, before) and not holds_evidence(case, after):
        raise Broken(f"with a budget of {more:g} it lost what it kept with {less:g}", before, after, case)


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
"""What makes a text a program: a single word of prose can be parsed, too."""


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
    if not holds_evidence(case, after):
        raise Skipped("the evidence is lost")
    wanted = [each.strip('"') for span in case.spans for each in _LITERAL.findall(span)]
    missing = [each for each in wanted if each not in after]
    if missing:
        raise Broken(f"the evidence is kept, but {missing[0]!r} in it is changed", case.text, after, case)


OUTPUT = "output"
"""The relation that a system breaks by failing: the others say nothing about an input that it cannot take."""

RELATIONS: dict[str, Relation] = {
    each.id: each
    for each in (
        Relation(OUTPUT, "Every input gives an output.", _check_output),
        Relation(
            "order",
            "Items that stand side by side mean the same in any order.",
            _keep_evidence(_shuffle, "the evidence is lost when the items stand in another order"),
            keeps_evidence=True,
            kinds=("logs", "json", "table", "documents", "code"),
        ),
        Relation(
            "position",
            "Evidence is needed wherever it stands: first, in the middle or last.",
            _keep_evidence(_move_evidence, "the evidence is lost when it stands elsewhere"),
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
            "Other names and numbers, the same everywhere, ask for the same treatment.",
            _keep_evidence(rename_case, "the evidence is lost when names and numbers are others"),
            keeps_evidence=True,
        ),
        Relation(
            "json-keys",
            "The keys of a JSON object have no order.",
            _keep_evidence(_reorder_keys, "the evidence is lost when keys stand in another order"),
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
            "Compressing twice: reported, as many honest compressors shrink further.",
            _check_again,
            judged=False,
        ),
        Relation("budget", "A larger budget never loses what a smaller one kept.", _check_budget, keeps_evidence=True),
        Relation(
            "json",
            "JSON stays JSON, or a tool cannot read it.",
            _stay_valid("JSON", _is_json),
            kinds=("json", OWN_DATA),
        ),
        Relation(
            "python",
            "Python stays parseable, or no patch applies to it.",
            _stay_valid("Python", _is_python),
            kinds=("code", OWN_DATA),
        ),
        Relation(
            "table",
            "The rows of a table keep their columns, or values change their meaning.",
            _stay_valid("a table", _has_columns),
            kinds=("table", OWN_DATA),
        ),
        Relation(
            "literals", "Numbers, paths, URLs and quoted texts of the evidence are copied exactly.", _check_literals
        ),
    )
}
"""The relations for compressors and proxies, in the order in which they are reported."""


def list_relations(names: Sequence[str], known: dict[str, Any] = RELATIONS) -> list[Any]:
    """Choose relations by name, in their order; all without any."""
    from context_bench.errors import UnknownName

    for name in names:
        if name not in known:
            raise UnknownName("relation", name, known)
    return [each for key, each in known.items() if not names or key in names]
