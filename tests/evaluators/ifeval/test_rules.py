"""Every IFEval instruction with replies that follow it and replies that do not, and a second, plain implementation."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.errors import DataError
from context_bench.evaluators import IFEvalChecker
from context_bench.evaluators.ifeval import RULES, list_checks

DATA = os.environ.get("CONTEXT_BENCH_DATA")

# instruction, arguments, a reply that follows, a reply that does not
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["cat", "dog"]}, "Cats and DOGS.", "Cats only."),
    ("keywords:existence", {"keywords": "hello"}, "well, Hello", "help"),
    ("keywords:existence", {"keywords": ["C++"]}, "I like C++.", "I like C."),
    ("keywords:forbidden_words", {"forbidden_words": ["cat"]}, "Concatenate.", "A Cat."),
    ("keywords:frequency", {"keyword": "oak", "frequency": 2, "relation": "at least"}, "Oak, soaked.", "An oak."),
    ("keywords:frequency", {"keyword": "oak", "frequency": 2, "relation": "less than"}, "An oak.", "oak oak"),
    ("keywords:letter_frequency", {"letter": "e", "let_frequency": 3, "let_relation": "at least"}, "Eee", "ee"),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "at least"}, "# and #", "# only"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "well-known fact", "don't"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "two words", "now three words"),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "at least"},
        "One. Two.",
        "Mr. Smith left.",
    ),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "Pi is 3.14.", "One! Two?"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo", "one\n\ntwo"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\none\n***\ntwo\n***", "one *** *** two"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Elm"},
        'one\n\n"elm, a tree',
        "elm\n\noak",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "elm"},
        "Elm's tree",
        "\n\nelm",  # the blank paragraph takes the first place
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[name] of [place]", "[name\nof place]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\np. s. one more", "Bye. PS one more"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye.\nP.P.S. more", "P.S. more"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* one\n  - two", "* one\n- two\n- three"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "**bold**\n* one", "**bold**\n"),
    ("detectable_format:constrained_response", {}, "Well: My answer is maybe.", "My answer is: yes."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and *b*", "*a* and * *"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 1}, "**bold**", "** **"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Day", "num_sections": 2},
        "Day 1\nx\nDay2\ny",
        "Day 1 Day x",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": [1, 2]}\n```', 'Here: {"a": 1}'),
    ("detectable_format:json_format", {}, "[1]", "[" * 100_000),
    ("detectable_format:title", {}, "<<a title>>\ntext", "<<>>\n<< >>\n<<\n>>"),
    ("detectable_format:title", {}, "<<<<a>>", "<<a\nb>>"),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\none"),
    ("combination:two_responses", {}, "******one******two******", "one******two******three"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Do this. "}, " do THIS. Fine.", "Sure: Do this."),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, 'So. "any questions?" ', "Any questions? No."),
    ("startend:quotation", {}, ' "all of it" ', '"part" of it'),
    ("startend:quotation", {}, '""', '"'),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 3, "capital_relation": "at least"},
        "DON'T GO",
        "DO go",
    ),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "less than"}, "I go", "I GO"),
    ("punctuation:no_comma", {}, "no; none", "one, two"),
]
IN_LANGUAGES: list[tuple[str, dict[str, Any], str, str]] = [
    ("change_case:english_capital", {}, "THIS IS A LONG SENTENCE IN ENGLISH.", "THIS IS A LONG SENTENCE IN English."),
    ("change_case:english_capital", {}, "THE WEATHER IS FINE TODAY.", "DAS WETTER IST HEUTE WIRKLICH SEHR SCHÖN."),
    ("change_case:english_lowercase", {}, "this is a long sentence in english.", "This is a long sentence."),
    ("language:response_language", {"language": "de"}, "Das ist ein ganz einfacher Satz.", "This is a plain sentence."),
    (
        "language:response_language",
        {"language": "hi"},
        "यह हिन्दी में लिखा हुआ वाक्य है।",
        "हे वाक्य मराठीत लिहिलेले आहे आणि छान आहे.",
    ),
    (
        "language:response_language",
        {"language": "ko"},
        "12345",
        "plain English words here",
    ),  # nothing to detect: passes
]


def follows(name: str, arguments: dict[str, Any], reply: str) -> float:
    example = {"instruction_id_list": [name], "kwargs": [arguments]}
    return IFEvalChecker().score(example, {"response": reply})["ifeval_strict"]


@each_case(("name", "arguments", "good", "bad"), CASES, ids=range(len(CASES)))
def test_instruction(name: str, arguments: dict[str, Any], good: str, bad: str) -> None:
    assert follows(name, arguments, good) == 1.0
    assert follows(name, arguments, bad) == 0.0
    assert follows(name, arguments, " \n ") == 0.0


@pytest.mark.parametrize(("name", "arguments", "good", "bad"), IN_LANGUAGES, ids=range(len(IN_LANGUAGES)))
def test_language(name: str, arguments: dict[str, Any], good: str, bad: str) -> None:
    pytest.importorskip("langdetect")
    assert follows(name, arguments, good) == 1.0
    assert follows(name, arguments, bad) == 0.0
    assert follows(name, arguments, " \n ") == 0.0


def test_every_instruction_has_cases() -> None:
    assert len(RULES) == 25
    assert {name for name, *_ in CASES + IN_LANGUAGES} == set(RULES)


def test_a_verdict_on_language_does_not_change_from_call_to_call() -> None:
    pytest.importorskip("langdetect")
    shortest = "ok no"
    assert len({follows("language:response_language", {"language": "en"}, shortest) for _ in range(20)}) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("no:such_thing", {}, "no:such_thing"),
        ("keywords:existence", {}, "needs 'keywords'"),
        ("keywords:existence", {"keywords": None}, "needs 'keywords'"),
        ("keywords:existence", {"keywords": []}, "needs 'keywords'"),
        ("length_constraints:number_words", {"num_words": 3, "relation": "at most"}, "at most"),
        ("length_constraints:number_words", {"num_words": "three", "relation": "at least"}, "wrong type"),
    ],
)
def test_a_bad_instruction_is_an_error_that_names_it(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        follows(name, arguments, "some reply")


def test_kwargs_of_another_length_are_an_error() -> None:
    with pytest.raises(DataError, match="2 IFEval instructions, but 1 kwargs"):
        list_checks({"instruction_id_list": ["punctuation:no_comma"] * 2, "kwargs": [{}]})


# --- the count-type rules a second time: as the benchmark words them, with nothing taken from the package

COUNTS: dict[str, Callable[[str, dict[str, Any]], int]] = {
    "keywords:frequency": lambda reply, given: len(re.findall(given["keyword"].strip(), reply, flags=re.IGNORECASE)),
    "keywords:letter_frequency": lambda reply, given: list(reply.lower()).count(given["letter"].lower()),
    "length_constraints:number_words": lambda reply, given: len(re.compile(r"\w+").findall(reply)),
    "detectable_content:number_placeholders": lambda reply, given: len(re.findall(r"\[.*?\]", reply)),
    "detectable_format:number_bullet_lists": lambda reply, given: (
        len(re.findall(r"^\s*\*[^\*].*$", reply, flags=re.MULTILINE))
        + len(re.findall(r"^\s*-.*$", reply, flags=re.MULTILINE))
    ),
    "detectable_format:multiple_sections": lambda reply, given: (
        len(re.split(r"\s?" + given["section_spliter"] + r"\s?\d+\s?", reply)) - 1
    ),
    "detectable_format:number_highlighted_sections": lambda reply, given: (
        sum(1 for each in re.findall(r"\*[^\n\*]*\*", reply) if each.strip("*").strip())
        + sum(1 for each in re.findall(r"\*\*[^\n\*]*\*\*", reply) if each[2:-2].strip())
    ),
    "detectable_format:title": lambda reply, given: sum(
        1 for each in re.findall(r"<<[^\n]+>>", reply) if each.lstrip("<").rstrip(">").strip()
    ),
}
WANTED = {
    "keywords:frequency": ("relation", "frequency"),
    "keywords:letter_frequency": ("let_relation", "let_frequency"),
    "length_constraints:number_words": ("relation", "num_words"),
    "detectable_content:number_placeholders": ("at least", "num_placeholders"),
    "detectable_format:number_bullet_lists": ("exactly", "num_bullets"),
    "detectable_format:multiple_sections": ("at least", "num_sections"),
    "detectable_format:number_highlighted_sections": ("at least", "num_highlights"),
    "detectable_format:title": ("at least", ""),
}


def expected(name: str, given: dict[str, Any], reply: str) -> float:
    relation, number = WANTED[name]
    count, threshold = COUNTS[name](reply, given), given.get(number, 1)
    by_relation = {"at least": count >= threshold, "less than": count < threshold, "exactly": count == threshold}
    return float(bool(reply.strip()) and by_relation[given.get(relation, relation)])


PIECES = ("* one\n", "- two\n", "**bold** text ", "*x*", "\n", "[name] ", "[", "<<title>> ", "<<", ">>",
          "Section 1\n", "SECTION2 ", "the quick fox ", "q#!q ", "Day 3", "  ", "***", "\t* tab\n", "*\n",
          "*\n* after\n", "P.S. ", "[a\nb]")  # fmt: skip


def replies() -> list[str]:
    import random

    draw = random.Random(7)
    return ["".join(draw.choice(PIECES) for _ in range(draw.randint(1, 40))) for _ in range(60)]


def instructions() -> list[tuple[str, dict[str, Any]]]:
    found = []
    with (Path(str(DATA)) / "ifeval" / "input_data.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            found += [pair for pair in zip(record["instruction_id_list"], record["kwargs"]) if pair[0] in COUNTS]
    return found


@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_counts_agree_with_the_plain_implementation() -> None:
    asked = instructions()
    assert {name for name, _ in asked} == set(COUNTS)
    for name, given in asked:
        for reply in replies()[::3]:
            assert follows(name, given, reply) == expected(name, given, reply), (name, given, reply)


@pytest.mark.long
@pytest.mark.parametrize("piece", ["*", "\n", "[", "<", "<<", "{", ". ", "!", "-", "\n* x", "'"])
def test_a_reply_of_repetition_is_read_in_linear_time(piece: str) -> None:
    started = time.process_time()  # of this process alone: the machine may be busy
    for name, arguments, *_ in CASES:
        follows(name, arguments, piece * (30_000 // len(piece)))
    assert time.process_time() - started < 12
