"""Plain words in the code: what a message says, how a docstring begins, what a function is called.

An error says "must be" or "is not" and what was given; a docstring begins with a verb or names the thing; a function is
named by a verb. Exceptions are listed, each with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import context_bench
from source_tree import Source, read_sources

IS_NO = re.compile(r"(?<!there )\b(?:is|are) no\b(?! longer)", re.IGNORECASE)
EXEMPT_TEXTS = {
    "My answer is no.": "one of the answers that IFEval accepts",
    "are no fault": "the prompt of the judge, whose wording is part of the key of its verdicts",
    "or is no answer.": "the prompt of the judge",
}
RIDDLE = re.compile(r"(?:What|Whatever|Whoever|Those|The same)\b")
IRREGULAR = {
    *("broken", "built", "chosen", "drawn", "given", "gone", "heard", "held", "kept", "known", "left", "made", "meant"),
    *("said", "seen", "sent", "shown", "standing", "taken", "told", "worn", "written"),
}
NOT_PARTICIPLES = {"embed", "feed", "need", "seed", "shed", "speed"}
EXEMPT_FUNCTIONS = {
    "constrained_response": "an instruction of IFEval, by its own name",
    "unmeasured": "an optional member of a tally, beside `notes`",
    **dict.fromkeys(
        ("clustered_mean", "clustered_difference", "clustered_ratio", "paired_difference", "unpaired_difference"),
        "a statistic, by the name that textbooks give it",
    ),
    "unpaired": "the unpaired difference of a comparison, beside `difference`",
}


@cache
def _read_package() -> dict[str, Source]:
    return read_sources(Path(context_bench.__file__).parent)


def find_docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Find the texts that stand alone in a body: docstrings, also those of constants and fields."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def find_wrong_messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find the texts, other than docstrings, with "is no"."""
    documented = {id(each) for each in find_docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            text = node.value
            for exempt in EXEMPT_TEXTS:
                text = text.replace(exempt, "")
            if IS_NO.search(text):
                yield node.lineno, node.value


def find_riddles(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find the docstrings that begin with a pronoun in place of the thing."""
    for docstring in find_docstrings(tree):
        if RIDDLE.match(str(docstring.value)):
            yield docstring.lineno, str(docstring.value).splitlines()[0]


def find_negated_values(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find messages that say ", not {what was given}" in place of "must be ... (got {what was given})"."""
    for node in ast.walk(tree):
        raised = node.exc if isinstance(node, ast.Raise) else None
        for text in ast.walk(raised) if raised is not None else ():
            shown = re.sub(r"\s+", " ", ast.unparse(text)) if isinstance(text, ast.JoinedStr) else ""
            if re.search(r", (?:and )?not (?:\w+=)?\{|, and \{[^}]*\} is not['\"]", shown):
                yield getattr(node, "lineno", 0), shown


def find_participles(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Find the functions that are named by a participle; a property names a thing, and may be."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in EXEMPT_FUNCTIONS:
            first = node.name.strip("_").split("_")[0]
            is_participle = first in IRREGULAR or (first.endswith("ed") and first not in NOT_PARTICIPLES)
            if is_participle and not any("property" in ast.unparse(each) for each in node.decorator_list):
                yield node.lineno, node.name


Finder = Callable[[ast.AST], Iterator[tuple[int, str]]]
RULES: dict[str, Finder] = {
    "messages": find_wrong_messages,
    "values": find_negated_values,
    "docstrings": find_riddles,
    "functions": find_participles,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_code_speaks_plainly(rule: str) -> None:
    found = [
        f"{module}, line {line}: {text}"
        for module, source in _read_package().items()
        for line, text in RULES[rule](source.tree)
    ]
    assert found == []


def test_every_exception_is_still_there() -> None:
    names = {
        node.name
        for source in _read_package().values()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert set(EXEMPT_FUNCTIONS) - names == set()


@pytest.mark.parametrize(
    ("source", "finder"),
    [
        ('raise ValueError(f"{name} is no evaluator")', find_wrong_messages),
        ('raise ValueError("these are no numbers")', find_wrong_messages),
        ('raise ValueError(f"a ratio is a share, not {ratio!r}")', find_negated_values),
        ('raise ValueError(f"b lies between 0 and 1, not b={b}")', find_negated_values),
        ('raise ValueError(f"it must be one of {names}, and {name!r} is not")', find_negated_values),
        ('"""What it does."""', find_riddles),
        ('def f():\n    """Those who wait."""', find_riddles),
        ('class C:\n    value = 1\n    """The same for a value."""', find_riddles),
        ("def _kept(): ...", find_participles),
        ("class C:\n    async def checked_rows(self): ...", find_participles),
    ],
)
def test_each_rule_finds_what_it_is_for(source: str, finder: Finder) -> None:
    assert len(list(finder(ast.parse(source)))) == 1


@pytest.mark.parametrize(
    ("source", "finder"),
    [
        ('raise ValueError("there is no such file, and it is no longer needed")', find_wrong_messages),
        ('"""This is no message."""', find_wrong_messages),
        ('raise ValueError(f"a ratio must be a share (got {ratio!r})")', find_negated_values),
        ('"""Whether it is there."""', find_riddles),
        ("class C:\n    @property\n    def checked(self): ...\n    def feed(self): ...", find_participles),
    ],
)
def test_each_rule_leaves_the_rest_alone(source: str, finder: Finder) -> None:
    assert list(finder(ast.parse(source))) == []
