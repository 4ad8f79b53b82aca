"""JSON of many levels, in data and in replies: an error of its row, and nothing else is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import shell
from context_bench import OpenAIProxy, evaluate
from context_bench.datasets.example_check import MAX_DEPTH, find_deep_fields
from context_bench.systems import AnthropicProxy
from numbered import expected, facts, number_of, numbered, right
from servers import Server, chunk, raw, stream

PROBLEM = f"is nested more than {MAX_DEPTH} levels deep"
FIELDS = ("meta", "turns", "tools", "extra", "evidence", "answers", "choices", "documents")


def nested(levels: int, *, lists: bool = False) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value] if lists else {"a": value}
    return value


def deep_field(field: str, deep: Any) -> Any:
    inside = {
        "turns": [{"role": "user", "content": "code of item 1?", "x": deep}],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"x": deep}}}],
        "documents": [{"id": "d", "text": "t", "x": deep}],
    }
    return inside.get(field, [deep])


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("levels", "lists", "stored"), [(300, False, True), (300, True, False), (900, True, True), (5_000, False, False)]
)
def test_an_example_of_too_many_levels(tmp_path: Path, field: str, levels: int, lists: bool, stored: bool) -> None:
    data = numbered(*range(4))
    data[1][field] = deep_field(field, nested(levels, lists=lists))
    with Server(right) as server:
        systems = [OpenAIProxy(server.url, name="p"), lambda example: {"response": f"c{example['id']}"}]
        options: dict[str, Any] = {"cache_dir": tmp_path} if stored else {}
        result = evaluate(systems, data, max_workers=2, **options)
        again = evaluate(systems, data, max_workers=2, **options) if stored else result
        assert len(server.chats) == 3
    for rows in (result.filter(system="p").rows, again.filter(system="<lambda>").rows):
        assert facts([rows[0], *rows[2:]]) == expected(0, 2, 3)
        assert rows[1].error == f"DataError: the example cannot be sent: {field!r} {PROBLEM}"
    json.loads(result.to_json())


@pytest.mark.parametrize("field", FIELDS)
def test_a_hundred_levels_work_everywhere(tmp_path: Path, field: str) -> None:
    data = numbered(0, 1, answer="x")
    value = deep_field(field, 1)
    around = 0
    while not find_deep_fields({field: deep_field(field, nested(around + 1))}):
        around += 1
    assert MAX_DEPTH - 6 <= around <= MAX_DEPTH, value
    data[1][field] = deep_field(field, nested(around))
    with Server(lambda _: raw(json.dumps({"choices": [{"message": {"content": "x"}}]}).encode())) as server:
        systems = [OpenAIProxy(server.url, name="p"), AnthropicProxy(server.url, name="a")]
        result = evaluate(systems[:1], data, cache_dir=tmp_path)
        again = evaluate(systems[:1], data, cache_dir=tmp_path)
        assert systems[1].request_body(data[1])  # type: ignore[attr-defined]
    assert [row.error for row in result.rows] == [None, None]
    assert again.config["reused"] == 2


def test_a_file_with_an_example_of_too_many_levels(tmp_path: Path) -> None:
    data = numbered(*range(3))
    data[1]["meta"] = nested(300)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in data))
    with Server(right) as server:
        flags = ("--proxy", server.url, "--name", "p", "--dataset", "data.jsonl", "--output", "json")
        done = shell(*flags, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert [row["error"] is None for row in json.loads(done.stdout)["rows"]] == [True, False, True]
    assert f"'meta' {PROBLEM}" in done.stderr


def completion_with(place: str, deep: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "x"}
    choice: dict[str, Any] = {"message": message, "finish_reason": "stop"}
    document: dict[str, Any] = {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    holder = {"tool_calls": message, "content": message, "finish_reason": choice, "usage": document}.get(
        place, document
    )
    holder[place] = [{"function": {"name": "f", "arguments": deep}}] if place == "tool_calls" else deep
    if place == "other":
        del document["choices"]
    return document


@pytest.mark.parametrize("levels", [300, 900])
@pytest.mark.parametrize("place", ["tool_calls", "content", "finish_reason", "usage", "other"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_reply_of_too_many_levels(tmp_path: Path, place: str, levels: int, stored: bool) -> None:
    import sys

    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        body = json.dumps(completion_with(place, nested(levels, lists=place == "content"))).encode()
    finally:
        sys.setrecursionlimit(before)
    with Server(lambda request: raw(body) if number_of(request) == 1 else right(request)) as server:
        system = OpenAIProxy(server.url, max_retries=0)
        result = evaluate(system, numbered(*range(4)), max_workers=2, **({"cache_dir": tmp_path} if stored else {}))
    assert facts([result.rows[0], *result.rows[2:]]) == expected(0, 2, 3)
    harmless = levels < 1_000 and place in ("content", "usage")  # read as a text of no words, and left out
    assert (result.rows[1].error is None) == harmless
    json.loads(result.to_json())


def test_a_tool_call_of_too_many_levels_in_anthropics_form() -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": nested(300)}
    body = json.dumps({"content": [block], "usage": {"input_tokens": 3, "output_tokens": 2}}).encode()
    with Server(raw(body)) as server:
        (row,) = evaluate(AnthropicProxy(server.url, max_retries=0), numbered(1)).rows
    assert str(row.error).startswith("BadOutput: ")
    assert row.metadata["total_tokens"] == 5, "it was paid for all the same"


def test_a_stream_of_too_many_levels() -> None:
    event = b"data: " + json.dumps({"choices": [], "usage": nested(300)}).encode() + b"\n\n"
    with Server(stream(chunk("c1", finish="stop"), event, b"data: [DONE]\n\n")) as server:
        system = OpenAIProxy(server.url, max_retries=0, stream=True, api_key="sk-0123456789abcdef")
        (row,) = evaluate(system, numbered(1)).rows
    assert row.error is None or row.error.startswith(("RequestFailed", "BadOutput"))


def test_the_fields_that_are_too_deep() -> None:
    assert find_deep_fields({"a": "x", "b": [1, {"c": [2]}], "d": {}}) == []
    assert find_deep_fields({"a": nested(MAX_DEPTH), "b": nested(MAX_DEPTH + 1), "c": nested(90_000)}) == ["b", "c"]
    circle: list[Any] = []
    circle.append(circle)
    assert find_deep_fields({"a": circle}) == ["a"]
