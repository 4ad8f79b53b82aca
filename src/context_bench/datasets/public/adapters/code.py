"""Programs and function calls: a task with the tests that a program must pass, or `tools` with the wanted calls.

The functions are sent as tools and nowhere else, so the context is empty. Dots in names are replaced, because most
endpoints reject them; the scorer treats both spellings as equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Span, Where, make_example, make_span, read_rows
from context_bench.types import Example

Record = Mapping[str, Any]

_MBPP_SPLITS = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}
"""The first and last `task_id` of each split; the authors' files hold all of them."""


def humaneval(record: Record, where: Where) -> Iterator[Example]:
    """Make the beginning of a function the question; `prompt` tells the evaluator what a reply continues."""
    yield {
        "id": record["task_id"],
        "context": "",
        "question": record["prompt"],
        "prompt": record["prompt"],
        "test": record["test"],
        "entry_point": record["entry_point"],
        "reference": record["canonical_solution"],
    }


def mbpp(record: Record, where: Where) -> Iterator[Example]:
    """Both configurations. The tests are shown, because only they contain the name of the function."""
    first, last = _MBPP_SPLITS.get(where.split, (1, 974))
    if not first <= record["task_id"] <= last:
        return
    sanitized = "prompt" in record or where.config == "sanitized"
    tests = list(record["test_list"])
    task = record["prompt" if sanitized else "text"].strip()
    extra = {"test_imports": record["test_imports"]} if sanitized else {"test_setup_code": record["test_setup_code"]}
    yield {
        "id": record["task_id"],
        "context": "",
        "question": "\n".join([task, "", "The code must pass these tests:", *tests]),
        "test_list": tests,
        "reference": record["code"].replace("\r\n", "\n"),
        **{key: value for key, value in extra.items() if value},
    }


ISSUE = "issue"
_FILE = re.compile(r"^--- (?:a/)?([^\t\n]+)[^\n]*\n\+\+\+ [^\n]*\n", re.MULTILINE)


def swebench(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """One issue; hints and the tests of the patch are never shown."""
    context = record["problem_statement"] if where.config == ISSUE else record["text"]
    question = f"Resolve the issue in the repository {record['repo']}."
    evidence = _find_evidence(context, _find_changes(record["patch"]))
    meta = {key: record[key] for key in ("repo", "version", "difficulty") if key in record}
    yield make_example(record["instance_id"], context, question, [record["patch"]], evidence=evidence, meta=meta)


def _find_changes(patch: str) -> dict[str, list[str]]:
    """Return the files that a patch changes, each with its removed lines; new files are left out."""
    _, *parts = _FILE.split(patch)
    return {
        path: [line[1:].strip() for line in body.splitlines() if line.startswith("-")]
        for path, body in zip(parts[::2], parts[1::2])
        if path != "/dev/null"
    }


def _find_evidence(context: str, changes: Mapping[str, list[str]]) -> list[Span]:
    """Find the first place of each path, followed by the places of its lines in order."""
    spans: list[Span] = []
    for path, lines in changes.items():
        start = context.find(path)
        if start < 0:
            continue
        spans.append(make_span(context, start, start + len(path)))
        place = start + len(path)
        for line in filter(None, lines):
            found = context.find(line, place)
            if found >= 0:
                place = found + len(line)
                spans.append(make_span(context, found, place))
    return spans


_TYPES = {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}
_TYPES |= {"dict": "object", "float": "number", "double": "number", "long": "integer", "tuple": "array"}
_TYPES |= {"str": "string", "int": "integer", "bool": "boolean", "list": "array", "set": "array"}

GROUPS = {
    "simple_python": "non-live/simple",
    "multiple": "non-live/multiple",
    "parallel": "non-live/parallel",
    "parallel_multiple": "non-live/parallel_multiple",
    **dict.fromkeys(("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"), "live"),
    "irrelevance": "irrelevance/non-live",
    "live_irrelevance": "irrelevance/live",
}
"""The kinds that the leaderboard averages (bfcl-eval 2026.3.23): non-live, live and irrelevance weigh the same in its
overall number. Live calls are averaged by row, all others by category; live_relevance is shown but not counted."""


def bfcl_files(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Return the questions, each with its gold, which is in a file of the same name; if there are two versions, the
    first is read."""
    rows = list(read_rows(path for path in paths if path.name == paths[0].name))
    golds = {row["id"]: row["ground_truth"] for row in rows if "ground_truth" in row}
    for row in rows:
        if "question" in row or "function" in row:
            identity = row.get("id")
            yield {**row, "ground_truth": golds[identity]} if identity in golds else row


def bfcl(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """One task of the Berkeley Function-Calling Leaderboard, of the kinds with a single turn."""
    (messages,) = record["question"]
    functions = record["function"]
    yield {
        "id": record["id"],
        "context": "",
        **_read_request(messages),
        "tools": [
            _declare_tool(each["name"], each["description"], _make_schema(each["parameters"]))
            for each in (functions if isinstance(functions, list) else [functions])
        ],
        "ground_truth": [] if where.config.endswith("relevance") else record["ground_truth"],
        "meta": {"category": where.config} | ({"group": GROUPS[where.config]} if where.config in GROUPS else {}),
    }


def _read_request(messages: Sequence[Mapping[str, Any]]) -> Example:
    """Read a request: a single user message is the question; anything else is a conversation with one reply."""
    if len(messages) == 1 and messages[0]["role"] == "user":
        return {"question": messages[0]["content"]}
    turns: list[dict[str, Any]] = []
    for message in messages:
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1]["content"] += f"\n\n{message['content']}"
        else:
            turns.append({"role": message["role"], "content": message["content"]})
    return {"turns": turns}


def _declare_tool(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    named = {"name": name.replace(".", "_"), "description": description, "parameters": parameters}
    return {"type": "function", "function": named}


def _make_schema(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the leaderboard's type names to JSON Schema; an unknown type is left open."""
    schema = {key: value for key, value in given.items() if key not in ("type", "optional")}
    kind = _TYPES.get(str(given.get("type", "")).lower())
    if kind:
        schema = {"type": kind, **schema}
    if isinstance(schema.get("properties"), Mapping):
        schema["properties"] = {name: _make_schema(each) for name, each in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        schema["items"] = _make_schema(schema["items"])
    elif kind == "array":
        schema["items"] = {}  # endpoints refuse a list that does not say of what
    return schema


def apigen(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """One request with generated functions; the gold has one accepted value for each argument."""
    yield {
        "id": record["id"],
        "context": "",
        "question": record["query"],
        "tools": [_make_python_tool(tool) for tool in json.loads(record["tools"])],
        "ground_truth": json.loads(record["answers"]),
    }


def _make_python_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function whose parameters have Python's types, such as "List[str], optional"."""
    given: Mapping[str, Mapping[str, Any]] = tool["parameters"]
    properties = {name: _make_python_schema(parameter) for name, parameter in given.items()}
    required = [
        name
        for name, each in given.items()
        if "default" not in each and "optional" not in str(each.get("type", "")).lower()
    ]
    schema = {"type": "object", "properties": properties, "required": required}
    return _declare_tool(tool["name"], tool["description"], schema)


def _make_python_schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    outer, _, inner = str(parameter.get("type", "")).partition(",")[0].partition("[")
    schema = _make_schema({**parameter, "type": outer.strip()})
    item = _TYPES.get(inner.rstrip("] ").lower())
    if schema.get("type") == "array" and item:
        schema["items"] = {"type": item}
    return schema
