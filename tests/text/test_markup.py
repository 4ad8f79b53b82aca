"""What is left of a reply when its markup is taken away."""

from __future__ import annotations

import pytest

from banks import each_case
from context_bench.text.golds import cut_sentence_around, remove_markup


@each_case(
    ("text", "expected"),
    [
        ("**Paris** is `big`", "Paris is big"),
        ("# Title", "Title"),
        (r"\boxed{\text{B}}", "answer: B"),
        (r"\boxed{\frac{1}{2}}", r"answer: \frac{1}{2}"),
        ("<answer> B </answer>", "answer: B"),
        ("**B**", "«B»"),
        ("**B. Paris**", "«B». Paris"),
        ("snake_case_name", "snake_case_name"),
        ("$x$", "x"),
        ("it’s “so”", 'it\'s "so"'),
        ("<b>x</b>", "x"),
        ("1 < 2", "1 < 2"),
    ],
)
def test_plain(text: str, expected: str) -> None:
    assert remove_markup(text).strip() == expected


def test_sentence_around() -> None:
    text = "One. Is it two? Three\nfour"
    assert cut_sentence_around(text, 11, 14) == " Is it two?"
    assert cut_sentence_around(text, 16, 21) == " Three\n"
    assert cut_sentence_around(text, 22, 26) == "four"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$20\%$", "20%"),
        (r"$240\ \text{N}$", "240 N"),
        (r"$10\,g$", "10 g"),
        ("$1{,}500$", "1,500"),
        ("a {b} c", "a {b} c"),
    ],
)
def test_spaces_and_signs_of_latex_become_plain_ones(text: str, expected: str) -> None:
    assert remove_markup(text) == expected
