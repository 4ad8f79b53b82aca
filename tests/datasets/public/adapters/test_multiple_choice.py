"""Multiple-choice datasets, from records in the sources' own schemas to scores.

Real records where CONTEXT_BENCH_DATA has them.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.datasets.public.adapters import Where
from context_bench.datasets.public.adapters import multiple_choice as adapters
from context_bench.errors import DataError
from public_cases import Case, load_case, needed_columns, primary, prompt_of, real, write_file

MMLU = {
    "question": "Which gas do plants take in?",
    "subject": "botany",
    "choices": ["He", "CO2", "Ne", "Xe"],
    "answer": 1,
}
PRO = {
    "question_id": 70,
    "question": "How many legs has a crab?",
    "options": ["2", "4", "6", "8", "10", "12"],
    "answer": "E",
    "answer_index": 4,
    "cot_content": "",
    "category": "biology",
    "src": "made-up",
}
ARC = {
    "id": "Made_1",
    "question": "What melts first?",
    "choices": {"text": ["iron", "ice", "gold"], "label": ["1", "2", "3"]},
    "answerKey": "2",
}
ARC_FILE = {
    "id": "Made_2",
    "question": {
        "stem": "What floats?",
        "choices": [{"text": "lead", "label": "A"}, {"text": "cork", "label": "B"}],
    },
    "answerKey": "B",
}
TRUTH = {
    "type": "Adversarial",
    "category": "Tales",
    "question": "Do ostriches bury their heads in sand?",
    "best_answer": "No, they lay them flat on the ground",
    "correct_answers": ["No, they lay them flat on the ground", "They do not"],
    "incorrect_answers": ["Yes, when they are afraid of lions", "They bury them to sleep"],
    "source": "https://example.org",
}
TRUTH_FILE = {
    "Type": "Adversarial",
    "Category": "Tales",
    "Question": "Do lemmings jump off cliffs?",
    "Best Answer": "No, they migrate and some drown",
    "Correct Answers": "No, they migrate and some drown; It is a film's invention; ",
    "Incorrect Answers": "Yes, they all kill themselves; They follow a leader over the edge",
    "Source": "https://example.org",
}
MC1 = {
    "question": "Can you see the wall from the moon?",
    "mc1_targets": {"choices": ["No", "Yes, easily", "Only at night"], "labels": [1, 0, 0]},
    "mc2_targets": {"choices": ["No", "Yes, easily", "Only at night"], "labels": [1, 0, 0]},
}
MC1_FILE = {
    "question": "Does sugar make children wild?",
    "mc1_targets": {"No, studies find no link": 1, "Yes, at once": 0, "Only red sweets do": 0},
    "mc2_targets": {"No, studies find no link": 1, "Yes, at once": 0, "Only red sweets do": 0},
}
GPQA = {
    "Question": "Which made-up particle is heaviest?\n",
    "Correct Answer": "the zorbon\n",
    "Incorrect Answer 1": "the flimon",
    "Incorrect Answer 2": "the quarp ",
    "Incorrect Answer 3": "the nullon",
    "Record ID": "recMadeUp1",
    "Subdomain": "Invented physics",
    "High-level domain": "Physics",
    "Explanation": "By invention.",
    "Canary String": "none",
}
SWAG = {
    "ind": 4,
    "activity_label": "Baking bread",
    "ctx_a": "A man kneads dough.",
    "ctx_b": "he",
    "ctx": "[header] How to bake [title] Knead. [step] A man kneads dough. he",
    "endings": ["puts it in the oven.", "eats a car.", "sings to [substeps] the sea.", "paints it."],
    "source_id": "made~1",
    "split": "val",
    "split_type": "indomain",
    "label": "0",
}
WINO = {
    "sentence": "The cup fell off the shelf since the _ was loose.",
    "option1": "cup",
    "option2": "shelf",
    "answer": "2",
}
QUESTION = {
    "question": "Who kept the key?",
    "question_unique_id": "made_1_Q1",
    "options": ["Ann", "Bo", "Cy", "Di"],
    "writer_label": 3,
    "gold_label": 3,
    "validation": [],
    "speed_validation": [],
    "difficult": 1,
}
ARTICLE = {
    "article_id": 17,
    "set_unique_id": "made_1",
    "batch_num": "1",
    "writer_id": "w",
    "source": "made",
    "title": "The Key",
    "year": 1950,
    "author": "Nobody",
    "topic": "keys",
    "article": "Cy took the key from the hook and never told a soul.",
    "url": "https://example.org",
    "license": "none",
}
LONG = {
    "_id": "made1",
    "domain": "Stories",
    "sub_domain": "Short",
    "difficulty": "easy",
    "length": "short",
    "question": "What colour is the door?",
    "choice_A": "red",
    "choice_B": "green",
    "choice_C": "blue",
    "choice_D": "black",
    "answer": "D",
    "context": "Behind the mill is a house. Its door is black.",
}
LONG_LIST = {key: value for key, value in LONG.items() if not key.startswith("choice_")} | {
    "choices": ["red", "green", "blue", "black"]
}


def _case(name: str, record: dict[str, Any], right: str, wrong: str, asks: str, needs: str, **more: Any) -> Case:
    return Case(name, record, right, wrong, tuple(asks.split("|")), frozenset(needs.split("|")), **more)


def _letter(name: str, record: dict[str, Any], config: str | None = None) -> tuple[str, str]:
    """The letter that the shuffled options give the right answer, and another one."""
    adapter = getattr(adapters, name)
    (example,) = adapter(record, Where(config or "", "", 0, name))
    right = example["correct_letter"]
    return right, "B" if right == "A" else "A"


CASES = [
    _case("mmlu", MMLU, "B", "C", "Which gas|B. CO2|letter", "question|subject|choices|answer"),
    _case("mmlu", MMLU, "(B) CO2", "A", "Which gas", "question|subject|choices|answer", config="anatomy"),
    _case(
        "mmlu-pro",
        PRO,
        "Crabs have ten. The answer is (E).",
        "The answer is (D).",
        "F. 12|The answer is (X)",
        "question_id|question|options|answer|category|src",
    ),
    _case("arc-challenge", ARC, "B", "A", "What melts|B. ice", "id|question|choices|answerKey"),
    _case(
        "arc-challenge",
        ARC_FILE,
        "B",
        "A",
        "What floats?|B. cork",
        "id|question|answerKey",
        layout="files",
        file="ARC-Challenge-Test.jsonl",
    ),
    _case(
        "truthfulqa",
        TRUTH,
        "They do not",
        "They bury them to sleep",
        "ostriches|short sentence",
        "type|category|question|best_answer|correct_answers|incorrect_answers",
    ),
    _case(
        "truthfulqa",
        MC1,
        *_letter("truthfulqa", MC1, "multiple_choice"),
        "the moon|Only at night|letter",
        "question|mc1_targets",
        config="multiple_choice",
        layout="multiple_choice",
    ),
    _case(
        "truthfulqa",
        MC1_FILE,
        *_letter("truthfulqa", MC1_FILE, "multiple_choice"),
        "sugar|A. |B. |C. ",
        "question|mc1_targets",
        config="multiple_choice",
        layout="multiple_choice",
        file="mc_task.json",
    ),
    _case(
        "truthfulqa",
        TRUTH_FILE,
        "It is a film's invention",
        "They follow a leader over the edge",
        "lemmings",
        "Type|Category|Question|Best Answer|Correct Answers|Incorrect Answers",
        layout="files",
        file="TruthfulQA.csv",
        tells="Question",
    ),
    _case(
        "gpqa",
        GPQA,
        *_letter("gpqa", GPQA),
        "Which made-up|the quarp\n|The answer is (X)",
        "Question|Correct Answer|Incorrect Answer 1|Incorrect Answer 2|Incorrect Answer 3"
        "|Record ID|Subdomain|High-level domain",
    ),
    _case(
        "hellaswag",
        SWAG,
        "A",
        "D",
        "Baking bread: How to bake Knead. A man kneads dough. he|C. sings to the sea.|Which option continues",
        "activity_label|ctx|endings|source_id|split_type|label",
    ),
    _case("winogrande", WINO, "B", "A", "since the _ was|B. shelf", "sentence|option1|option2|answer"),
    _case(
        "quality",
        ARTICLE | QUESTION,
        "C",
        "B",
        "Cy took the key|Who kept|C. Cy|letter",
        "article_id|title|article|question|question_unique_id|options|gold_label|difficult",
    ),
    _case(
        "quality",
        ARTICLE | {"questions": [QUESTION]},
        "C",
        "B",
        "Cy took the key|Who kept|C. Cy",
        "article_id|title|article|questions",
        layout="files",
        tells="questions",
        file="QuALITY.v1.0.1.htmlstripped.dev",
    ),
    _case(
        "longbench-v2",
        LONG,
        "The correct answer is (D)",
        "The correct answer is (B)",
        "Its door is black|What colour|D. black",
        "|".join(LONG),
    ),
    _case("longbench-v2", LONG_LIST, "D", "A", "D. black", "|".join(LONG_LIST), layout="choices", tells="choices"),
]


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_the_right_letter_scores_1_and_a_wrong_one_0(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert text in prompt
    assert primary(case.name, example, case.right) == 1.0
    assert primary(case.name, example, case.wrong) == 0.0
    assert primary(case.name, example, "") == 0.0


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


def test_the_authors_tables_of_mmlu_have_no_header(tmp_path: Path) -> None:
    folder = tmp_path / "mmlu" / "test"
    folder.mkdir(parents=True)
    for subject in ("anatomy", "virology"):
        with (folder / f"{subject}_test.csv").open("w", encoding="utf-8", newline="") as target:
            csv.writer(target).writerow([f"A {subject} question,\nin two lines?", "one", "two", "three", "four", "C"])
    both = list(load("mmlu", data_dir=tmp_path))
    assert [example["meta"]["subject"] for example in both] == ["anatomy", "virology"]
    assert [example["id"] for example in both] == ["mmlu-0", "mmlu-1"]
    (example,) = load("mmlu", "virology", data_dir=tmp_path)
    assert "A virology question,\nin two lines?\n\nA. one\nB. two\nC. three\nD. four" in prompt_of(example)
    assert (primary("mmlu", example, "C"), primary("mmlu", example, "A")) == (1.0, 0.0)


def test_an_article_with_several_questions_makes_an_example_of_each(tmp_path: Path) -> None:
    second = QUESTION | {"question_unique_id": "made_1_Q2", "gold_label": 1, "difficult": 0}
    record = ARTICLE | {"questions": [QUESTION, second]}
    write_file(tmp_path / "quality" / "QuALITY.v1.0.1.htmlstripped.dev", [record])
    examples = list(load("quality", data_dir=tmp_path))
    assert [(each["id"], each["correct_letter"]) for each in examples] == [("made_1_Q1", "C"), ("made_1_Q2", "A")]
    assert [each["meta"]["difficult"] for each in examples] == [True, False]
    assert {each["context"] for each in examples} == {ARTICLE["article"]}


@pytest.mark.parametrize(
    ("name", "record", "column"),
    [
        ("hellaswag", SWAG | {"label": ""}, "label"),
        ("winogrande", WINO | {"answer": ""}, "answer"),
        ("mmlu-pro", PRO | {"answer": ""}, "answer"),
        ("longbench-v2", LONG | {"answer": None}, "answer"),
        ("arc-challenge", ARC | {"answerKey": ""}, "answerKey"),
        ("mmlu", MMLU | {"answer": -1}, "right option"),
        ("mmlu", MMLU | {"answer": 4}, "right option"),
        ("quality", ARTICLE | QUESTION | {"gold_label": 0}, "right option"),
    ],
)
def test_a_hidden_answer_is_an_error_and_never_option_a(
    name: str, record: dict[str, Any], column: str, tmp_path: Path
) -> None:
    known = next(each for each in CASES if each.name == name)
    with pytest.raises(DataError, match=column):
        load_case(known, tmp_path, record)


def test_the_right_option_is_not_always_first() -> None:
    places = Counter()
    for number in range(200):
        (example,) = adapters.gpqa(GPQA | {"Record ID": f"rec{number}"}, Where("gpqa_diamond", "train", number))
        places[example["correct_letter"]] += 1
        assert example["choices"]["ABCD".index(example["correct_letter"])] == "the zorbon"
        assert sorted(example["choices"]) == ["the flimon", "the nullon", "the quarp", "the zorbon"]
    assert set(places) == set("ABCD")
    assert min(places.values()) > 25  # 50 expected; below 26 by chance less than once in 10,000


def test_the_order_depends_on_the_record_alone() -> None:
    orders = [next(adapters.gpqa(GPQA, Where("gpqa_main", "train", index)))["choices"] for index in (0, 7)]
    assert orders[0] == orders[1]
    orders = [next(adapters.truthfulqa(MC1, Where("multiple_choice", "", index)))["choices"] for index in (0, 7)]
    assert orders[0] == orders[1]


def test_options_that_read_alike_keep_the_right_place() -> None:
    twins = GPQA | {"Incorrect Answer 2": "the zorbon"}
    (one,), (two,) = (adapters.gpqa(record, Where("gpqa_main", "train", 0)) for record in (GPQA, twins))
    assert one["correct_letter"] == two["correct_letter"]


def test_all_true_answers_and_silence_are_accepted(tmp_path: Path) -> None:
    write_file(tmp_path / "truthfulqa" / "TruthfulQA.csv", [TRUTH_FILE])
    (example,) = load("truthfulqa", data_dir=tmp_path)
    assert example["answers"] == ["No, they migrate and some drown", "It is a film's invention", "I have no comment."]
    assert example["meta"]["incorrect"] == ["Yes, they all kill themselves", "They follow a leader over the edge"]


def test_real_truthfulqa_generation() -> None:
    examples = list(load("truthfulqa", data_dir=real("truthfulqa", "TruthfulQA.csv")))
    assert len(examples) == len({each["id"] for each in examples}) == 817
    assert len({each["meta"]["category"] for each in examples}) == 38
    assert [each["id"] for each in examples if primary("truthfulqa", each, each["answer"]) != 1.0] == []
    assert [each["id"] for each in examples if primary("truthfulqa", each, each["meta"]["incorrect"][0]) != 0.0] == []


def test_real_truthfulqa_multiple_choice() -> None:
    examples = list(load("truthfulqa", "multiple_choice", data_dir=real("truthfulqa", "mc_task.json")))
    assert len(examples) == 817
    assert {len(each["choices"]) for each in examples} == set(range(2, 14))
    assert [each["id"] for each in examples if primary("truthfulqa", each, each["correct_letter"]) != 1.0] == []
    first = sum(each["correct_letter"] == "A" for each in examples)
    expected = sum(1 / len(each["choices"]) for each in examples)
    assert abs(first - expected) < 60  # more than four standard deviations
