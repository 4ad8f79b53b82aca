"""Function calls against the calls that were wanted, by the rules of the Berkeley Function-Calling Leaderboard.

Gold is a list of {function: {parameter: [accepted values]}}; an empty string among the values means that
the parameter may be left out, unless the function declares it as required. Texts are compared without
case, spaces and the signs ,./-_*^ and with one kind of quote. Beyond the published checker, parallel calls are
paired so that as many as possible match, a Python tuple passes for a list, and objects within objects are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.evaluators.assignment import find_best_assignment
from context_bench.evaluators.tool_calls.argument_values import matches_object
from context_bench.evaluators.tool_calls.call_reading import Call, is_same_name, read_calls
from context_bench.results import Scores

__all__ = ["ToolCallMatch", "call_matches"]

Gold = tuple[str, Mapping[str, Any]]


class ToolCallMatch:
    """Scores `tool_call_match`: 1.0 when the calls are exactly the wanted ones, in any order.

    Calls are read from `tool_calls` in OpenAI's form, else from the response: JSON or Python call syntax,
    fenced or with chat around it. Where no function fits (an empty `ground_truth`, or a `meta.category` of
    irrelevance) a reply without any call is right; for a category of relevance any call is.
    """

    name = "tool-call-match"
    version = 3
    needs_answer = True
    score_fields = ("tool_call_match",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Read the calls and pair them with the wanted ones."""
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
    """The wanted calls; also from the plain form {"name": ..., "arguments": ...} with one value for each."""
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
    """The functions on offer, each with what it declares about its parameters."""
    tools = example.get("tools")
    declared: dict[str, Mapping[str, Any]] = {}
    for tool in tools if isinstance(tools, list | tuple) else ():
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            declared[function["name"]] = parameters if isinstance(parameters, Mapping) else {}
    return declared


def _all_match(calls: Sequence[Call], golds: Sequence[Gold], declared: Mapping[str, Mapping[str, Any]]) -> bool:
    if len(calls) != len(golds):
        return False
    for call in calls:
        if not {*_list_names(_find_parameters(declared, call.name).get("required"))} <= {*(call.arguments or ())}:
            return False
    table = [
        [float(call_matches(call, gold, _find_parameters(declared, gold[0]).get("properties"))) for call in calls]
        for gold in golds
    ]
    return sum(table[row][column] for row, column in find_best_assignment(table)) == len(golds)


def _find_parameters(declared: Mapping[str, Mapping[str, Any]], wanted: str) -> Mapping[str, Any]:
    return next((parameters for name, parameters in declared.items() if is_same_name(name, wanted)), {})


def _list_names(required: Any) -> Sequence[str]:
    return required if isinstance(required, list | tuple) else ()


def call_matches(call: Call, gold: Gold, schemas: Any = None) -> bool:
    """Whether one call is the wanted one; `schemas` is what the function declares about each parameter."""
    name, parameters = gold
    if call.arguments is None or not is_same_name(call.name, name):
        return False
    return matches_object(call.arguments, parameters, schemas if isinstance(schemas, Mapping) else {})
