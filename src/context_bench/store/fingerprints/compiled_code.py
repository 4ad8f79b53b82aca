"""The content of a piece of compiled code, and the names that it takes from around it.

Code is compared as Python compiled it, so that neither comments nor layout count, and what is described is what runs,
whatever has become of the file since.
"""

from __future__ import annotations

import dis
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

__all__ = ["Import", "Load", "Uses", "describe_code", "find_uses"]

_NOISE = {"EXTENDED_ARG", "CACHE", "PUSH_NULL", "PRECALL", "COPY_FREE_VARS", "RESUME", "NOP", "MAKE_CELL"}
_GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_ENCLOSED = {"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "LOAD_CLOSURE"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_CALLS = {"CALL", "CALL_FUNCTION", "CALL_METHOD"}
_SIMPLE = {*_GLOBALS, "LOAD_CONST", "LOAD_FAST", "LOAD_DEREF"}


@dataclass(frozen=True, order=True)
class Load:
    """A name from around the code, with the attributes that are taken of it: `module.part.function`.

    `text` is the text that it is called with, where that is written there as the first argument.
    """

    name: str
    attributes: tuple[str, ...]
    enclosed: bool
    text: str | None


@dataclass(frozen=True)
class Import:
    """An import statement."""

    name: str
    level: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Uses:
    """All that code, and the code within it, takes from around it."""

    loads: tuple[Load, ...]
    imports: tuple[Import, ...]


def describe_code(code: CodeType) -> tuple[Any, ...]:
    """Describe code without its place: the same function in another file or line is described the same."""
    return (
        *(code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        getattr(code, "co_exceptiontable", b""),
        tuple(_describe_constant(each) for each in code.co_consts),
    )


def _describe_constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return describe_code(value)
    if isinstance(value, tuple):
        return tuple(_describe_constant(each) for each in value)
    if isinstance(value, frozenset):
        return ("set", *sorted(repr(_describe_constant(each)) for each in value))
    return (type(value).__name__, repr(value))


@lru_cache(maxsize=2048)
def find_uses(code: CodeType) -> Uses:
    """Find the names, attributes and imports that code uses."""
    loads: set[tuple[str, tuple[str, ...], bool, str | None]] = set()
    imports: list[Import] = []
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NOISE]
    for place, step in enumerate(steps):
        if step.opname in _GLOBALS or step.opname in _ENCLOSED:
            attributes, after = _follow_attributes(steps, place + 1)
            enclosed = step.opname in _ENCLOSED
            loads.add((str(step.argval), attributes, enclosed, _find_text(steps[after : after + 4])))
        elif step.opname == "IMPORT_NAME":
            level, parts = steps[place - 2].argval, steps[place - 1].argval
            imports.append(Import(str(step.argval), int(level or 0), tuple(parts or ())))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            uses = find_uses(inner)
            loads |= {(each.name, each.attributes, each.enclosed, each.text) for each in uses.loads}
            imports += uses.imports
    ordered = sorted(loads, key=lambda each: (*each[:3], each[3] or ""))
    return Uses(tuple(Load(*each) for each in ordered), tuple(imports))


def _follow_attributes(steps: list[dis.Instruction], place: int) -> tuple[tuple[str, ...], int]:
    names: list[str] = []
    while place < len(steps) and steps[place].opname in _ATTRIBUTES:
        names.append(str(steps[place].argval))
        place += 1
    return tuple(names), place


def _find_text(steps: list[dis.Instruction]) -> str | None:
    """Find the text in a call `f("text", ...)` whose arguments are all plain names or values."""
    for count, step in enumerate(steps):
        if step.opname in _CALLS:
            text = steps[0].argval if count and steps[0].opname == "LOAD_CONST" else None
            return text if isinstance(text, str) and step.argval == count else None
        if step.opname not in _SIMPLE:
            return None
    return None
