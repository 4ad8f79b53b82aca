"""The function calls in a system's output: structured ones, or written as JSON or as Python calls.

Nothing is ever evaluated: Python is parsed with `ast`, and what is not a literal stays text. Python calls in
the midst of prose or other code count only when they call a function that was on offer.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from context_bench.text.golds import response_text

_FENCE = re.compile(r"```[\w+-]*\s*\n?(.*?)```", re.DOTALL)
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "kwargs", "input", "params")
_LIST_KEYS = ("tool_calls", "function_calls", "calls", "functions")
_FUNCTION_TAG = re.compile(r"<function=([\w.-]+)>\s*(\{.*?\})\s*</function>", re.DOTALL)
_MOST_TEXT = 200_000
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}


class Call(NamedTuple):
    """One call; `arguments` is None when they could not be read."""

    name: str
    arguments: dict[str, Any] | None


def is_same_name(one: str, other: str) -> bool:
    """Whether two function names are the same; APIs that allow no dots are sent `_` instead."""
    return one.replace(".", "_") == other.replace(".", "_")


def read_calls(processed: Mapping[str, Any], known: Collection[str]) -> list[Call]:
    """Return all calls in the output of a system.

    Args:
        processed: Its output; `tool_calls` go before the text of the `response`.
        known: The names of the functions that were on offer, where known.
    """
    structured = processed.get("tool_calls")
    if structured:
        return list(_read_json(structured, ()))
    response = processed.get("response")
    if isinstance(response, list | Mapping):
        return list(_read_json(response, known))
    return _read_text(response_text(processed).strip()[:_MOST_TEXT], known)


def _read_text(text: str, known: Collection[str]) -> list[Call]:
    tagged = [Call(tag[1], _read_arguments(tag[2])) for tag in _FUNCTION_TAG.finditer(text)]
    if tagged:
        return tagged
    fences = [fence.strip() for fence in _FENCE.findall(text)]
    for source in (text, *fences):
        calls = _parse_calls(source)
        if calls and (source is text or _are_all_known(calls, known)):
            return calls
    found = [call for value in _find_json_values(text) for call in _read_json(value, known)]
    return found or _find_embedded(text, fences, known)


def _find_embedded(text: str, fences: list[str], known: Collection[str]) -> list[Call]:
    """Calls of known functions on lines of their own, or in a bracketed list within prose."""
    if not known:
        return []
    pieces = [line.strip(" \t`-*") for source in fences or [text] for line in source.split("\n")]
    pieces += re.findall(r"\[[\w.]+\(.*\)\]", text, re.DOTALL)[:1]
    calls: list[Call] = []
    for piece in pieces:
        found = _parse_calls(piece) if piece.endswith((")", "]")) else []
        calls += [call for call in found if _are_all_known([call], known) and call not in calls]
    return calls


def _are_all_known(calls: list[Call], known: Collection[str]) -> bool:
    return not known or all(any(is_same_name(call.name, name) for name in known) for call in calls)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _find_json_values(text: str) -> Iterator[Any]:
    """Every JSON object or list in a text, outermost ones only."""
    decoder, place, misses = json.JSONDecoder(), 0, 0
    while misses < 200 and (start := re.compile(r"[\[{]").search(text, place)):
        try:
            value, place = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            place, misses = start.end(), misses + 1
            continue
        yield value


def _read_json(value: Any, known: Collection[str]) -> Iterator[Call]:
    if isinstance(value, list):
        for item in value:
            yield from _read_json(item, known)
    elif isinstance(value, Mapping):
        nested = next((value[key] for key in _LIST_KEYS if isinstance(value.get(key), list)), None)
        function = value.get("function")
        name = function if isinstance(function, str) else value.get("name")
        if nested is not None:
            yield from _read_json(nested, known)
        elif isinstance(function, Mapping):
            yield from _read_json(function, known)
        elif isinstance(name, str):
            given = next((value[key] for key in _ARGUMENT_KEYS if key in value), None)
            if given is not None or len(value) == 1 or value.get("type") in ("function", "tool_use"):
                yield Call(name, _read_arguments({} if given is None else given))
        else:
            yield from _read_by_name(value, known)


def _read_by_name(value: Mapping[str, Any], known: Collection[str]) -> Iterator[Call]:
    """Calls written as {"name": {arguments}}."""
    for name, arguments in value.items():
        call = Call(name, arguments if isinstance(arguments, dict) else None)
        if call.arguments is not None and _are_all_known([call], known):
            yield call


def _read_arguments(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            return None
    return dict(given) if isinstance(given, Mapping) else None


# ---- Python ----------------------------------------------------------------------------------------------------------


def _parse_calls(source: str) -> list[Call]:
    """The calls of a text that is nothing but calls: one, a list of them, or one a line."""
    if "(" not in source:
        return []
    try:
        body = ast.parse(source).body
        calls = [call for statement in body for call in _list_calls(statement)]
        return calls if all(isinstance(statement, ast.Expr) for statement in body) else []
    except (SyntaxError, ValueError, RecursionError, MemoryError, _NotACall):
        return []


class _NotACall(Exception):
    pass


def _list_calls(statement: ast.stmt) -> list[Call]:
    value = statement.value if isinstance(statement, ast.Expr) else None
    nodes = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    return [_call(node) for node in nodes]


def _call(node: ast.expr | None) -> Call:
    if not isinstance(node, ast.Call):
        raise _NotACall
    name = ast.unparse(node.func)
    if not re.fullmatch(r"[\w.]+", name):
        raise _NotACall
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        return Call(name, None)  # without names nobody can tell which parameters are meant
    return Call(name, {str(keyword.arg): _read_literal(keyword.value) for keyword in node.keywords})


def _read_literal(node: ast.expr) -> Any:
    """The value of a literal; anything else as the text that it is."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_read_literal(item) for item in node.elts]
    if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
        return {
            str(_read_literal(key)): _read_literal(value)
            for key, value in zip(node.keys, node.values)
            if key is not None
        }
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _read_literal(node.operand)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, ast.Name) and node.id.lower() in _CONSTANTS:
        return _CONSTANTS[node.id.lower()]
    return ast.unparse(node)
