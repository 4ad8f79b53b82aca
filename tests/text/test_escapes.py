"""Escapes: undone layer by layer, and never in much time."""

from __future__ import annotations

import html
import json
import time

import pytest

from context_bench.text.words import undo_escapes, undo_html, undo_json

TEXT = 'a "quote", a \\ back\\slash,\n\ta line, <b> & é 🍕'


def test_json_is_undone_layer_by_layer() -> None:
    once, twice = json.dumps(TEXT)[1:-1], json.dumps(json.dumps(TEXT)[1:-1])[1:-1]
    assert undo_json(once) == TEXT
    assert undo_json(undo_json(twice)) == TEXT
    assert undo_escapes(twice)[2] == TEXT


def test_html_is_undone_also_when_it_was_escaped_twice() -> None:
    assert undo_html(html.escape(TEXT)) == TEXT
    assert undo_html(html.escape(html.escape(TEXT))) == TEXT
    assert undo_html("?a=1&copy=2 &unknown; AT&T") == "?a=1&copy=2 &unknown; AT&T"


def test_every_layer_is_there() -> None:
    assert undo_escapes("plain") == ["plain"]
    assert undo_escapes(r"a\nb &amp;lt;") == [r"a\nb <", "a\nb <"]
    assert undo_escapes(r"\ud83c\udf55 \ud83c") == [r"\ud83c\udf55 \ud83c", "🍕 \ufffd"]
    assert undo_escapes(r"C\+\+ \- x") == [r"C\+\+ \- x", "C++ - x"]
    assert len(undo_escapes("\\" * 50)) == 3


@pytest.mark.parametrize("piece", ["\\", "&", "&amp;", "&#", r"\u", r"\ud800", "&a"])
def test_hostile_texts_take_no_time_to_speak_of(piece: str) -> None:
    started = time.process_time()
    undo_escapes(piece * 100_000)
    assert time.process_time() - started < 3.0
