"""Instructions and conversations, from records in the sources' own schemas to scores.

Real records where CONTEXT_BENCH_DATA has them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.metrics.quality import OfficialScore
from context_bench.registry import registry
from public_cases import Case, load_case, needed_columns, primary, prompt_of, real, write_file

ARGUMENTS = ("num_words", "relation", "keywords", "end_phrase")  # a few of the 24 that the hub's table has
IFEVAL = {
    "key": 7,
    "prompt": "Name two birds without a comma, and in at least two words.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [
        dict.fromkeys(ARGUMENTS),
        {**dict.fromkeys(ARGUMENTS), "num_words": 2, "relation": "at least"},
    ],
}
IFEVAL_FILE = IFEVAL | {"kwargs": [{}, {"num_words": 2, "relation": "at least"}]}
ALPACA = {
    "instruction": "How do I boil an egg?",
    "output": "Put it in boiling water for eight minutes.",
    "generator": "made_up_model",
    "dataset": "koala",
}
TURNS = ["What is 2 + 2?", "And twice that?"]
REFERENCES = ["It is 4.", "Twice that is 8."]
LIGHTEVAL = {"question_id": 200, "category": "math", "turns": TURNS, "reference": REFERENCES}
H4 = {"prompt": TURNS, "prompt_id": 12345, "category": "math", "reference": REFERENCES}


def _case(name: str, record: dict[str, Any], right: Any, wrong: Any, asks: str, needs: str, **more: Any) -> Case:
    return Case(name, record, right, wrong, tuple(asks.split("|")), frozenset(needs.split("|")), **more)


ANSWERS = {"response": REFERENCES[1], "turn_responses": REFERENCES}
OTHERS = {"response": "No.", "turn_responses": ["No.", "Never."]}
CASES = [
    _case("ifeval", IFEVAL, "owl and hen", "owl, hen", "Name two birds", "key|prompt|instruction_id_list|kwargs"),
    _case(
        "ifeval",
        IFEVAL_FILE,
        "owl and hen",
        "owl",
        "two words",
        "key|prompt|instruction_id_list|kwargs",
        layout="files",
        file="input_data.jsonl",
    ),
    _case("alpaca-eval", ALPACA, ALPACA["output"], "I cannot", "boil an egg", "instruction|output|generator|dataset"),
    _case(
        "alpaca-eval",
        ALPACA,
        ALPACA["output"],
        "",
        "boil an egg",
        "instruction|output|generator|dataset",
        config="v1",
        layout="files",
        file="alpaca_eval.json",
    ),
    _case(
        "mt-bench", LIGHTEVAL, ANSWERS, OTHERS, "What is 2 + 2?|And twice that?", "question_id|category|turns|reference"
    ),
    _case(
        "mt-bench",
        H4,
        ANSWERS,
        OTHERS,
        "What is 2 + 2?|And twice that?",
        "prompt|prompt_id|category|reference",
        config="h4",
        layout="h4",
    ),
    _case(
        "mt-bench",
        LIGHTEVAL,
        ANSWERS,
        OTHERS,
        "What is 2 + 2?",
        "question_id|category|turns",
        layout="files",
        file="question.jsonl",
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_what_follows_or_agrees_scores_1_and_what_does_not_0(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert prompt.count(text) == 1
    assert primary(case.name, example, case.right) == 1.0
    assert primary(case.name, example, case.wrong) == 0.0


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


def test_nulls_among_the_arguments_mean_absent(tmp_path: Path) -> None:
    padded, plain = (load_case(case, tmp_path / case.layout)[0] for case in CASES[:2])
    assert padded["kwargs"] == plain["kwargs"] == IFEVAL_FILE["kwargs"]


def test_zero_and_empty_text_are_kept(tmp_path: Path) -> None:
    record = IFEVAL | {"kwargs": [{"num_words": 0, "relation": ""}, {"keywords": None}]}
    (example,) = load_case(CASES[0], tmp_path, record)
    assert example["kwargs"] == [{"num_words": 0, "relation": ""}, {}]


def test_instruction_level_accuracy_is_a_ratio_of_sums(tmp_path: Path) -> None:
    one = IFEVAL_FILE | {"key": 8, "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    write_file(tmp_path / "ifeval" / "input_data.jsonl", [IFEVAL_FILE, one])
    replies = {7: "owl", 8: "owl"}  # one of two instructions, and one of one
    examples = load("ifeval", data_dir=tmp_path)
    result = evaluate(
        lambda example: {"response": replies[example["id"]]}, examples, None, [OfficialScore()], progress=False
    )
    (summary,) = result.summary.values()
    assert summary["official_score"] == pytest.approx(2 / 3)


def test_a_baseline_is_no_gold_answer(tmp_path: Path) -> None:
    (example,) = load_case(CASES[2], tmp_path)
    assert not {"answer", "answers"} & {*example}
    assert ALPACA["output"] not in prompt_of(example)
    for name in ("alpaca-eval", "mt-bench"):
        assert catalog()[name].stand_in


class Speaker:
    """Answers each turn from a list, and keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.name, self.replies, self.seen = "speaker", replies, []

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("a conversation of two turns is not one request")

    def process_conversation(self, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.seen.append([(turn["role"], turn["content"]) for turn in turns])
        return [{"role": "assistant", "content": reply} for reply in self.replies]


def test_both_turns_go_through_process_conversation(tmp_path: Path) -> None:
    examples = load_case(CASES[4], tmp_path)
    system = Speaker(*REFERENCES)
    (row,) = evaluate(system, examples, progress=False).rows
    assert system.seen == [[("user", TURNS[0]), ("user", TURNS[1])]]
    assert row.scores["score"] == row.scores["reference_overlap"] == 1.0
    (row,) = evaluate(Speaker(REFERENCES[0], "No idea"), examples, progress=False).rows
    assert row.scores["score"] == 0.5


@pytest.mark.parametrize(
    ("category", "has"), [("coding", True), ("reasoning", True), ("writing", False), ("stem", False)]
)
def test_references_are_for_categories_that_can_be_right_or_wrong(category: str, has: bool, tmp_path: Path) -> None:
    (example,) = load_case(CASES[4], tmp_path, LIGHTEVAL | {"category": category})
    assert ("reference" in example) is has
    assert (primary("mt-bench", example, ANSWERS) is not None) is has


def test_empty_references_are_none(tmp_path: Path) -> None:
    for empty in ([], None, ["", ""]):
        (example,) = load_case(CASES[4], tmp_path, LIGHTEVAL | {"reference": empty})
        assert "reference" not in example


def test_the_answers_of_gpt_4_are_the_references(tmp_path: Path) -> None:
    own = {"question_id": 201, "category": "writing", "turns": TURNS}
    write_file(tmp_path / "mt-bench" / "question.jsonl", [LIGHTEVAL | {"reference": ["old", "old"]}, own])
    answer = {"question_id": 200, "model_id": "gpt-4", "choices": [{"index": 0, "turns": REFERENCES}]}
    write_file(tmp_path / "mt-bench" / "reference_gpt-4.jsonl", [answer])
    first, second = load("mt-bench", data_dir=tmp_path)
    assert first["reference"] == REFERENCES
    assert "reference" not in second


def test_real_ifeval() -> None:
    examples = list(load("ifeval", data_dir=real("ifeval", "input_data.jsonl")))
    assert len(examples) == len({each["id"] for each in examples}) == 541
    counts = [len(each["instruction_id_list"]) for each in examples]
    assert (sum(counts), counts.count(1), counts.count(2), counts.count(3)) == (834, 305, 179, 57)
    # There are no golds: every instruction is known, takes its arguments, and an empty reply follows none.
    judge = registry.get("evaluator", "ifeval-official")()
    empty = [judge.score(each, {"response": ""}) for each in examples]
    assert {score["ifeval_prompt_strict"] for score in empty} == {0.0}
    assert sum(score.details["strict"]["total"] for score in empty) == 834


def test_real_mt_bench() -> None:
    folder = real("mt-bench", "question.jsonl")
    examples = list(load("mt-bench", data_dir=folder))
    assert [each["id"] for each in examples] == list(range(81, 161))
    assert {len(each["turns"]) for each in examples} == {2}
    assert all(turn["role"] == "user" and turn["content"].strip() for each in examples for turn in each["turns"])
    judged = [each for each in examples if "reference" in each]
    assert len(judged) == 30
    given = (Path(folder) / "mt-bench" / "reference_gpt-4.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["question_id"] for line in given} == {each["id"] for each in judged}
    for each in judged:
        answers = {"response": each["reference"][-1], "turn_responses": each["reference"]}
        assert primary("mt-bench", each, answers) == 1.0
