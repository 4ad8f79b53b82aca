"""Numbers in words; the values are read off by hand."""

from __future__ import annotations

import pytest

from banks import each_case
from context_bench.evaluators.math.notation import (
    find_spelled_numbers,
    read_cjk_numerals,
    read_spelled_number,
    write_digits,
)


@each_case(
    ("text", "digits"),
    [
        ("zero", ["0"]),
        ("forty-two loaves", ["42"]),
        ("three hundred and fifty people", ["350"]),
        ("Twelve hundred", ["1200"]),
        ("one million two hundred thousand and five", ["1200005"]),
        ("two dozen eggs", ["24"]),
        ("a hundred", ["100"]),
        ("minus two", ["-2"]),
        ("five minus two", ["5", "2"]),
        ("two thirds", ["2/3"]),
        ("two and a half", ["2 1/2"]),
        ("two, three", ["2", "3"]),
        ("two three", []),
        ("twenty twenty", []),
        ("someone, often, tense", []),
    ],
)
def test_english(text: str, digits: list[str]) -> None:
    assert [spelled.digits for spelled in find_spelled_numbers(text)] == digits


def test_a_single_word_is_told_from_more() -> None:
    assert [spelled.compound for spelled in find_spelled_numbers("seven, forty-two, minus five")] == [False, True, True]


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("zwölf", "12"),
        ("vingt", "20"),
        ("dix-sept", "17"),
        ("noventa", "90"),
        ("девять", "9"),
        ("九", "9"),
        ("seven marbles", "7"),
        ("the seven", None),
        ("marbles", None),
    ],
)
def test_one_number(text: str, digits: str | None) -> None:
    assert read_spelled_number(text) == digits


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("一共有十八个苹果", "一共有18个苹果"),
        ("三百五十", "350"),
        ("一万二千", "12000"),
        ("百分之二十", "20%"),
        ("一千零五", "1005"),
        ("万一", "万一"),
        ("十分", "十分"),
        ("二〇二四", "二〇二四"),
    ],
)
def test_chinese_numerals_of_two_and_more_characters(text: str, digits: str) -> None:
    assert read_cjk_numerals(text) == digits


def test_digits_in_the_place_of_words() -> None:
    assert write_digits("from twelve to forty-two eggs") == "from 12 to 42 eggs"
