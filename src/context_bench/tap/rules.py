"""Scripts in files: rules that answer requests, and replies with the structure that a request demands.

An answer that already has the demanded structure is not changed. Otherwise the reply is built from the schema: it has
every field, one item in each list, and the script's text in each text field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from context_bench.errors import DataError, UsageError
from context_bench.wire.form import Answer, ToolCall
from context_bench.wire.forms import find_demand, read_prompt

MAX_CHOICES = 128  # the limit of OpenAI's API
_MAX_SCHEMA_DEPTH = 12  # a schema may refer to itself


def fit_answer(answer: Answer, document: Mapping[str, Any]) -> Answer:
    """Return the answer in the form, and with the number of choices, that its request demands."""
    if answer.status >= 400 or answer.tool_calls:
        return answer
    answer = _fit_structure(answer, document)
    wanted = document.get("n")
    if isinstance(wanted, int) and wanted > 1 and not answer.choices and not answer.tool_calls:
        answer = replace(answer, choices=[answer.text] * (min(wanted, MAX_CHOICES) - 1))
    return answer


def _fit_structure(answer: Answer, document: Mapping[str, Any]) -> Answer:
    demand = find_demand(document)
    if demand is None or (not demand.is_tool and _is_object(answer.text)):
        return answer
    if demand.is_tool:
        arguments = json.dumps(fill_schema(demand.schema, answer.text), ensure_ascii=False)
        return replace(answer, text="", chunks=None, tool_calls=[ToolCall("call_1", demand.name, arguments)])
    structured = isinstance(demand.schema, Mapping)
    free = {"text": answer.text, "memory": [{"text": answer.text}]}  # mem0 demands JSON without a schema: this form
    filled = fill_schema(demand.schema, answer.text) if structured else free
    return replace(answer, text=json.dumps(filled, ensure_ascii=False), chunks=None)


def fill_schema(schema: Any, text: str) -> Any:
    """Make a value that fits a JSON schema, with `text` in every text field."""
    return _fill(schema, text, schema, 0)


def _fill(schema: Any, text: str, root: Any, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _MAX_SCHEMA_DEPTH:
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
        return {
            key: _fill(each, text, root, depth + 1)
            for key, each in (properties or {}).items()
            if depth < _MAX_SCHEMA_DEPTH
        }
    if kind == "array":
        return [] if depth >= _MAX_SCHEMA_DEPTH else [_fill(schema.get("items"), text, root, depth + 1)]
    least = schema.get("minimum", 0)
    simple: dict[Any, Any] = {"string": text, "integer": least, "number": least, "boolean": False}
    return simple.get(kind)


def _choose(schemas: list[Any]) -> Any:
    """Choose the first of several schemas that is not null."""
    return next((each for each in schemas if isinstance(each, Mapping) and each.get("type") != "null"), schemas[0])


def _follow(reference: str, root: Any) -> Any:
    """Resolve a reference such as `#/$defs/Name`."""
    found = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


_KINDS: dict[str, tuple[type, ...]] = {
    "reply": (str,),
    "tool_calls": (list,),
    "status": (int,),
    "error": (str,),
    "headers": (dict,),
    "delay": (int, float),
    "pause": (int, float),
    "chunks": (list,),
    "finish": (str,),
    "usage": (dict,),
    "extra": (dict,),
}
_RULE_KINDS: dict[str, tuple[type, ...]] = {"match": (str,), "schema": (str,), "times": (int,), **_KINDS}
_WORDS = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "an object"}


@dataclass(slots=True)
class _Rule:
    match: re.Pattern[str] | None
    schema: str | None
    left: int | None
    answer: Answer

    def fits(self, texts: list[str], schema: str) -> bool:
        """Whether the rule applies to a prompt with these texts and a reply schema of that name."""
        if self.left == 0 or self.schema not in (None, schema):
            return False
        return self.match is None or any(self.match.search(text) for text in texts)


class Rules:
    """Rules in order, with their remaining uses; `source` is the content of the file."""

    def __init__(self, rules: list[_Rule], source: bytes) -> None:
        self._rules, self.source = rules, source

    def answer(self, document: Mapping[str, Any]) -> Answer:
        """Return the answer of the first rule that applies."""
        prompt = read_prompt(document)
        texts = prompt.texts() if prompt else []
        demand = find_demand(document)
        schema = demand.name if demand else ""
        for rule in self._rules:
            if rule.fits(texts, schema):
                if rule.left is not None:
                    rule.left -= 1
                return rule.answer
        return Answer(f"none of the {len(self._rules)} rules of the script matches this request", status=404)


def read_rules(path: Path) -> Rules:
    """Read a file of rules; DataError names the file, the line or rule, and the fault."""
    try:
        source = path.read_bytes()
        text = source.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8") from error
    numbered: list[tuple[str, Any]]
    if path.suffix == ".jsonl":
        lines = enumerate(text.split("\n"), 1)
        places = [(f"{path}, line {number}", line) for number, line in lines if line.strip()]
        numbered = [(where, _parse_json(line, where)) for where, line in places]
    else:
        document = _parse_json(text, str(path))
        items = document if isinstance(document, list) else [document]
        numbered = [(f"{path}, rule {number}", item) for number, item in enumerate(items, 1)]
    if not numbered:
        raise DataError(f"{path}: has no rules")
    return Rules([_read_rule(item, where) for where, item in numbered], source)


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f", line {error.lineno}" if error.lineno > 1 else ""
        raise DataError(f"{where}{place}: is not JSON: {error.msg} at column {error.colno}") from None


def _read_rule(item: Any, where: str) -> _Rule:
    _check(item, where, _RULE_KINDS)
    match = item.get("match")
    try:
        pattern = None if match is None else re.compile(match)
    except re.error as error:
        raise DataError(f"{where}: match is not a regular expression: {error}") from None
    times = item.get("times")
    if times is not None and times < 1:
        raise DataError(f"{where}: times must be an integer of at least 1 (got {times})")
    return _Rule(
        pattern, item.get("schema"), times, read_answer({key: item[key] for key in item if key in _KINDS}, where)
    )


def read_answer(item: Any, where: str) -> Answer:
    """Read the answer of a rule, or the result of a function."""
    _check(item, where, _KINDS)
    status = item.get("status", 500 if "error" in item else 200)
    if not 200 <= status <= 599:
        raise DataError(f"{where}: status must be from 200 to 599 (got {status})")
    if not {"reply", "tool_calls", "chunks", "status", "error"} & set(item):
        raise DataError(f"{where}: is empty: it needs a reply, tool_calls or a status")
    for key in ("delay", "pause"):
        if not 0 <= item.get(key, 0) <= 3600:
            raise DataError(f"{where}: {key} must be from 0 to 3600 seconds (got {item[key]})")
    chunks = item.get("chunks")
    if chunks is not None and not all(isinstance(chunk, str) for chunk in chunks):
        raise DataError(f"{where}: chunks must be a list of texts")
    text = (
        item.get("error") or f"scripted error {status}" if status >= 400 else item.get("reply", "".join(chunks or ()))
    )
    if chunks is not None and status < 400 and "".join(chunks) != text:
        raise DataError(f"{where}: the joined chunks differ from the reply")
    return Answer(
        text=text,
        tool_calls=[_read_call(call, number, where) for number, call in enumerate(item.get("tool_calls", ()), 1)],
        chunks=chunks,
        usage=_read_usage(item.get("usage"), where),
        finish=item.get("finish"),
        delay=item.get("delay", 0.0),
        pause=item.get("pause", 0.0),
        status=status,
        headers={name: str(value) for name, value in item.get("headers", {}).items()},
        extra=item.get("extra", {}),
    )


def _check(item: Any, where: str, kinds: Mapping[str, tuple[type, ...]]) -> None:
    """Check that `item` is an object with known keys and values of the right kinds."""
    if not isinstance(item, Mapping):
        raise DataError(f"{where}: it must be an object (got {type(item).__name__})")
    for key, value in item.items():
        if key not in kinds:
            raise DataError(f"{where}: unknown key {key!r}; known keys: {', '.join(kinds)}")
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            raise DataError(f"{where}: {key} must be {_WORDS[kinds[key][-1]]} (got {json.dumps(value, default=str)})")


def _read_call(call: Any, number: int, where: str) -> ToolCall:
    """Read a tool call in our form, or in OpenAI's."""
    inner = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise DataError(f"{where}: a tool call must have a name and arguments")
    arguments = inner.get("arguments", {})
    if isinstance(arguments, str):
        try:
            json.loads(arguments)
        except ValueError:
            raise DataError(f"{where}: the arguments of {inner['name']} are not JSON") from None
    else:
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(str(call.get("id", f"call_{number}")), inner["name"], arguments)


def _read_usage(usage: Any, where: str) -> tuple[int, int] | None:
    if usage is None:
        return None
    pairs = (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens"))
    for prompt, completion in pairs:
        if isinstance(usage.get(prompt), int) and isinstance(usage.get(completion), int):
            return usage[prompt], usage[completion]
    raise UsageError(f"{where}: usage must have prompt_tokens and completion_tokens")
