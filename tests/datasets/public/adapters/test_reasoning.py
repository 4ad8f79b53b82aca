"""Reasoning datasets, from records in the sources' own schemas to scores.

Real records where CONTEXT_BENCH_DATA has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.datasets.public.adapters import Where
from context_bench.datasets.public.adapters.problems import drop, drop_files, last_boxed
from context_bench.errors import DataError, UsageError
from public_cases import Case, load_case, needed_columns, primary, prompt_of, real

GSM8K = {
    "question": "Ann sells 3 jars at $500 each, and pays a fee of $250. What is left?",
    "answer": "She takes 3*500 = $<<3*500=1500>>1,500.\nAfter the fee: <<1500-250=1250>>1,250.\n#### 1,250",
}
MATH = {
    "problem": "What is half of a half of $3$?",
    "level": "Level 2",
    "type": "Algebra",
    "solution": "A half is $\\boxed{\\frac{3}{2}}$, and half of that $\\boxed{\\frac{3}{4}}$.",
}
MATH_500 = {
    "problem": "Compute $2 + 3$.",
    "solution": "It is $\\boxed{5}$.",
    "answer": "5",
    "subject": "Prealgebra",
    "level": 1,
    "unique_id": "test/made/1.json",
}
MGSM = {"question": "Zwei Hunde haben wie viele Beine?", "answer": None, "answer_number": 8, "equation_solution": None}
DATE = {"day": "", "month": "", "year": ""}
DROP = {
    "section_id": "made_1",
    "query_id": "q-1",
    "passage": "Kim scored twice and Lee once, on 3 May 1998.",
    "question": "Who scored?",
    "answer": {"number": "", "date": DATE, "spans": ["Kim", "Lee"], "worker_id": "w", "hit_id": "h"},
    "validated_answers": {
        "number": ["3", ""],
        "date": [DATE, {"day": "3", "month": "May", "year": "1998"}],
        "spans": [[], []],
        "worker_id": ["w", "w"],
        "hit_id": ["h", "h"],
    },
}
FLAT = {key: DROP[key] for key in ("section_id", "query_id", "passage", "question")} | {
    "answers_spans": {"spans": ["Kim", "Lee"], "types": ["span", "span"]}
}
DATES = {
    "input": "Today is 2 May. What is tomorrow?\nOptions:\n(A) 1 May\n(B) 3 May\n(C) 5 May",
    "target": "(B)",
}


def _case(name: str, record: dict[str, Any], right: Any, wrong: Any, asks: str, needs: str, **more: Any) -> Case:
    return Case(name, record, right, wrong, tuple(asks.split("|")), frozenset(needs.split("|")), **more)


def _task(config: str, task: str, target: str, wrong: str, form: str) -> Case:
    record = {"input": task, "target": target}
    right = f"Step by step.\nSo the answer is {target}."
    return _case("bbh", record, right, f"So the answer is {wrong}.", f"{task}|{form}", "input|target", config=config)


_DROP = "section_id|query_id|passage|question"
CASES = [
    _case("gsm8k", GSM8K, GSM8K["answer"], "#### 1,500", "Ann sells|####", "question|answer"),
    _case("gsm8k", GSM8K, "1250", "250", "Ann sells", "question|answer", layout="files", file="test.jsonl"),
    _case("gsm8k", GSM8K, "It is $1,250.00.", "no idea", "Ann sells", "question|answer", config="socratic"),
    _case(
        "math",
        MATH,
        r"$\boxed{\frac{3}{4}}$",
        r"$\boxed{\frac{3}{2}}$",
        r"What is half|\boxed{}",
        "problem|level|type|solution",
        config="algebra",
    ),
    _case(
        "math-500",
        MATH_500,
        r"\boxed{5}",
        r"\boxed{6}",
        r"Compute|\boxed{}",
        "problem|solution|answer|subject|level|unique_id",
    ),
    _case("mgsm", MGSM, "#### 8", "#### 4", "Zwei Hunde|####", "question|answer_number", config="de"),
    _case(
        "drop",
        DROP,
        {"response": ["Lee", "Kim"]},
        "Sam",
        "Kim scored twice|Who scored?|only",
        f"{_DROP}|answer|validated_answers",
    ),
    _case("drop", DROP, "3 May 1998", "4 June 2001", "Kim scored twice", f"{_DROP}|answer|validated_answers"),
    _case(
        "drop",
        FLAT,
        "Lee",
        "Sam",
        "Kim scored twice",
        f"{_DROP}|answers_spans",
        config="ucinlp",
        layout="ucinlp",
        tells="answers_spans",
    ),
    _case("bbh", DATES, "(B)", "(C)", "tomorrow?|(B) 3 May|letter", "input|target", config="date_understanding"),
    _case(
        "bbh",
        DATES,
        "It is the 3rd, so the answer is (B).",
        "So the answer is (A).",
        "(A) 1 May",
        "input|target",
        config="date_understanding",
    ),
    _task("boolean_expressions", "not ( True ) is", "False", "True", "True or False"),
    _task("causal_judgement", "Did the rain do it?", "Yes", "No", "Yes or No"),
    _task("sports_understanding", "Is this plausible?", "no", "yes", "yes or no"),
    _task("formal_fallacies", "Is it valid?", "invalid", "valid", "valid or invalid"),
    _task("multistep_arithmetic_two", "((3 - 18)) =", "-15", "15", "the number"),
    _task("dyck_languages", "Close: < [ (", ") ] >", ") ]", "brackets"),
    _task("word_sorting", "Sort: pear it&t fig", "fig it&t pear", "it&t fig pear", "sorted words"),
]


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_a_right_answer_scores_1_and_a_wrong_one_0(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert text in prompt
    assert primary(case.name, example, case.right) == 1.0
    assert primary(case.name, example, case.wrong) == 0.0
    assert primary(case.name, example, "") == 0.0


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


def test_each_text_is_sent_once(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    asked = next(case.record[key] for key in ("question", "problem", "input") if key in case.record)
    assert prompt_of(example).count(asked) == 1


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"so \boxed{7}.", "7"),
        (r"\boxed{1} and then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\fbox{x+1}", "x+1"),
        (r"it is $\boxed 5$.", "5"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        ("no box", ""),
        (r"\boxed{never closed", ""),
        (r"\boxedness{3}", ""),
    ],
)
def test_the_last_box(solution: str, answer: str) -> None:
    assert last_boxed(solution) == answer


@pytest.mark.parametrize(
    ("case", "record", "message"),
    [
        (CASES[0], GSM8K | {"answer": "1250"}, "####"),
        (CASES[3], MATH | {"solution": "It is 4."}, "boxed"),
        (CASES[6], DROP | {"answer": {"number": "", "date": DATE, "spans": []}, "validated_answers": []}, "neither"),
    ],
)
def test_a_record_without_a_gold_is_an_error(case: Case, record: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        load_case(case, tmp_path, record)


def test_the_authors_tables_of_mgsm_have_no_header(tmp_path: Path) -> None:
    (tmp_path / "mgsm").mkdir()
    lines = 'Wie viele "Beine"?\t2,125\nWie viele Arme?\t-4\n'
    (tmp_path / "mgsm" / "mgsm_de.tsv").write_text(lines, encoding="utf-8")
    examples = list(load("mgsm", "de", data_dir=tmp_path))
    assert [each["question"] for each in examples] == ['Wie viele "Beine"?', "Wie viele Arme?"]
    assert [each["answer"] for each in examples] == ["2125", "-4"]
    assert [each["id"] for each in examples] == ["mgsm-de-0", "mgsm-de-1"]
    assert primary("mgsm", examples[0], "Die Antwort ist 2125") == 1.0


def test_the_authors_files_of_drop_hold_passages_with_questions(tmp_path: Path) -> None:
    (tmp_path / "drop").mkdir()
    pair = {key: DROP[key] for key in ("query_id", "question", "answer")}
    validated = [{"number": "3", "date": DATE, "spans": []}, {"number": "3", "date": DATE, "spans": []}]
    passages = {
        "made_1": {
            "passage": DROP["passage"],
            "qa_pairs": [pair, pair | {"query_id": "q-2", "validated_answers": validated}],
        }
    }
    (tmp_path / "drop" / "drop_dataset_dev.json").write_text(json.dumps(passages), encoding="utf-8")
    first, second = load("drop", data_dir=tmp_path)
    assert (first["id"], first["answers"], first["answer"]) == ("q-1", [["Kim", "Lee"]], "Kim, Lee")
    assert second["answers"] == [["Kim", "Lee"], ["3"]]
    assert first["meta"] == {"section_id": "made_1"}


def test_dates_may_come_as_columns() -> None:
    columns = {
        "number": ["", ""],
        "date": {"day": ["", "3"], "month": ["", "May"], "year": ["1998", ""]},
        "spans": [[], []],
    }
    (example,) = drop(DROP | {"validated_answers": columns}, Where("default", "validation", 0))
    assert example["answers"] == [["Kim", "Lee"], ["1998"], ["3 May"]]


def test_the_authors_files_of_bbh_have_a_canary(tmp_path: Path) -> None:
    (tmp_path / "bbh").mkdir()
    content = {"canary": "made up", "examples": [DATES, DATES]}
    (tmp_path / "bbh" / "date_understanding.json").write_text(json.dumps(content), encoding="utf-8")
    examples = list(load("bbh", "date-understanding", data_dir=tmp_path))
    assert [each["id"] for each in examples] == ["bbh-date_understanding-0", "bbh-date_understanding-1"]


def test_bbh_means_all_27_tasks() -> None:
    card = catalog()["bbh"]
    assert (card.default_config, card.aggregate) == ("all", "mean-of-configs")
    tasks = card.config().parts
    assert len(set(tasks)) == 27
    assert sum(card.config(task).size or 0 for task in tasks) == card.config().size == 6511
    with pytest.raises(UsageError, match="word_sorting"):
        card.config("word_sort")


def test_math_means_all_seven_subjects() -> None:
    card = catalog()["math"]
    assert sum(card.config(part).size or 0 for part in card.config().parts) == card.config().size == 5000


def _wrong(name: str, examples: list[Any], field: str = "answer") -> list[Any]:
    return [each["id"] for each in examples if primary(name, each, each[field]) != 1.0]


def test_real_gsm8k() -> None:
    examples = list(load("gsm8k", data_dir=real("gsm8k", "test.jsonl")))
    assert len(examples) == len({each["id"] for each in examples}) == 1319
    assert sum(each["answer"].startswith("-") for each in examples) == 2
    assert _wrong("gsm8k", examples) == []
    assert _wrong("gsm8k", examples, "reference") == []


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_real_mgsm(language: str) -> None:
    examples = list(load("mgsm", language, data_dir=real("mgsm", f"mgsm_{language}.tsv")))
    assert len(examples) == 250
    assert _wrong("mgsm", examples) == []


@pytest.mark.parametrize(
    ("task", "count"),
    [
        ("boolean_expressions", 250),
        ("causal_judgement", 187),
        ("date_understanding", 250),
        ("logical_deduction_three_objects", 250),
        ("object_counting", 250),
        ("word_sorting", 250),
    ],
)
def test_real_bbh(task: str, count: int) -> None:
    examples = list(load("bbh", task, data_dir=real("bbh", f"{task}.json")))
    assert len(examples) == count == catalog()["bbh"].config(task).size
    assert _wrong("bbh", examples) == []
    stated = [each | {"said": f"Let us see.\n\nSo the answer is {each['answer']}."} for each in examples]
    assert _wrong("bbh", stated, "said") == []


def test_real_drop() -> None:
    folder = real("drop", "drop_contrast_sets_test.json")
    examples = list(load("drop", "contrast-sets", data_dir=folder))
    assert len(examples) == len({each["id"] for each in examples}) == 947
    # Each accepted answer, given as its spans, is right.
    lost = [
        each["id"] for each in examples for gold in each["answers"] if primary("drop", each, {"response": gold}) != 1
    ]
    assert lost == []
    fixture = list(drop_files([Path(folder) / "drop" / "fixture_drop.json"]))
    mapped = [example for record in fixture for example in drop(record, Where("default", "dev", 0))]
    assert len(mapped) == len(fixture) == 19
    assert [each["id"] for each in mapped if primary("drop", each, {"response": each["answers"][0]}) != 1.0] == []
