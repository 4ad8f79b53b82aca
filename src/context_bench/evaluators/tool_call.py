"""Function calls against the calls that were wanted, by the rules of the Berkeley Function-Calling Leaderboard.

Gold is a list of {function: {parameter: [accepted values]}}; an empty string among the values means that
the parameter may be left out, unless the function declares it as required. Texts are compared without
case, spaces and the signs ,./-_*^ and with one kind of quote. Beyond the published checker, an int is
accepted for a float inside lists too, and parallel calls are paired so that as many as possible match.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from context_bench.evaluators.assignment import best_assignment
from context_bench.evaluators.tool_call_reading import Call, read_calls, same_name
from context_bench.results import Scores

__all__ = ["ToolCallMatch", "call_matches"]

_IGNORED = re.compile(r"[ ,./\-_*^]")
_OPTIONAL = ""

Gold = tuple[str, Mapping[str, Any]]


class ToolCallMatch:
    """Scores `tool_call_match`: 1.0 when the calls are exactly the wanted ones, in any order.

    Calls are read from `tool_calls` in OpenAI's form, else from the response: JSON or Python call syntax,
    fenced or with chat around it. Where no function fits (an empty `ground_truth`, or a `meta.category` of
    irrelevance) a reply without any call is right; for a category of relevance any call is.
    """

    name = "tool-call-match"
    version = 1
    needs_answer = True
    score_fields = ("tool_call_match",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Read the calls and pair them with the wanted ones."""
        meta = original.get("meta")
        category = str(meta.get("category") or "") if isinstance(meta, Mapping) else ""
        truth = original.get("ground_truth")
        golds = _golds(truth) if isinstance(truth, list | tuple) else None
        if golds is None and not category.endswith("relevance"):
            return Scores(reason="no ground_truth" if truth is None else "ground_truth is in no known form")
        required = _required(original)
        calls = read_calls(processed, {*required, *(name for name, _ in golds or ())})
        if category.endswith("irrelevance") or (not golds and not category.endswith("relevance")):
            right = not calls
        elif not golds:
            right = bool(calls)
        else:
            right = _all_match(calls, golds, required)
        return Scores({"tool_call_match": float(right)}, details={"calls": [call.name for call in calls]})


def _golds(truth: Sequence[Any]) -> list[Gold] | None:
    """The wanted calls; also from the plain form {"name": ..., "arguments": ...} with one value for each."""
    golds: list[Gold] = []
    for item in truth:
        if not isinstance(item, Mapping):
            return None
        if isinstance(item.get("name"), str) and isinstance(item.get("arguments"), Mapping):
            golds.append((item["name"], {key: [_accepting(value)] for key, value in item["arguments"].items()}))
            continue
        for name, parameters in item.items():
            if not isinstance(parameters, Mapping):
                return None
            golds.append((name, parameters))
    return golds


def _accepting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: [_accepting(item)] for key, item in value.items()}
    return [_accepting(item) for item in value] if isinstance(value, list) else value


def _required(example: Mapping[str, Any]) -> dict[str, list[str]]:
    """The functions on offer, each with the parameters that it declares as required."""
    tools = example.get("tools")
    required: dict[str, list[str]] = {}
    for tool in tools if isinstance(tools, list | tuple) else ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            names = parameters.get("required") if isinstance(parameters, Mapping) else None
            required[function["name"]] = list(names) if isinstance(names, list | tuple) else []
    return required


def _all_match(calls: Sequence[Call], golds: Sequence[Gold], required: Mapping[str, Collection[str]]) -> bool:
    if len(calls) != len(golds):
        return False
    for call in calls:
        needed = next((names for name, names in required.items() if same_name(name, call.name)), ())
        if not {*needed} <= {*(call.arguments or ())}:
            return False
    table = [[float(call_matches(call, gold)) for call in calls] for gold in golds]
    return sum(table[row][column] for row, column in best_assignment(table)) == len(golds)


def call_matches(call: Call, gold: Gold) -> bool:
    """Whether one call is the wanted one."""
    name, parameters = gold
    return call.arguments is not None and same_name(call.name, name) and _object_matches(call.arguments, parameters)


def _object_matches(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Each value must be accepted, none be unexpected, and only optional ones be missing."""
    if not given.keys() <= wanted.keys():
        return False
    for key, accepted in wanted.items():
        choices = accepted if isinstance(accepted, list) else [accepted]
        if key not in given:
            if _OPTIONAL not in choices:
                return False
        elif not any(_value_matches(given[key], choice) for choice in choices):
            return False
    return True


def _value_matches(given: Any, wanted: Any) -> bool:
    if isinstance(given, str) and isinstance(wanted, str):
        return _standard(given) == _standard(wanted)
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return _object_matches(given, wanted)
    if isinstance(given, list | tuple) and isinstance(wanted, list | tuple):
        return len(given) == len(wanted) and all(map(_value_matches, given, wanted))
    if isinstance(wanted, float) and type(given) is int:
        return given == wanted
    return type(given) is type(wanted) and bool(given == wanted)


def _standard(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')
