"""Minify: layout goes, content stays."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from banks import each_case
from context_bench.systems import Minify
from context_bench.systems.reference import minify


@each_case(
    ("text", "compact"),
    [
        ('{ "a" : 1 ,\n "b": [ 1, 2 ] }', '{"a":1,"b":[1,2]}'),
        ("[1.0, 1e5, 1E+05, -0, 0.10, 12345678901234567890.123]", "[1.0,1e5,1E+05,-0,0.10,12345678901234567890.123]"),
        ("[10000000000000000000000001]", "[10000000000000000000000001]"),
        ("[NaN, -Infinity]", "[NaN,-Infinity]"),
        ('{"z": 1, "a": 2}', '{"z":1,"a":2}'),
        ('{"a": 1, "a": 2}', '{"a":1,"a":2}'),
        ('{"text": "two  spaces\\n  kept"}', '{"text":"two  spaces\\n  kept"}'),
        ('["\\u00e9", "\\u6771"]', '["é","東"]'),
        ("[true, false, null]", "[true,false,null]"),
        ('{"1": 1, "1.0": "1.0"}', '{"1":1,"1.0":"1.0"}'),
        ("{}", "{}"),
        (" [ ] ", "[]"),
    ],
)
def test_json_without_layout(text: str, compact: str) -> None:
    assert minify(text) == compact


def _random_json(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(7 if depth < 4 else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.randint(-(10**20), 10**20)
    if kind == 2:
        return rng.uniform(-1e6, 1e6)
    if kind in (3, 4):
        return "".join(rng.choices('ab  \n\t"\\/é東\u2028\x00\x7f{}[],:', k=rng.randint(0, 12)))
    if kind == 5:
        return [_random_json(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return {f"k {rng.randrange(100)}": _random_json(rng, depth + 1) for _ in range(rng.randint(0, 4))}


def test_the_values_of_random_documents_are_unchanged() -> None:
    rng = random.Random(0)
    for _ in range(500):
        value = [_random_json(rng)]
        for text in (json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
            assert json.loads(minify(text)) == value
            assert len(minify(text)) <= len(text)


def test_json_lines_keep_their_values_and_their_lines() -> None:
    records = [{"a": "two  spaces", "n": 1.0}, {"a": "x", "n": 2}]
    text = "\n".join(json.dumps(record) for record in records)
    assert [json.loads(line) for line in minify(text).splitlines()] == records
    assert minify(text) == '{"a":"two  spaces","n":1.0}\n{"a":"x","n":2}'


def test_a_string_that_utf8_cannot_hold_stays_escaped() -> None:
    assert minify('["\\ud800"]').encode("utf-8") == b'["\\ud800"]'


@pytest.mark.parametrize(
    ("text", "squeezed"),
    [
        ("one   two\t\tthree", "one two three"),
        ("end   \nnext\t\n", "end\nnext"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("def f():\n    if x:\n        return  1\n", "def f():\n    if x:\n        return 1"),
        ("  padded  ", "  padded"),
        ("", ""),
        ("{not json   at all", "{not json at all"),
        ("[1, 2", "[1, 2"),
    ],
)
def test_other_text_loses_spaces_but_no_indentation_and_no_word(text: str, squeezed: str) -> None:
    assert minify(text) == squeezed
    assert minify(text).split() == text.split()


def test_the_first_line_keeps_its_indentation_too() -> None:
    code = "    a = 1\n    b = 2"
    assert minify(code) == code
    assert minify(" \n\n" + code + "\n\n") == code


def test_hostile_texts_take_linear_time() -> None:
    started = time.process_time()
    for text in (
        " " * 200_000 + "x",
        "x" + " \t" * 100_000 + "\x0b",
        "[" * 200_000,
        "\n" * 200_000,
        "{" + " " * 200_000,
    ):
        minify(text)
    assert time.process_time() - started < 5


def test_the_system_returns_the_context_alone() -> None:
    assert Minify().process({"id": 1, "context": "[ 1 ]", "question": "q"}) == {"context": "[1]"}


def test_minifying_twice_changes_nothing_more() -> None:
    for text in ("a   b\n\n\n\nc  ", '{"a" : [1 , 2]}', "  x"):
        assert minify(minify(text)) == minify(text)
