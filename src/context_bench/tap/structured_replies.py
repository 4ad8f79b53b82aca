"""Replies in the form that a request demands: JSON by a schema, or the call of a tool.

A script that answers in that form itself is left alone. For any other answer the schema is filled: every field is
there, a list has one item, and a text is what the script said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from context_bench.wire.replies import Answer, ToolCall

__all__ = ["fill_schema", "fit_answer", "name_schema"]

_DEEPEST = 12
"""Levels of a schema that are filled: one may refer to itself."""


def fit_answer(answer: Answer, document: Mapping[str, Any]) -> Answer:
    """Return the answer in the form that its request demands; as it is where the request demands none."""
    if answer.status >= 400 or answer.tool_calls:
        return answer
    tool = _find_demanded_tool(document)
    if tool is not None:
        name, schema = tool
        call = ToolCall("call_1", name, json.dumps(fill_schema(schema, answer.text), ensure_ascii=False))
        return replace(answer, text="", chunks=None, tool_calls=[call])
    form = document.get("response_format")
    kind = form.get("type") if isinstance(form, Mapping) else None
    if kind not in ("json_schema", "json_object") or _is_object(answer.text):
        return answer
    held = form.get("json_schema") if isinstance(form, Mapping) else None
    schema = held.get("schema") if isinstance(held, Mapping) else None
    filled = fill_schema(schema, answer.text) if isinstance(schema, Mapping) else {"text": answer.text}
    return replace(answer, text=json.dumps(filled, ensure_ascii=False), chunks=None)


def name_schema(document: Mapping[str, Any]) -> str:
    """Return the name of the schema, or of the tool, that a request demands; empty without one."""
    tool = _find_demanded_tool(document)
    if tool is not None:
        return tool[0]
    form = document.get("response_format")
    held = form.get("json_schema") if isinstance(form, Mapping) else None
    return str(held.get("name") or "") if isinstance(held, Mapping) else ""


def fill_schema(schema: Any, text: str) -> Any:
    """Make a value that fits a JSON schema, with `text` for every text in it."""
    return _fill(schema, text, schema, 0)


def _fill(schema: Any, text: str, root: Any, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if isinstance(schema.get("$ref"), str):
        return _fill(_follow(schema["$ref"], root), text, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key]:
            return _fill(_choose(schema[key]), text, root, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if kind == "object" or "properties" in schema:
        properties = schema.get("properties")
        return {key: _fill(each, text, root, depth + 1) for key, each in (properties or {}).items() if depth < _DEEPEST}
    if kind == "array":
        return [] if depth >= _DEEPEST else [_fill(schema.get("items"), text, root, depth + 1)]
    least = schema.get("minimum", 0)
    simple: dict[Any, Any] = {"string": text, "integer": least, "number": least, "boolean": False}
    return simple.get(kind)


def _choose(schemas: list[Any]) -> Any:
    """Choose the first of several schemas that is not null."""
    return next((each for each in schemas if isinstance(each, Mapping) and each.get("type") != "null"), schemas[0])


def _follow(reference: str, root: Any) -> Any:
    """Find what `#/$defs/Name` refers to."""
    found = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _find_demanded_tool(document: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Find the tool that a request wants called, and the schema of its arguments; None where it leaves the choice."""
    choice = document.get("tool_choice")
    tools = {name: schema for name, schema in map(_read_tool, document.get("tools") or ()) if name}
    if not tools or choice is None:
        return None
    if choice == "required" or (isinstance(choice, Mapping) and choice.get("type") == "any"):
        return next(iter(tools.items()))
    if not isinstance(choice, Mapping):
        return None
    held = choice.get("function")
    name = held.get("name") if isinstance(held, Mapping) else choice.get("name")
    return (name, tools[name]) if name in tools else None


def _read_tool(tool: Any) -> tuple[str, Any]:
    """Return the name and the schema of a tool, in the form of either API."""
    inner = tool.get("function", tool) if isinstance(tool, Mapping) else {}
    if not isinstance(inner, Mapping):
        return "", None
    return str(inner.get("name") or ""), inner.get("parameters", inner.get("input_schema"))
