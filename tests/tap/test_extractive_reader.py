from __future__ import annotations

import csv
import html
import io
import json
import os
import subprocess
import sys
import time
import tracemalloc
from typing import Any

import pytest

from context_bench.datasets.synthetic import json_logs, kv, needle, rerank
from context_bench.systems.chat import AnthropicProxy
from context_bench.systems.prompts import build_messages
from context_bench.tap.scripted import UNKNOWN, extract_answer


def asked(question: str, *texts: str) -> dict[str, Any]:
    system = [{"role": "system", "content": text} for text in texts]
    return {"messages": [*system, {"role": "user", "content": question}]}


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else "Too deep?"


def requests(example: dict[str, Any]) -> list[dict[str, Any]]:
    """An example as both APIs and all framings put it."""
    anthropic = AnthropicProxy("http://127.0.0.1:1")
    framed = [
        {**example, "framing": framing, "instruction": "Answer with the value only."}
        for framing in ("system", "user", "tool")
    ]
    return [{"messages": build_messages(each)} for each in framed] + [anthropic.request_body(each) for each in framed]


@pytest.mark.parametrize("make", [needle, json_logs, kv, rerank])
def test_the_fact_of_a_generated_example_is_found_however_it_is_framed(make: Any) -> None:
    for example in make(n=9, length=2500):
        for request in requests(example):
            assert extract_answer(request) == example["answer"]


@pytest.mark.parametrize("make", [needle, json_logs])
def test_what_was_taken_out_cannot_be_answered(make: Any) -> None:
    for example in make(n=6, length=1000):
        lost = {**example, "context": example["context"].replace(example["answer"], "")}
        for request in requests(lost):
            assert example["answer"] not in extract_answer(request)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The harbour opens at six. The gate of Kellmere was painted green. It rained.", "painted green"),
        ("port: 22\ngate of kellmere: open\nspeed: 5", "open"),
        ('[{"gate":"orm","state":"shut"},{"gate":"kellmere","state":"open"}]', '{"gate":"kellmere","state":"open"}]'),
        ("ORM = 1\nKELLMERE_GATE = 7781", "7781"),
        ("gate of Kellmere raised to 12 metres, says the warden who has kept it for thirty years", None),
    ],
)
def test_the_answer_is_short_where_the_passage_allows_it(text: str, answer: str | None) -> None:
    found = extract_answer(asked("What about the gate of Kellmere?", text))
    assert found == (answer or text)


def test_nothing_in_common_is_said_to_be_unknown() -> None:
    assert extract_answer(asked("Who painted the gate?", "Rain fell on Tuesday.")) == UNKNOWN
    assert extract_answer(asked("What is it?", "It is what it is.")) == UNKNOWN  # no word that means anything


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"messages": []},
        {"messages": None},
        {"messages": [{"role": "user", "content": nested(100)}]},
        {"messages": [None, 3, "x", {"role": "user"}]},
        {"messages": [{"role": "user", "content": [None, 1, {"type": "image_url"}, {"text": 5}]}]},
        {"messages": [{"role": "user", "content": "\n\n \n"}], "system": [{"type": "text"}]},
    ],
)
def test_a_prompt_without_a_question_is_no_crash(document: dict[str, Any]) -> None:
    assert extract_answer(document) == UNKNOWN


def test_only_the_last_question_counts_and_not_how_to_answer() -> None:
    request = {
        "messages": [
            {"role": "system", "content": "The mill is red. The barn is blue. Values only are sold at the barn shop."},
            {"role": "user", "content": "What colour is the mill?"},
            {"role": "assistant", "content": "red"},
            {"role": "user", "content": "What colour is the barn?\n\nAnswer with the value only."},
        ]
    }
    assert extract_answer(request) == "blue"


def test_a_question_at_the_end_of_a_long_paragraph_is_found() -> None:
    text = "The mill is red. " + "Clouds drifted by. " * 100 + "What colour is the mill?"
    assert extract_answer({"messages": [{"role": "user", "content": text}]}) == "red"


def test_every_process_answers_alike() -> None:
    code = (
        "from context_bench.tap.scripted import extract_answer\n"
        "text = '. '.join(f'alpha beta gamma delta {n}' for n in range(50))\n"
        "print(extract_answer({'messages': [{'role': 'system', 'content': text},"
        " {'role': 'user', 'content': 'alpha beta gamma delta?'}]}))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert answers == {"0\n"}


def test_ten_thousand_tokens_are_read_in_milliseconds() -> None:
    (example,) = needle(n=1, length=10_000)
    (request, *_) = requests(example)
    best = 1.0
    for _ in range(5):
        started = time.process_time()
        extract_answer(request)
        best = min(best, time.process_time() - started)
    assert best < 0.03  # about 7 ms, with room for a busy machine


@pytest.mark.parametrize("piece", [" ", "\n", "a ", "},{", "?", ". ", "\n \n", '",'])
def test_hostile_texts_take_no_time_to_speak_of(piece: str) -> None:
    text = piece * 100_000
    started = time.process_time()
    extract_answer(asked(f"{text} a?", text))
    assert time.process_time() - started < 3.0


# --- texts packed into one line


def once(text: str) -> str:
    return json.dumps({"data": text})


def as_csv(context: str) -> str:
    """The records of a JSON text as a table: a line for each, values alone."""
    records = next(each for each in json.loads(context).values() if isinstance(each, list))
    names = list(dict.fromkeys(name for record in records for name in record))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(names)
    for record in records:
        values = (record.get(name, "") for name in names)
        writer.writerow([each if isinstance(each, str | int | float) else json.dumps(each) for each in values])
    return table.getvalue()


@pytest.mark.parametrize("make", [needle, json_logs, kv, rerank])
@pytest.mark.parametrize(
    "pack", [once, lambda text: once(once(text)), html.escape, lambda text: html.escape(once(text))]
)
def test_a_fact_is_found_in_a_text_that_is_packed_into_one_line(make: Any, pack: Any) -> None:
    for example in make(n=9, length=1500):
        for request in requests({**example, "context": pack(example["context"])}):
            assert extract_answer(request) == example["answer"]


@pytest.mark.parametrize("pack", [str, once, lambda text: once(once(text))])
def test_a_fact_is_found_in_records_that_became_a_table(pack: Any) -> None:
    tables = 0
    for example in json_logs(n=27, length=1500):
        if not example["context"].lstrip().startswith("{"):
            continue
        tables += 1
        for request in requests({**example, "context": pack(as_csv(example["context"]))}):
            assert extract_answer(request) == example["answer"]
    assert tables


def test_a_path_is_no_packed_text() -> None:
    text = "The tool is at D:\\new\\name here.\nOther lines."
    assert extract_answer(asked("At which path is the tool?", text)) == "D:\\new\\name here"


@pytest.mark.long
@pytest.mark.parametrize("packed", ["", " &amp; so on"])
def test_reading_a_long_prompt_takes_little_more_memory_than_the_prompt(packed: str) -> None:
    filler = "".join(f"Note {number}: Ada saw boxes{packed}.\n" for number in range(40_000))
    text = f"{filler}The harbour of Ada is called Port7.\n\nWhat is the harbour of Ada called?"
    document = {"messages": [{"role": "user", "content": text}]}
    tracemalloc.start()
    try:
        assert extract_answer(document) == "Port7"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(
        text
    )  # what stands before the question is one copy; a list of passages took ten times as much
