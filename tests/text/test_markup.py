"""What is left of a reply when its reasoning and its markup are taken away."""

from __future__ import annotations

import pytest

from context_bench.text.markup import Part, cut_sentence_around, list_readable_parts, read_answer_text, remove_markup


@pytest.mark.parametrize(
    ("reply", "parts"),
    [
        ("Paris", [Part("Paris", True)]),
        ("<think>hm</think>Paris", [Part("Paris", True)]),
        ("<THINK>hm</THINK>\nParis", [Part("Paris", True)]),
        ("hm</think>Paris", [Part("Paris", True)]),
        ("<think>hm</think>", [Part("hm", True)]),
        ("<think>hm", [Part("hm", False)]),
        ("Paris\n<think>hm", [Part("Paris", True), Part("hm", False)]),
        ("", [Part("", True)]),
        ("a < b and <thinker>", [Part("a < b and <thinker>", True)]),
    ],
)
def test_reading_order(reply: str, parts: list[Part]) -> None:
    assert list_readable_parts(reply) == parts
    assert read_answer_text(reply) == parts[0].text


@pytest.mark.parametrize(
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
