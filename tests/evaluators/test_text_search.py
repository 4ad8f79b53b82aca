"""TextSearch: spans in the texts that a model got to read, whatever escapes they are in, and which texts those are."""

from __future__ import annotations

import html
import json
import os
import random
from typing import Any

import pytest

from banks import each_case
from context_bench import evaluate
from context_bench.datasets.open import Choices, open_datasets
from context_bench.datasets.synthetic import json_logs, kv, multi_needle, needle, rerank, tracking
from context_bench.evaluators import ContextRecall, EvidenceSurvival
from context_bench.evaluators.text_search import TextSearch, read_sent_texts
from context_bench.systems.reference import ClosedBook, Minify, Oracle, Passthrough

SPAN = 'Ann said: "it\'s <b>-5.5</b> & more", à Paris\nin C++ 🍕.'


def find(span: str, *texts: str, **original: Any) -> bool:
    return TextSearch(texts, original).find_state(span) == "verbatim"


# --- escapes


once = json.dumps

ESCAPES = {
    "JSON": once,
    "JSON in JSON": lambda text: once(once(text)),
    "JSON without ASCII escapes": lambda text: json.dumps(text, ensure_ascii=False),
    "HTML": html.escape,
    "HTML twice": lambda text: html.escape(html.escape(text)),
    "HTML by number": lambda text: "".join(f"&#{ord(each)};" if not each.isalnum() else each for each in text),
    "HTML by hexadecimal": lambda text: "".join(f"&#x{ord(each):X};" if ord(each) > 127 else each for each in text),
    "HTML in JSON": lambda text: once(html.escape(text)),
    "JSON in HTML": lambda text: html.escape(once(text)),
    "JSON in JSON in HTML": lambda text: html.escape(once(once(text))),
    "JSON for the web": lambda text: once(text).replace("&", r"\u0026").replace("<", r"\u003c"),
    "HTML in JSON for the web": lambda text: once(html.escape(text)).replace("&", r"\u0026"),
    "Markdown": lambda text: "".join(f"\\{each}" if each in '"<>&+-.#' else each for each in text),
}


@each_case("escape", ESCAPES.values(), ids=ESCAPES)
def test_a_text_is_found_in_any_escapes(escape: Any) -> None:
    text = f"Before that, nothing. {SPAN} After it, little."
    assert find(SPAN, escape(text))
    assert not find(SPAN.replace("-5.5", "5.5"), escape(text))
    assert not find(SPAN.replace("-5.5", "-55"), escape(text))
    assert not find(SPAN.replace("C++", "C"), escape(text))
    assert not find(SPAN, escape(text.replace("-5.5", "5.5")))
    assert not find(SPAN, escape(text.replace("C++", "C")))
    assert find(escape(SPAN), text), "what the data escapes, a system may undo"


def test_numbers_of_escapes_are_no_words() -> None:
    assert not find("39", "it&#39;s")
    assert not find("00e9", r"caf\u00e9 x")
    assert not find("5", "x &#45;5 y")


def test_what_only_looks_like_an_escape_is_found_as_it_is() -> None:
    assert find(r"C:\new\table", r"open c:\New\table now")
    assert find("new", r"open C:\new\table now")
    assert find(r"\theta", r"\Theta is an angle")
    assert find("AT&T; fine", "at&t; fine")


def test_random_texts_are_found_in_random_escapes_and_not_without_one_word() -> None:
    draw = random.Random(7)
    pieces = [
        "-5",
        "3.14",
        "C++",
        "C#",
        "v2.0.1",
        "$12",
        "7%",
        "rome",
        "x-42",
        "été",
        "東京",
        '"q"',
        "a<b",
        "R&D",
        "1,000",
    ]
    wrappers = list(ESCAPES.values())
    for _ in range(300):
        words = [draw.choice(pieces) for _ in range(draw.randint(2, 9))]
        start = draw.randint(0, len(words) - 1)
        span = " ".join(words[start : draw.randint(start + 1, len(words))])
        escape = draw.choice(wrappers)
        assert find(span, escape(" ".join(words))), (span, words)
        without = [word for word in pieces if word not in span]
        assert not find(span, escape(" ".join(without))), (span, without)


# --- whole words


def test_a_span_counts_in_whole_words_unless_the_data_cuts_it() -> None:
    assert not find("5 degrees", "-5 degrees", context="It was 5 degrees.")
    assert not find("Rome", "Romeo", context="Rome")
    assert find("ob lives in Rom", "x Bob lives in Rome.", context="Bob lives in Rome.")
    assert not find("ob lives in Rom", "x Bob lives in Rome.")
    assert not find("ome", "Rome", context="Rome and ome"), "there it is a word of its own"


def test_a_later_place_may_be_the_good_one() -> None:
    text = "-5 and 15 and 5.5 and C5; " * 40 + "5"
    assert find("5", text)
    assert not find("5", text[:-1])


@pytest.mark.parametrize("answer", ["5", "5.0", "314", "C", "3"])
def test_an_answer_with_another_sign_is_not_in_the_context(answer: str) -> None:
    context = "It is -5, or -5.0, or 3.14, written in C++ or C#."
    original = {"context": f"{context} {answer}", "answer": answer}
    assert ContextRecall().score(original, {"context": context}) == {"answer_in_context": 0.0}


@pytest.mark.parametrize("answer", ["-5", "-5.0", "3.14", "C++", "C#"])
def test_an_answer_with_its_sign_is(answer: str) -> None:
    context = html.escape("It is '-5', or -5.0, or 3.14, written in C++ or C#.")
    original = {"context": context, "answer": answer}
    assert ContextRecall().score(original, {"context": context}) == {"answer_in_context": 1.0}
    assert ContextRecall().score(original, {"context": once(once(context))}) == {"answer_in_context": 1.0}


def test_an_answer_that_only_a_repeated_question_holds_is_not_in_the_context() -> None:
    original = {"context": "It is Oslo.", "question": "Is it Rome or Oslo?", "answer": "Oslo"}
    assert ContextRecall().score(original, {"context": f"Ann.\n\n{original['question']}"}) == {"answer_in_context": 0.0}
    assert ContextRecall().score(original, {"context": f"Oslo.\n\n{original['question']}"}) == {
        "answer_in_context": 1.0
    }


# --- conversations

TURNS = [
    {"role": "user", "content": "Read the log."},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "read", "arguments": "{}"}}]},
    {"role": "tool", "content": [{"type": "text", "text": "Bob lives in Rome. It is -5 there."}]},
    {"role": "user", "content": "Where does Bob live?"},
]
TALK = {"id": 1, "context": "", "turns": TURNS, "evidence": ["Bob lives in Rome."], "answer": "Rome"}
ALL = {"evidence_recall": 1.0, "answer_in_context": 1.0, "evidence_survived": 1.0, "evidence_verbatim": 1.0}
NONE = dict.fromkeys(ALL, 0.0)


def scores(original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
    return {**ContextRecall().score(original, processed), **EvidenceSurvival().score(original, processed)}


@pytest.mark.parametrize(
    "example",
    [
        TALK,
        {**TALK, "question": "Where does Bob live?"},
        {**TALK, "context": "something else"},
        {**TALK, "context": "Read the log.\n\nBob lives in Rome. It is -5 there."},
    ],
)
def test_the_bounds_on_a_conversation(example: dict[str, Any]) -> None:
    assert scores(example, Passthrough().process(dict(example))) == ALL
    assert scores(example, {"context": example["context"]}) == ALL, "nothing new: the conversation is sent as it is"
    assert scores(example, Oracle().process(dict(example))) == ALL
    assert scores(example, ClosedBook().process(dict(example))) == NONE


def test_what_a_system_made_of_the_turns_or_put_in_their_place_is_what_counts() -> None:
    cut = [*TURNS[:2], TURNS[3]]
    assert scores(TALK, {"context": "", "turns": cut}) == NONE
    assert scores(TALK, {"context": "Bob lives in Rome.", "turns": cut}) == NONE, "the turns are sent, not the context"
    assert scores(TALK, {"turns": [*cut, {"role": "user", "content": "Bob lives in Rome."}]}) == ALL
    assert scores(TALK, {"context": "Bob lives in Rome."}) == ALL
    assert scores(TALK, {"context": "A summary of the log."}) == NONE


def test_an_answer_alone_tells_nothing_of_what_was_read() -> None:
    assert read_sent_texts(TALK, {"response": "Rome"}) is None
    assert scores(TALK, {"response": "Rome"}) == {}


def test_a_conversation_whose_last_message_is_all_there_is() -> None:
    message = "Bob lives in Rome. Where does he live?"
    example = {**TALK, "turns": [{"role": "user", "content": message}], "question": message}
    assert scores(example, Passthrough().process(dict(example))) == ALL


def test_a_run_over_conversations() -> None:
    evaluators = [ContextRecall(), EvidenceSurvival()]
    systems = [Passthrough(), ClosedBook()]
    result = evaluate(systems, [TALK], evaluators, progress=False, score_field="evidence_recall")
    assert [row.scores.items() >= wanted.items() for row, wanted in zip(result.rows, (ALL, NONE))] == [True, True]


# --- on whole datasets


@pytest.mark.parametrize("make", [needle, multi_needle, kv, tracking, json_logs, rerank])
def test_nothing_is_lost_by_changing_nothing_or_layout_alone_and_all_by_dropping_it(make: Any) -> None:
    for example in make(n=12, length=1500):
        for system in (Passthrough(), Minify()):
            assert scores(example, system.process(dict(example))).items() >= ALL.items()
        assert scores(example, ClosedBook().process(dict(example))).items() >= NONE.items()
        packed = json.dumps(json.dumps(example["context"]))
        assert scores(example, {"context": packed}).items() >= ALL.items()


@pytest.mark.parametrize("name", ["hotpotqa", "qmsum"])
def test_real_records(name: str) -> None:
    folder = os.environ.get("CONTEXT_BENCH_DATA")
    if not folder:
        pytest.skip("CONTEXT_BENCH_DATA does not say where real records are")
    examples = list(open_datasets([name], Choices(limit=60, data_dir=folder)))
    assert examples
    for example in examples:
        if not example.get("evidence"):
            continue
        for escape in (str, html.escape, json.dumps):
            found = scores(example, {"context": escape(example["context"])})
            assert (found["evidence_recall"], found["evidence_survived"]) == (1.0, 1.0)
        lost = scores(example, ClosedBook().process(dict(example)))
        assert (lost["evidence_recall"], lost["evidence_survived"]) == (0.0, 0.0)
