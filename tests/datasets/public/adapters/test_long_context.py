"""Long contexts, from records in the sources' own schemas to the score of each task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.datasets.public.adapters.long_context import INFINITEBENCH, LONGBENCH
from context_bench.errors import DataError, UsageError
from context_bench.evaluators.official_long_context import INFINITEBENCH_RULES as INFINITE_RULES
from context_bench.evaluators.official_long_context import LONGBENCH_RULES as LONG_RULES
from public_cases import Case, load_case, needed_columns, primary, prompt_of

CLASSES = ["Place", "Food", "City"]


def _long(task: str, asked: str, answers: list[str], wrong: str, classes: list[str] | None = None) -> Case:
    record = {
        "input": asked,
        "context": "Paragraph 1: It rained in Bergen.\n\nParagraph 2: It snowed.",
        "answers": answers,
        "length": 9,
        "dataset": task.removesuffix("_e"),
        "language": "zh" if task in ("lsht", "vcsum", "dureader") or task.endswith("_zh") else "en",
        "all_classes": classes,
        "_id": f"id-{task}",
    }
    asks = [asked] if asked else [LONGBENCH[task.removesuffix("_e")].ask]
    needs = frozenset(record) - {"dataset"}
    return Case(
        "longbench", record, answers[-1], wrong, ("It snowed.", *asks), needs, task, "files", f"{task}.jsonl", "input"
    )


LONG = [
    _long("narrativeqa", "Where did it rain?", ["in Bergen", "Bergen"], "snow"),
    _long("qasper_e", "Is it dry?", ["No"], "Yes"),
    _long("multifieldqa_zh", "哪里下雨？", ["卑尔根"], "雪"),
    _long("dureader", "哪里下雨？", ["在卑尔根"], "雪"),
    _long("gov_report", "", ["It rained and then it snowed"], "sunny"),
    _long("qmsum", "What was said of rain?", ["That it fell"], "sunny"),
    _long("vcsum", "", ["下雨了"], "晴"),
    _long("trec", "Question: Where is Oslo?\nType:", ["Place"], "Food", CLASSES),
    _long("lsht", "新闻：下雨", ["City"], "Food", CLASSES),
    _long("triviaqa", "Passage: x\nQuestion: who?\nAnswer:", ["Ibsen", "Henrik Ibsen"], "Munch"),
    _long("samsum", "Dialogue: hi\nSummary:", ["They greet"], "nothing"),
    _long("passage_count", "", ["2"], "3"),
    _long("passage_retrieval_en", "It snows.", ["Paragraph 2"], "Paragraph 1"),
    _long("passage_retrieval_zh", "下雪。", ["段落2"], "段落1"),
    _long("lcc", "", ["x = 1"], ""),
    _long("repobench-p", "import os\n", ["x = os.getcwd()"], ""),
]


def _infinite(task: str, asked: str, answer: Any, right: str, wrong: str, options: list[str] | None = None) -> Case:
    record = {"id": 4, "context": "Long text.", "input": asked, "answer": answer, "options": options or []}
    asks = tuple(text for text in ("Long text.", asked, INFINITEBENCH[task].ask, *(options or ())) if text)
    needs = frozenset(record) - (set() if options else {"options"})
    return Case("infinitebench", record, right, wrong, asks, needs, task, file=f"{task}.jsonl")


NAMES = ["Kim Lee", "Bo Ek", "Al Oz", "Jo By"]
INFINITE = [
    _infinite("passkey", "What is the pass key?", ["71432"], "The key is 71432.", "7143"),
    _infinite("number_string", "What is the string?", "0012", "0012", "12"),
    _infinite("kv_retrieval", 'Key: "ab-1"', ["cd-2"], '"cd-2"', "ab-1"),
    _infinite("longbook_sum_eng", "", ["All ends well."], "All ends well.", "zebra"),
    _infinite("longbook_qa_eng", "Who wins?", ["Kim", "Kim Lee"], "Kim Lee", "Bo"),
    _infinite("longbook_choice_eng", "Who wins?", ["Al Oz"], "C", "A", NAMES),
    _infinite("longdialogue_qa_eng", "KIM: Hello, $$MASK$$!", ["BO"], "It is Bo.", "KIM"),
    _infinite("longbook_qa_chn", "谁赢了？", ["小明"], "小明", "大山"),
    _infinite("code_debug", "Options:", ["run_all", "B"], "B", "A", ["main", "run_all", "stop", "wait"]),
    _infinite("code_run", "func_1(3)", -7, "It returns -7", "7"),
    _infinite("math_find", "What is the largest number?", 3.5, "3.5", "4"),
    _infinite("math_calc", "", [1, 4, 1, 4], "[1, 4, 1, 4]", "[4, 1]"),
]
BABILONG = Case(
    "babilong",
    {"input": "It was dark. Mary went to the garden. It was late.", "question": "Where is Mary?", "target": "garden"},
    "In the garden.",
    "kitchen",
    ("Mary went to the garden", "Where is Mary?", "one word"),
    frozenset({"input", "question", "target"}),
    "4k-qa1",
)
TALK = [
    {"role": "user", "content": "Write a poem about owls"},
    {"role": "assistant", "content": "Owls fly."},
    {"role": "user", "content": "Write a poem about owls"},
    {"role": "assistant", "content": "Owls sleep."},
    {"role": "user", "content": "Prepend kX9 to the 2nd poem about owls."},
]
MRCR = Case(
    "mrcr",
    {
        "prompt": json.dumps(TALK),
        "answer": "kX9Owls sleep.",
        "random_string_to_prepend": "kX9",
        "n_needles": 2,
        "desired_msg_index": 2,
        "total_messages": 5,
        "n_chars": 99,
    },
    "kX9Owls sleep.",
    "Owls sleep.",
    ("Assistant: Owls fly.", "Assistant: Owls sleep.", "Prepend kX9"),
    frozenset({"prompt", "answer", "random_string_to_prepend", "n_needles"}),
)


@pytest.fixture(params=[*LONG, *INFINITE, BABILONG, MRCR], ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_the_gold_scores_1_and_another_answer_0(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert prompt.count(text) == 1, text
    assert example.get("instruction", "") in prompt
    assert primary(case.name, example, case.right) == pytest.approx(1.0)
    assert primary(case.name, example, case.wrong) == 0.0


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


def test_every_task_has_words_a_rule_and_a_configuration() -> None:
    for name, words, rules, count in (
        ("longbench", LONGBENCH, {*LONG_RULES}, 21),
        ("infinitebench", INFINITEBENCH, {*INFINITE_RULES, "longbook_choice_eng", "code_debug", "math_calc"}, 12),
    ):
        card = catalog()[name]
        assert {*card.config("all").parts} == {*words} == rules
        assert len(words) == count
        assert all(wording.form for wording in words.values())
        assert {*card.config("all").parts} <= {*card.configs}
    assert len(catalog()["longbench"].config("all_e").parts) == 13


def test_every_configuration_of_this_family_can_be_found() -> None:
    for name in ("longbench", "infinitebench", "nolima", "babilong", "mrcr"):
        card = catalog()[name]
        for config in card.configs.values():
            parts = [card.config(part) for part in config.parts] or [config]
            assert all(part.hub and part.split for part in parts), f"{name}:{config.name}"


def test_the_hubs_copy_calls_the_input_question(tmp_path: Path) -> None:
    hub = {("question" if key == "input" else key): value for key, value in LONG[0].record.items()}
    assert {*hub} == {*catalog()["longbench"].columns["hub"]}
    (example,) = load_case(LONG[0], tmp_path, hub)
    assert example["question"] == "Where did it rain?"
    with pytest.raises(DataError, match="no column 'input or question'"):
        load_case(LONG[0], tmp_path, {key: hub[key] for key in hub if key != "question"})


def test_classes_and_task_reach_the_scorer(tmp_path: Path) -> None:
    trec, lcc = (load_case(case, tmp_path)[0]["meta"] for case in (LONG[7], LONG[14]))
    assert (trec["task"], trec["all_classes"]) == ("trec", CLASSES)
    assert (lcc["task"], "all_classes" in lcc) == ("lcc", False)


def test_all_tasks_together_say_which_they_are(tmp_path: Path) -> None:
    for each in INFINITE:
        load_case(each, tmp_path)
    examples = list(load("infinitebench", data_dir=tmp_path))
    assert [each["meta"]["group"] for each in examples] == list(catalog()["infinitebench"].config("all").parts)
    assert len({each["id"] for each in examples}) == 12


def test_the_other_spelling_of_a_task(tmp_path: Path) -> None:
    load_case(INFINITE[4], tmp_path)
    (example,) = load("infinitebench", "longbook_qa_en", data_dir=tmp_path)
    assert example["meta"]["task"] == "longbook_qa_eng"
    with pytest.raises(UsageError, match="longbook_qa_eng"):
        load("infinitebench", "longbook_qa", data_dir=tmp_path)


def test_an_answer_that_is_no_option(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the layout is unknown"):
        load_case(INFINITE[5], tmp_path, INFINITE[5].record | {"answer": ["Nobody"]})


def test_repeated_numbers_of_a_calculation_all_count(tmp_path: Path) -> None:
    (example,) = load_case(INFINITE[11], tmp_path)
    assert primary("infinitebench", example, "1 4 1 9") == 0.75


def test_a_length_stands_for_its_five_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "babilong" / "4k"
    folder.mkdir(parents=True)
    for number in range(1, 6):
        (folder / f"qa{number}.jsonl").write_text(json.dumps(BABILONG.record), encoding="utf-8")
    examples = list(load("babilong", data_dir=tmp_path))
    assert [each["meta"]["task"] for each in examples] == ["qa1", "qa2", "qa3", "qa4", "qa5"]
    assert examples[0]["id"] == "babilong-4k-qa1-0"


def test_the_wanted_reply_is_the_evidence(tmp_path: Path) -> None:
    (example,) = load_case(MRCR, tmp_path)
    (span,) = example["evidence"]
    assert span["text"] == example["context"][span["start"] : span["end"]] == "Owls sleep."
    assert example["context"].startswith("User: Write a poem about owls\n\nAssistant: Owls fly.\n\nUser: ")
