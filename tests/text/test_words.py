"""Words: plain ones for retrieval, and those that keep the signs which change their meaning, for comparison."""

from __future__ import annotations

import random
import string
import time

import pytest

from banks import each_case
from context_bench.text import words
from context_bench.text.words import normalise, split_in_pieces, split_words


def found(span: str, text: str) -> bool:
    return normalise(span) in normalise(text)


def test_plain_words_know_no_signs() -> None:
    assert split_words("C++ is -5, x_y Straße.") == ["c", "is", "5", "x", "y", "strasse"]


@pytest.mark.parametrize("signs", [string.printable, string.printable + "éßשł\u0301\u00a0\u200b日本กำ🎉\x85"])
def test_the_fast_way_for_plain_letters_finds_the_same_words(signs: str) -> None:
    draw = random.Random(1)
    for _ in range(300):
        text = "".join(draw.choices(signs, k=200))
        assert split_words(text) == words._WORD.findall(text.casefold())


@each_case(
    ("one", "other"),
    [
        ("-5", "5"),
        ("\u22125", "5"),
        ("-0.5", "0.5"),
        ("-$5", "$5"),
        ("3.14", "314"),
        ("3.14", "3 14"),
        ("1.5", "15"),
        ("1.5", "5"),
        ("1.5", "1"),
        ("1.5", "1.55"),
        ("v2.0.1", "v2.0"),
        ("v2.0.1", "v201"),
        ("10.0.0.1", "10.0.0"),
        ("1e-5", "1e5"),
        ("1e-5", "1e+5"),
        ("C++", "C"),
        ("C#", "C"),
        ("F#", "F"),
        ("C#", "C++"),
        ("A+", "A"),
        (".NET", "net"),
        ("1,000", "1"),
        ("1,000", "000"),
        ("2,500,000", "500"),
    ],
)
def test_a_sign_that_changes_the_meaning_makes_another_word(one: str, other: str) -> None:
    for text in ("it is {} now", "({})", "{}", '{{"key":{}}}', "**{}**", "{}.", "x: {}, y"):
        assert found(one, text.format(one))
        assert found(other, text.format(other))
        assert not found(one, text.format(other))
        assert not found(other, text.format(one))


@pytest.mark.parametrize(("with_unit", "number"), [("5%", "5"), ("$5", "5"), ("5 €", "5"), ("£1,000", "1000")])
def test_a_unit_is_a_word_beside_its_number(with_unit: str, number: str) -> None:
    assert found(number, f"about {with_unit} more")
    assert not found(with_unit, f"about {number} more")


@each_case(
    "alike",
    [
        ("1,000", "1000"),
        ("1,234,567.50", "1234567.50"),
        ("5%", "5 %", "5\u00a0%"),
        ("$5", "$ 5"),
        ("-$5", "$-5", "\u2212$5"),
        ("5€", "5 €"),
        (".5", "0.5"),
        ("-.5", "-0.5"),
        ("-5", "\u22125", "\u20135"),
        ("1e5", "1e+5", "1E5"),
        ("C++17", "c++ 17", "**C++** 17"),
        ("C#12", "C# 12", "`C#` 12"),
        ("[85,120]", "[85, 120]", "85  120"),
        ("x,85,120,y", "x, 85, 120, y", "x | 85 | 120 | y"),
        ('{"a":1.5,"b":-2}', '{\n  "a": 1.5,\n  "b": -2\n}', "a: 1.5\nb: -2"),
        ("X-42", "x 42", "X_42"),
        ("pages 3-5", "pages 3\u20135", "Pages 3 - 5"),
        ("5%-10%", "5% - 10%"),
        ("2024-01-05", "2024 01 05"),
        ("- 5 apples", "* 5 apples", "5 apples"),
        ("x+y", "x + y"),
        ("f(x)-5", "f(x) - 5"),
        ("foo.bar(1)", "foo\n    .bar(1)"),
        ("It ended. Then", "it ended .. then", "“It ended” then"),
        ("1. Rome", "1) Rome", "**1.** Rome"),
        ("in 2019.", "in 2019", "in 2019,"),
        ("--5", "5"),
        ("a...5", "a 5"),
        ("tag#part", "tag part"),
        ("100%d", "100 d"),
    ],
)
def test_layout_case_and_punctuation_do_not_matter(alike: tuple[str, ...]) -> None:
    forms = {normalise(text) for text in alike}
    assert len(forms) == 1, forms


def test_a_minus_after_an_escaped_line_break_is_one() -> None:
    assert found("-5", r"{\"a\":\n-5}")
    assert not found("5", r"{\"a\":\n-5}")


def test_a_minus_after_a_script_without_spaces_is_one() -> None:
    assert found("-5", "气温-5度")
    assert not found("5", "气温-5度")


def test_a_dash_before_a_number_of_a_list_of_numbers_is_a_minus_only_when_it_touches() -> None:
    assert normalise("- 5\n- 6") == normalise("5 6")
    assert normalise("-5\n-6") != normalise("5 6")


@each_case("piece", [" ", "-", ".", ",", "1,000", "1.", "-1", "+", "#", "$", "%", "a+", "1e-", ".a", "5 %"])
def test_hostile_texts_take_no_time_to_speak_of(piece: str) -> None:
    started = time.process_time()
    normalise(piece * 100_000)
    assert time.process_time() - started < 3.0


def test_a_hyphen_of_a_word_processor_is_a_minus_before_a_number() -> None:
    assert normalise("it is \u20115 degrees") == normalise("it is -5 degrees") == normalise("it is \u22125 degrees")
    assert normalise("it is \u20115 degrees") != normalise("it is 5 degrees")


def test_a_long_text_is_normalised_as_one_piece() -> None:
    lines = ["Costs rose -5 % to $ 1,000.5 in C++ code;", "see .NET 2.0.1 and", "5", "€ per unit", "AND SO ON"]
    chosen = [lines[i * i % 5] for i in range(20_000)]
    text = " alpha beta ".join(chosen)
    assert len(text) > 400_000  # so that it is taken in pieces
    assert normalise(text) == f" {' alpha beta '.join(normalise(each).strip() for each in chosen)} "


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox, jumps over 2 dogs. " * 5_000,
        "Zeile für Zeile\nund noch eine. " * 5_000,
        "東京都は日本の首都です" * 20_000,
        "a" * 300_000,
        "",
    ],
)
def test_in_pieces_a_text_has_the_same_words(text: str) -> None:
    pieces = list(split_in_pieces(text))
    assert [word for piece in pieces for word in piece] == split_words(text)
    assert (len(pieces) > 1) == (len(set(text)) > 1)  # one long word cannot be cut
