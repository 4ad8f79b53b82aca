"""Arguments against accepted values, by the rules of bfcl-eval 2026.3.23; each verdict was taken from its checker."""

from __future__ import annotations

from typing import Any

from banks import each_case
from context_bench.evaluators import ToolCallMatch
from context_bench.evaluators.tool_call import matches_value


def array(item: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": item}}


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


@each_case(
    ("given", "accepted", "schema", "expected"),
    [
        # texts: loosely where a text is declared, to the letter where it stands for another type
        ("DONTCARE", ["dontcare"], STRING, True),
        ("New-York", ["new york"], STRING, True),
        ("DONTCARE", ["dontcare"], INTEGER, False),
        ("dontcare", ["dontcare"], INTEGER, True),
        ("DONTCARE", ["dontcare", 5], NUMBER, False),
        # ints and floats
        (5, [5.0], NUMBER, True),
        (5.0, [5], NUMBER, True),
        (5.0, [5], INTEGER, False),
        (True, [1], INTEGER, False),
        # lists: floats for ints where numbers are declared, no ints for floats
        ([1.0, 2.0], [[1, 2]], array("number"), True),
        ([1, 2], [[1, 2]], array("number"), True),
        ([1, 2], [[1.0, 2.0]], array("number"), False),
        ([1.0, 2.0], [[1, 2]], array("integer"), False),
        (["A b"], [["ab"]], array("string"), True),
        ([1], [["1"]], array("integer"), False),
        ([], [""], array("integer"), True),
        # objects
        ({"a": 5.0}, [{"a": [5]}], {"type": "object"}, True),
        ({"a": "X"}, [{"a": ["x"], "b": ["", 1]}], {"type": "object"}, True),
        ({"b": 1}, [{"a": ["x"], "b": ["", 1]}], {"type": "object"}, False),
        ([{"a": "X"}], [[{"a": ["x"]}]], array("object"), True),
        ([{"a": "X"}, {"a": "X"}], [[{"a": ["x"]}]], array("object"), False),
        # no declared type: that of the accepted value
        ([1, 2], [[1.0, 2.0]], None, True),
        ([1.0], [[1]], {}, False),
    ],
)
def test_values(given: Any, accepted: list[Any], schema: Any, expected: bool) -> None:
    assert matches_value(given, accepted, schema) is expected


def test_the_declared_types_of_an_example_count() -> None:
    properties = {"x": array("number"), "when": INTEGER}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": properties, "required": ["x"]}}}
    example = {"ground_truth": [{"f": {"x": [[1.0]], "when": ["dontcare", ""], "y": [1, ""]}}], "tools": [tool]}

    def match(response: str) -> float:
        return ToolCallMatch().score(example, {"response": response})["tool_call_match"]

    assert match("f(x=[1.0], when='dontcare')") == 1.0
    assert match("f(x=[1])") == 0.0
    assert match("f(x=[1.0], when='DONTCARE')") == 0.0
    assert match("f(x=[1.0], y=1)") == 0.0  # accepted by the gold, but not declared
