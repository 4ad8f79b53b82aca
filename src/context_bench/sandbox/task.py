"""Reads what an example asks of a program: the tests to run, and the names that the program must define.

Two forms are read: HumanEval's (`test` defines `check(candidate)`, `entry_point` names the function,
`prompt` or `context` is the code to complete) and MBPP's (`test_list`, or plain asserts in `test`).
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.errors import DataError

__all__ = ["Task", "read_task"]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Task:
    """Tests for one program.

    Attributes:
        entry: The name that the tests call.
        prompt: The code that a reply may continue; "" where the task is told in words.
        setup: Code that runs before the tests, after the program.
        tests: Sources, run in order.
        check: Whether the tests define `check(candidate)`, which is then called.
        names: What the tests take from the program, the entry point first.
        modules: Standard modules that the tests use and do not import.
        helpers: The prompt made whole, when the tests use other functions of it.
    """

    entry: str
    prompt: str
    setup: str
    tests: tuple[str, ...]
    check: bool
    names: tuple[str, ...]
    modules: tuple[str, ...]
    helpers: str


def read_task(example: Mapping[str, Any]) -> Task | None:
    """Read the task of an example; None when it has no tests.

    Raises:
        DataError: When the tests are not Python, or do not say what they test.
    """
    tests = _read_tests(example)
    if not tests:
        return None
    setup = "\n".join([*map(str, example.get("test_imports") or ()), str(example.get("test_setup_code") or "")])
    tree = _parse("\n".join([setup, *tests]), "the tests are")
    check = any(isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body)
    free = _find_free_names(tree)
    entry = str(example.get("entry_point") or "") or _find_tested_name(tree, free, check)
    prompt = _find_prompt(example, entry)
    helpers = _complete_prompt(prompt) if prompt else None
    defined = _find_top_level_names(helpers) if helpers else set()
    wanted = [name for name in free if name != entry and name not in defined and not hasattr(builtins, name)]
    return Task(
        entry=entry,
        prompt=prompt,
        setup=setup,
        tests=tests,
        check=check,
        names=(entry, *(name for name in wanted if name not in sys.stdlib_module_names)),
        modules=tuple(name for name in wanted if name in sys.stdlib_module_names),
        helpers=ast.unparse(helpers) if helpers and (defined - {entry}) & set(free) else "",
    )


def _read_tests(example: Mapping[str, Any]) -> tuple[str, ...]:
    given = example.get("test_list") or example.get("test") or ()
    sources = [given] if isinstance(given, str) else given
    return tuple(source for source in map(str, sources) if source.strip())


def _parse(source: str, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(f"{what} not Python: {error}") from None


def _find_prompt(example: Mapping[str, Any], entry: str) -> str:
    """Find the field that holds the beginning of the program, if one does."""
    header = re.compile(rf"^(?:async\s+def|def|class)\s+{re.escape(entry)}\b", re.MULTILINE)
    for key in ("prompt", "context", "question"):
        text = example.get(key)
        if isinstance(text, str) and header.search(text):
            return text
    return ""


def _complete_prompt(prompt: str) -> ast.Module | None:
    for body in ("", "\n    pass\n", "\n  pass\n", "\n\tpass\n"):
        try:
            return ast.parse(prompt + body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _find_bound_names(tree: ast.AST) -> set[str]:
    """Find every name that some part of the code binds."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
    return names


def _find_top_level_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, _DEFINITIONS):
            names.add(statement.name)
        else:
            names |= _find_bound_names(statement)
    return names


def _find_free_names(tree: ast.Module) -> list[str]:
    """Find names that the code uses and nowhere binds, in order."""
    bound = _find_bound_names(tree)
    return [name for name in dict.fromkeys(_find_loaded_names(tree)) if name not in bound]


def _find_loaded_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def _find_tested_name(tree: ast.Module, free: list[str], check: bool) -> str:
    """Find the function that plain asserts test: the first that they call and nothing else defines.

    A task may ask for a function with the name of a builtin: it is meant when nothing else is called.
    """
    calls = [
        node.func.id
        for statement in tree.body
        if isinstance(statement, ast.Assert)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in free
    ]
    calls.sort(key=lambda name: hasattr(builtins, name))
    if check or not calls:
        raise DataError("the example has tests but no entry_point that says which function they test")
    return calls[0]
