"""Documents as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path

from command import shell
from context_bench.cli.output import format_json, shorten_texts
from terminal import on_terminal


def test_long_texts_are_cut_in_their_middle() -> None:
    assert shorten_texts({"a": ["abcdefghij", 5]}, 4) == {"a": ["ab [... 6 characters ...] ij", 5]}
    assert shorten_texts(["x" * 99], None) == ["x" * 99]


def test_without_a_width_it_is_json() -> None:
    document = {"text": "word " * 100, "list": [1, {"deep": "漢字"}]}
    assert json.loads(format_json(document, longest=None, width=None)) == document


def test_on_a_terminal_a_long_line_goes_on_below_its_key() -> None:
    lines = format_json([{"text": "word " * 10}], longest=None, width=30).splitlines()
    assert lines == [
        "[",
        "  {",
        '    "text": "word word word',
        "      word word word word word",
        '      word word "',
        "  }",
        "]",
    ]


def test_a_dataset_is_shown_without_breaking_words(tmp_path: Path) -> None:
    shown = on_terminal("datasets", "show", "needle:length=400,n=1", cwd=tmp_path)
    piped = shell("datasets", "show", "needle:length=400,n=1", cwd=tmp_path).stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert max(map(len, piped.splitlines())) > 200
    assert shown.split() == piped.split()
