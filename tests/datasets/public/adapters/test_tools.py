"""Function calling, from records in the sources' own schemas to matched calls; real ones by CONTEXT_BENCH_DATA."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.errors import DataError
from context_bench.metrics import OfficialScore
from context_bench.registry import registry
from context_bench.systems.prompts import open_turns
from context_bench.types import Example
from public_cases import Case, load_case, needed_columns, primary, prompt_of, real, write_file
from rows import make_row

FUNCTION = {
    "name": "shop.find",
    "description": "Find a shop.",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "radius": {"type": "float", "description": "In km.", "default": 1.5, "optional": True},
            "corner": {"type": "tuple", "description": "A place.", "items": {"type": "float"}},
            "tags": {"type": "array", "description": "Any."},
            "extra": {"type": "any", "description": "Whatever."},
            "type": {"type": "dict", "properties": {"float": {"type": "boolean"}}, "description": "Kind."},
        },
        "required": ["city"],
    },
}
QUESTION = {
    "id": "simple_python_0",
    "question": [[{"role": "user", "content": "A shop in Rome?"}]],
    "function": [FUNCTION],
}
GOLD = {"id": "simple_python_0", "ground_truth": [{"shop.find": {"city": ["Rome", "Roma"], "radius": ["", 1.5]}}]}
RIGHT = {"tool_calls": [{"type": "function", "function": {"name": "shop_find", "arguments": '{"city": "Roma"}'}}]}
WRONG = {"tool_calls": [{"type": "function", "function": {"name": "shop_find", "arguments": '{"city": "Oslo"}'}}]}

XLAM = {
    "id": 5,
    "query": "Add 2 and 3.5",
    "answers": json.dumps([{"name": "add", "arguments": {"a": 2, "b": 3.5}}]),
    "tools": json.dumps(
        [
            {
                "name": "add",
                "description": "Add.",
                "parameters": {
                    "a": {"type": "int", "description": "One."},
                    "b": {"type": "float", "description": "Other."},
                    "c": {"type": "List[str], optional", "description": "Notes."},
                    "d": {"type": "Dict[str, int]", "description": "More.", "default": {}},
                },
            }
        ]
    ),
}
APIGEN = Case(
    "apigen",
    XLAM,
    '[{"name": "add", "arguments": {"a": 2, "b": 3.5}}]',
    '[{"name": "add", "arguments": {"a": 2, "b": 3}}]',
    ("Add 2 and 3.5",),
    frozenset(XLAM),
)


def bfcl(
    folder: Path, questions: list[dict[str, Any]], golds: list[dict[str, Any]], name: str, config: str
) -> list[Example]:
    write_file(folder / "bfcl" / f"{name}.jsonl", questions)
    (folder / "bfcl" / f"{name}.jsonl").rename(folder / "bfcl" / f"{name}.json")  # one a line, whatever the suffix says
    if golds:
        write_file(folder / "bfcl" / "possible_answer" / f"{name}.jsonl", golds)
        (folder / "bfcl" / "possible_answer" / f"{name}.jsonl").rename(
            folder / "bfcl" / "possible_answer" / f"{name}.json"
        )
    return list(load("bfcl", config, data_dir=folder))


@pytest.mark.parametrize("name", ["BFCL_v4_simple_python", "BFCL_v3_simple"])
def test_questions_are_joined_with_their_golds(name: str, tmp_path: Path) -> None:
    assert {*QUESTION} == {*catalog()["bfcl"].columns["files"]}
    assert {*GOLD} == {*catalog()["bfcl"].columns["golds"]}
    other = {**QUESTION, "id": "simple_python_1"}
    gold = {"id": "simple_python_1", "ground_truth": [{"shop.find": {"city": ["Bonn"]}}]}
    first, second = bfcl(tmp_path, [QUESTION, other], [gold, GOLD], name, "simple_python")
    assert (first["question"], first["context"]) == ("A shop in Rome?", "")
    assert first["ground_truth"] == GOLD["ground_truth"]
    assert second["ground_truth"] == gold["ground_truth"]
    assert prompt_of(first).count("A shop in Rome?") == 1
    assert [primary("bfcl", first, reply) for reply in (RIGHT, WRONG, "", "shop.find(city='Rome')")] == [
        1.0,
        0.0,
        0.0,
        1.0,
    ]


def test_of_two_versions_the_later_one_is_read(tmp_path: Path) -> None:
    bfcl(tmp_path, [QUESTION | {"id": "simple_0"}], [GOLD | {"id": "simple_0"}], "BFCL_v3_simple", "simple_python")
    (example,) = bfcl(tmp_path, [QUESTION], [GOLD], "BFCL_v4_simple_python", "simple_python")
    assert example["id"] == "simple_python_0"


def test_types_become_json_schema(tmp_path: Path) -> None:
    (example,) = bfcl(tmp_path, [QUESTION], [GOLD], "BFCL_v4_simple_python", "simple_python")
    (tool,) = example["tools"]
    assert tool == {
        "type": "function",
        "function": {
            "name": "shop_find",
            "description": "Find a shop.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where."},
                    "radius": {"type": "number", "description": "In km.", "default": 1.5},
                    "corner": {"type": "array", "description": "A place.", "items": {"type": "number"}},
                    "tags": {"type": "array", "description": "Any.", "items": {}},
                    "extra": {"description": "Whatever."},
                    "type": {"type": "object", "properties": {"float": {"type": "boolean"}}, "description": "Kind."},
                },
                "required": ["city"],
            },
        },
    }


@pytest.mark.parametrize("column", ["id", "question", "function", "ground_truth"])
def test_a_missing_column_is_named(column: str, tmp_path: Path) -> None:
    question, gold = ({key: row[key] for key in row if key != column} for row in (QUESTION, GOLD))
    with pytest.raises(DataError, match=f"no column '{column}'"):
        bfcl(tmp_path, [question], [gold], "BFCL_v4_simple_python", "simple_python")


def test_without_a_gold_there_is_no_guess(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column 'ground_truth'"):
        bfcl(tmp_path, [QUESTION], [], "BFCL_v4_simple_python", "simple_python")


def test_where_no_function_fits_no_call_is_right(tmp_path: Path) -> None:
    (example,) = bfcl(tmp_path, [QUESTION | {"id": "irrelevance_0"}], [], "BFCL_v4_irrelevance", "irrelevance")
    assert primary("bfcl", example, "None of these functions fits.") == 1.0
    assert primary("bfcl", example, RIGHT) == 0.0
    (example,) = bfcl(tmp_path, [QUESTION | {"id": "live_relevance_0"}], [], "BFCL_v4_live_relevance", "live_relevance")
    assert primary("bfcl", example, "None of these functions fits.") == 0.0
    assert primary("bfcl", example, WRONG) == 1.0


def test_several_messages_are_one_conversation_with_one_reply(tmp_path: Path) -> None:
    roles = [
        ("system", "Be brief."),
        ("user", "A shop?"),
        ("user", "In Rome."),
        ("assistant", "Which?"),
        ("user", "Any."),
    ]
    messages = [{"role": role, "content": text} for role, text in roles]
    (example,) = bfcl(tmp_path, [QUESTION | {"question": [messages]}], [GOLD], "BFCL_v4_live_simple", "live_simple")
    assert "question" not in example
    assert open_turns(example["turns"]) == 1
    assert [(turn["role"], turn["content"]) for turn in example["turns"]] == [
        ("system", "Be brief."),
        ("user", "A shop?\n\nIn Rome."),
        ("assistant", "Which?"),
        ("user", "Any."),
    ]
    assert primary("bfcl", example, RIGHT) == 1.0


def test_several_turns_are_not_for_one_reply(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the layout is unknown"):
        bfcl(tmp_path, [QUESTION | {"question": [[], []]}], [GOLD], "BFCL_v4_multiple", "multiple")


# Right answers and rows of each category.
COUNTS = {
    "simple_python": (3, 4),
    "multiple": (1, 2),
    "parallel": (1, 3),
    "parallel_multiple": (0, 2),
    "irrelevance": (4, 5),
    "live_simple": (5, 6),
    "live_multiple": (7, 20),
    "live_parallel": (1, 2),
    "live_parallel_multiple": (0, 1),
    "live_irrelevance": (3, 10),
    "live_relevance": (1, 4),
}


# The decimals are what the functions of bfcl-eval 2026.3.23 give for these counts (eval_runner_helper:
# calculate_unweighted_accuracy, calculate_weighted_accuracy for live, calculate_percentage_weighted_accuracy with
# 10 for each of the three), called as its generate_leaderboard_csv does for the categories that are here.
# By hand: non-live (3/4 + 1/2 + 1/3 + 0) / 4 = 19/48, live 13/29, irrelevance (4/5 + 3/10) / 2 = 11/20.
@pytest.mark.parametrize(
    ("config", "official"),
    [("all", 0.5979166666666667), ("live", 0.3741379310344828), ("single_turn", 0.4647030651340996)],
)
def test_the_official_number_is_that_of_the_leaderboard(config: str, official: float, tmp_path: Path) -> None:
    rows = []
    for category in catalog()["bfcl"].config(config).parts:
        (example,) = bfcl(tmp_path / category, [QUESTION], [GOLD], f"BFCL_v4_{category}", category)
        right, of = COUNTS[category]
        rows += [make_row(float(place < right), metadata=example["meta"]) for place in range(of)]
    assert OfficialScore().compute(rows) == {"official_score": pytest.approx(official, abs=1e-12)}


def test_relevance_alone_has_no_official_number(tmp_path: Path) -> None:
    (example,) = bfcl(tmp_path, [QUESTION], [], "BFCL_v4_live_relevance", "live_relevance")
    assert OfficialScore().compute([make_row(1.0, metadata=example["meta"])]) == {}


def test_every_category_is_part_of_the_whole() -> None:
    card = catalog()["bfcl"]
    assert card.config("all").size == 1240
    assert card.config("live").size == 258 + 1053 + 16 + 24 + 884 + 16
    assert card.config("single_turn").size == 1240 + 2251
    assert card.config("single_turn").parts == card.config("all").parts + card.config("live").parts
    assert {*COUNTS} == {*card.config("single_turn").parts} == {*card.configs} - {"all", "live", "single_turn"}


def test_a_record_of_apigen(tmp_path: Path) -> None:
    assert {*XLAM} == {*catalog()["apigen"].columns["hub"]}
    (example,) = load_case(APIGEN, tmp_path)
    assert prompt_of(example).count(APIGEN.asks[0]) == 1
    assert primary("apigen", example, APIGEN.right) == 1.0
    assert primary("apigen", example, APIGEN.wrong) == 0.0
    parameters = example["tools"][0]["function"]["parameters"]
    assert parameters["required"] == ["a", "b"]
    assert parameters["properties"] == {
        "a": {"type": "integer", "description": "One."},
        "b": {"type": "number", "description": "Other."},
        "c": {"type": "array", "description": "Notes.", "items": {"type": "string"}},
        "d": {"type": "object", "description": "More.", "default": {}},
    }
    assert needed_columns(APIGEN, tmp_path) == APIGEN.needs


def first_accepted(accepted: Any) -> Any:
    """The first value that the gold allows; nested objects have lists of their own."""
    value = next((each for each in accepted if each != ""), "") if isinstance(accepted, list) else accepted
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: first_accepted(each) for key, each in value.items() if each != [""]}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def gold_calls(example: Example) -> list[dict[str, Any]]:
    calls = []
    for wanted in example["ground_truth"]:
        for name, parameters in wanted.items():
            required = next(
                tool["function"]["parameters"].get("required", [])
                for tool in example["tools"]
                if tool["function"]["name"] == name.replace(".", "_")
            )
            given = {
                key: first_accepted(values) for key, values in parameters.items() if "" not in values or key in required
            }
            calls.append({"function": {"name": name.replace(".", "_"), "arguments": json.dumps(given)}})
    return calls


def test_real_bfcl() -> None:
    examples = list(load("bfcl", data_dir=real("bfcl", "BFCL_v4_simple_python.json")))
    assert len(examples) == len({each["id"] for each in examples}) == 1240
    counts = [each["meta"]["category"] for each in examples]
    assert {each: counts.count(each) for each in counts} == {
        "simple_python": 400,
        "multiple": 200,
        "parallel": 200,
        "parallel_multiple": 200,
        "irrelevance": 240,
    }
    judge = registry.get("evaluator", "tool-call-match")()
    failed = []
    for each in examples:
        assert each["question"].strip()
        processed = {"tool_calls": gold_calls(each), "response": ""}
        if judge.score(each, processed)["tool_call_match"] != 1.0:
            failed.append(each["id"])
    assert failed == []  # every gold can be reached


def test_real_schemas_are_json_schema() -> None:
    kinds = {"string", "integer", "number", "boolean", "array", "object", None}

    def check(schema: dict[str, Any]) -> None:
        assert schema.get("type") in kinds
        assert "items" in schema or schema.get("type") != "array"
        for inner in [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]:
            check(inner)

    for each in load("bfcl", data_dir=real("bfcl", "BFCL_v4_simple_python.json")):
        for tool in each["tools"]:
            assert "." not in tool["function"]["name"]
            check(tool["function"]["parameters"])


def test_what_the_reader_put_together_can_be_kept(tmp_path: Path) -> None:
    joined = bfcl(tmp_path / "raw", [QUESTION], [GOLD], "BFCL_v4_simple_python", "simple_python")
    write_file(tmp_path / "kept" / "bfcl" / "simple_python" / "test.jsonl", [QUESTION | GOLD])
    assert list(load("bfcl", "simple_python", data_dir=tmp_path / "kept")) == joined
