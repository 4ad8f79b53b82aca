"""Compare function calls with the wanted calls, by the rules of the Berkeley Function-Calling Leaderboard.

Gold is a list of {function: {parameter: [accepted values]}}; an empty string among the values means that
the parameter may be left out, unless the function declares it as required. Texts are compared without
case, spaces and the signs ,./-_*^ and with one kind of quote. Beyond the published checker, parallel calls are
paired so that as many as possible match, a Python tuple counts as a list, and objects within objects are read.

Where the function declares the parameter's type, the rules are those of the published checker (bfcl-eval 2026.3.23), to
the letter: an int passes for a number, but not inside a list; floats pass for ints in a list of numbers. If a text was
declared, texts are compared without case and punctuation; if the gold has a text in place of another type, they must be
equal ("dontcare" is not "DONTCARE"). Without a declared type, the type of the accepted value counts.

Calls are read from structured fields, from JSON or from Python in the reply. Nothing is evaluated: Python is parsed
with `ast`, and anything but a literal stays text. Python calls within prose or other code count only if they call an
offered function.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from context_bench.evaluators.assignment import find_best_assignment
from context_bench.results import Scores
from context_bench.text.golds import response_text

_FENCE = re.compile(r"```[\w+-]*\s*\n?(.*?)```", re.DOTALL)
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "kwargs", "input", "params")
_LIST_KEYS = ("tool_calls", "function_calls", "calls", "functions")
_FUNCTION_TAG = re.compile(r"<function=([\w.-]+)>\s*(\{.*?\})\s*</function>", re.DOTALL)
MAX_REPLY_CHARS = 200_000
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None}


class ParsedCall(NamedTuple):
    """One call; `arguments` is None if they cannot be read."""

    name: str
    arguments: dict[str, Any] | None


def is_same_name(one: str, other: str) -> bool:
    """Whether two function names are the same; APIs that allow no dots are sent `_` instead."""
    return one.replace(".", "_") == other.replace(".", "_")


def read_calls(processed: Mapping[str, Any], known: Collection[str]) -> list[ParsedCall]:
    """Return all calls in the output of a system; `tool_calls` take precedence over the text of the `response`."""
    structured = processed.get("tool_calls")
    if structured:
        return list(_read_json(structured, ()))
    response = processed.get("response")
    if isinstance(response, list | Mapping):
        return list(_read_json(response, known))
    return _read_text(response_text(processed).strip()[:MAX_REPLY_CHARS], known)


def _read_text(text: str, known: Collection[str]) -> list[ParsedCall]:
    tagged = [ParsedCall(tag[1], _read_arguments(tag[2])) for tag in _FUNCTION_TAG.finditer(text)]
    if tagged:
        return tagged
    fences = [fence.strip() for fence in _FENCE.findall(text)]
    for source in (text, *fences):
        calls = _parse_calls(source)
        if calls and (source is text or _are_all_known(calls, known)):
            return calls
    found = [call for value in _find_json_values(text) for call in _read_json(value, known)]
    return found or _find_embedded(text, fences, known)


def _find_embedded(text: str, fences: list[str], known: Collection[str]) -> list[ParsedCall]:
    """Find calls of known functions on separate lines, or in a bracketed list within prose."""
    if not known:
        return []
    pieces = [line.strip(" \t`-*") for source in fences or [text] for line in source.split("\n")]
    pieces += re.findall(r"\[[\w.]+\(.*\)\]", text, re.DOTALL)[:1]
    calls: list[ParsedCall] = []
    for piece in pieces:
        found = _parse_calls(piece) if piece.endswith((")", "]")) else []
        calls += [call for call in found if _are_all_known([call], known) and call not in calls]
    return calls


def _are_all_known(calls: list[ParsedCall], known: Collection[str]) -> bool:
    return not known or all(any(is_same_name(call.name, name) for name in known) for call in calls)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _find_json_values(text: str) -> Iterator[Any]:
    """Find every JSON object or list in a text, but none within another."""
    decoder, place, misses = json.JSONDecoder(), 0, 0
    while misses < 200 and (start := re.compile(r"[\[{]").search(text, place)):
        try:
            value, place = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            place, misses = start.end(), misses + 1
            continue
        yield value


def _read_json(value: Any, known: Collection[str]) -> Iterator[ParsedCall]:
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
                yield ParsedCall(name, _read_arguments({} if given is None else given))
        else:  # {"name": {arguments}}
            calls = (ParsedCall(name, arguments) for name, arguments in value.items() if isinstance(arguments, dict))
            yield from (call for call in calls if _are_all_known([call], known))


def _read_arguments(given: Any) -> dict[str, Any] | None:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError):
            return None
    return dict(given) if isinstance(given, Mapping) else None


# ---- Python ----------------------------------------------------------------------------------------------------------


def _parse_calls(source: str) -> list[ParsedCall]:
    """Return the calls of a text that contains only calls: one, a list, or one per line."""
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


def _list_calls(statement: ast.stmt) -> list[ParsedCall]:
    value = statement.value if isinstance(statement, ast.Expr) else None
    nodes = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    return [_call(node) for node in nodes]


def _call(node: ast.expr | None) -> ParsedCall:
    if not isinstance(node, ast.Call):
        raise _NotACall
    name = ast.unparse(node.func)
    if not re.fullmatch(r"[\w.]+", name):
        raise _NotACall
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        return ParsedCall(name, None)  # without names the parameters are ambiguous
    return ParsedCall(name, {str(keyword.arg): _read_literal(keyword.value) for keyword in node.keywords})


def _read_literal(node: ast.expr) -> Any:
    """Return the value of a literal, and any other text unchanged."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_read_literal(item) for item in node.elts]
    if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
        pairs = zip(node.keys, node.values)
        return {str(_read_literal(key)): _read_literal(value) for key, value in pairs if key is not None}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _read_literal(node.operand)
        if isinstance(value, int | float):
            return -value
    if isinstance(node, ast.Name) and node.id.lower() in _CONSTANTS:
        return _CONSTANTS[node.id.lower()]
    return ast.unparse(node)


OPTIONAL = ""  # one of the accepted values of a parameter that may be left out

_IGNORED = re.compile(r"[ ,./\-_*^]")
_TYPES: dict[str, type] = {
    "string": str, "integer": int, "number": float, "float": float, "boolean": bool,
    "array": list, "tuple": list, "object": dict, "dict": dict,
}  # fmt: skip


def matches_object(given: Mapping[str, Any], wanted: Mapping[str, Any], schemas: Mapping[str, Any]) -> bool:
    """Whether each value is accepted, none is unexpected, and only optional ones are missing."""
    if not given.keys() <= wanted.keys() or (schemas and not given.keys() <= schemas.keys()):
        return False
    for key, accepted in wanted.items():
        choices = accepted if isinstance(accepted, list) else [accepted]
        if key not in given:
            if OPTIONAL not in choices:
                return False
        elif not matches_value(given[key], choices, schemas.get(key)):
            return False
    return True


def matches_value(given: Any, choices: Sequence[Any], schema: Any) -> bool:
    declared = _find_declared_type(schema)
    if declared is None:
        return any(_is_same_value(given, choice) for choice in choices)
    if declared is float and type(given) is int:
        given = float(given)
    gold_type = _find_type(choices)
    item_type = _find_declared_type(schema.get("items")) if declared is list else None
    if type(given) is not declared:
        # A text in place of a value, such as the name of a variable: as the gold has it.
        return type(given) is gold_type and given in choices
    if item_type and not _have_items_type(given, choices, item_type):
        return False
    if gold_type is not None and gold_type is not declared:
        return given in choices
    return _matches_declared(given, choices, declared, item_type)


def _find_declared_type(schema: Any) -> type | None:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return _TYPES.get(kind) if isinstance(kind, str) else None


def _find_type(choices: Sequence[Any]) -> type | None:
    return next((type(choice) for choice in choices if choice != OPTIONAL), None)


def _have_items_type(given: Any, choices: Sequence[Any], wanted: type) -> bool:
    """Whether every item has the declared type, or the type of the first item of an accepted list."""
    return any(
        not isinstance(choice, list) or all(type(item) in (wanted, _find_type(choice)) for item in given)
        for choice in choices
    )


def _matches_declared(given: Any, choices: Sequence[Any], declared: type, item_type: type | None) -> bool:
    if declared is dict:
        return any(_matches_fields(given, choice) for choice in choices if isinstance(choice, Mapping))
    if item_type is dict:
        return any(
            len(given) == len(choice) and all(map(_matches_fields, given, choice))
            for choice in choices
            if isinstance(choice, list) or choice == OPTIONAL
        )
    if declared is list:
        lists = [list(choice) for choice in choices if isinstance(choice, list | str)]
        return _standardise_items(given) in map(_standardise_items, lists)
    if declared is str:
        return _standardise(given) in (_standardise(choice) for choice in choices if isinstance(choice, str))
    return given in choices


def _matches_fields(given: Any, wanted: Any) -> bool:
    """Whether an object has only accepted values, and all required ones."""
    if not isinstance(given, Mapping) or not isinstance(wanted, Mapping) or not given.keys() <= wanted.keys():
        return False
    for key, accepted in wanted.items():
        choices = accepted if isinstance(accepted, list) else [accepted]
        if key in given and _standardise_item(given[key]) not in [_standardise_item(choice) for choice in choices]:
            return False
        if key not in given and OPTIONAL not in choices:
            return False
    return True


def _is_same_value(given: Any, wanted: Any) -> bool:
    """Whether two values of undeclared type are the same: texts are compared loosely, and an int equals a float."""
    if isinstance(given, str) and isinstance(wanted, str):
        return _standardise(given) == _standardise(wanted)
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return matches_object(given, wanted, {})
    if isinstance(given, list | tuple) and isinstance(wanted, list | tuple):
        return len(given) == len(wanted) and all(map(_is_same_value, given, wanted))
    if isinstance(wanted, float) and type(given) is int:
        return given == wanted
    return type(given) is type(wanted) and bool(given == wanted)


def _standardise_items(items: Sequence[Any]) -> list[Any]:
    return [_standardise_item(item) for item in items]


def _standardise_item(item: Any) -> Any:
    return _standardise(item) if isinstance(item, str) else item


def _standardise(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')


Gold = tuple[str, Mapping[str, Any]]


class ToolCallMatch:
    """Scores `tool_call_match`: 1.0 when the calls are exactly the wanted ones, in any order.

    Calls are read from `tool_calls` in OpenAI's form, else from the response: JSON or Python call syntax, fenced or
    with chat around it. If no function fits (an empty `ground_truth`, or a `meta.category` of irrelevance), a reply
    without a call is right. For a category of relevance, any call is right.
    """

    name = "tool-call-match"
    version = 3
    needs_answer = True
    score_fields = ("tool_call_match",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        meta = original.get("meta")
        category = str(meta.get("category") or "") if isinstance(meta, Mapping) else ""
        truth = original.get("ground_truth")
        golds = _read_golds(truth) if isinstance(truth, list | tuple) else None
        if golds is None and not category.endswith("relevance"):
            return Scores(reason="no ground_truth" if truth is None else "ground_truth is not in a known form")
        declared = _read_parameters(original)
        calls = read_calls(processed, {*declared, *(name for name, _ in golds or ())})
        if category.endswith("irrelevance") or (not golds and not category.endswith("relevance")):
            right = not calls
        elif not golds:
            right = bool(calls)
        else:
            right = _all_match(calls, golds, declared)
        return Scores({"tool_call_match": float(right)}, details={"calls": [call.name for call in calls]})


def _read_golds(truth: Sequence[Any]) -> list[Gold] | None:
    """Return the expected calls; the plain form {"name": ..., "arguments": ...} has one value for each argument."""
    golds: list[Gold] = []
    for item in truth:
        if not isinstance(item, Mapping):
            return None
        if isinstance(item.get("name"), str) and isinstance(item.get("arguments"), Mapping):
            golds.append((item["name"], {key: [_accept_one(value)] for key, value in item["arguments"].items()}))
            continue
        for name, parameters in item.items():
            if not isinstance(parameters, Mapping):
                return None
            golds.append((name, parameters))
    return golds


def _accept_one(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: [_accept_one(item)] for key, item in value.items()}
    return [_accept_one(item) for item in value] if isinstance(value, list) else value


def _read_parameters(example: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the offered functions, each with the declarations of its parameters."""
    tools = example.get("tools")
    declared: dict[str, Mapping[str, Any]] = {}
    for tool in tools if isinstance(tools, list | tuple) else ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            declared[function["name"]] = parameters if isinstance(parameters, Mapping) else {}
    return declared


def _all_match(calls: Sequence[ParsedCall], golds: Sequence[Gold], declared: Mapping[str, Mapping[str, Any]]) -> bool:
    if len(calls) != len(golds):
        return False
    for call in calls:
        required = _find_parameters(declared, call.name).get("required")
        if isinstance(required, list | tuple) and not {*required} <= {*(call.arguments or ())}:
            return False
    table = [
        [float(call_matches(call, gold, _find_parameters(declared, gold[0]).get("properties"))) for call in calls]
        for gold in golds
    ]
    return sum(table[row][column] for row, column in find_best_assignment(table)) == len(golds)


def _find_parameters(declared: Mapping[str, Mapping[str, Any]], wanted: str) -> Mapping[str, Any]:
    return next((parameters for name, parameters in declared.items() if is_same_name(name, wanted)), {})


def call_matches(call: ParsedCall, gold: Gold, schemas: Any = None) -> bool:
    """Whether a call is the wanted one; `schemas` has the declaration of each parameter."""
    name, parameters = gold
    if call.arguments is None or not is_same_name(call.name, name):
        return False
    return matches_object(call.arguments, parameters, schemas if isinstance(schemas, Mapping) else {})
