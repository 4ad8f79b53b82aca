"""NoLiMa: windows of books with needles, built from made-up parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.errors import DataError
from context_bench.types import Example
from context_bench.utils.tokens import count_tokens
from public_cases import primary, prompt_of

NEEDLE = {
    "id": "0401",
    "system_prompt": "",
    "needle": "{CHAR} lives next to the {1}.",
    "questions": {"onehop": "Who lives next to the {1}?", "twohop": "Who has been to {2}?"},
    "character_set": ["Yuki", "Stuart", "Diana", "Kim"],
    "tests": {"T1": {"input_args": ["Kiasma", "Helsinki"]}, "T2": {"input_args": ["Semperoper", "Dresden"]}},
}
FIXED = {
    **NEEDLE,
    "id": "0402a",
    "needle": "The {1} is red.",
    "questions": {"onehop": "What is red?"},
    "tests": {"T1": {"input_args": ["barn"], "gold_answers": ["barn", "stable"]}},
}
BOOK = "".join(f"Line {number} of the book goes on for a while.\n" for number in range(400))


def build(folder: Path, needles: list[dict[str, Any]], config: str, books: int = 1, book: str = BOOK) -> list[Example]:
    root = folder / "nolima"
    (root / "needlesets").mkdir(parents=True, exist_ok=True)
    (root / "haystack" / "rand_shuffle").mkdir(parents=True, exist_ok=True)
    for name in ("needle_set", "needle_set_w_CoT"):
        (root / "needlesets" / f"{name}.json").write_text(json.dumps(needles), encoding="utf-8")
    for number in range(1, books + 1):
        path = root / "haystack" / "rand_shuffle" / f"rand_book_{number}.txt"
        path.write_text(book, encoding="utf-8")
    return list(load("nolima", config, data_dir=folder))


def test_every_question_test_book_and_depth(tmp_path: Path) -> None:
    examples = build(tmp_path, [NEEDLE], "1k", books=2)
    assert len(examples) == len({each["id"] for each in examples}) == 2 * 2 * 2 * 26
    assert {*NEEDLE} == {*catalog()["nolima"].columns["needles"]}
    assert {each["meta"]["kind"] for each in examples} == {"onehop", "twohop"}


def test_blanks_are_filled_and_the_name_is_the_gold(tmp_path: Path) -> None:
    for each in build(tmp_path, [NEEDLE], "250"):
        (span,) = each["evidence"]
        name, _, rest = span["text"].partition(" lives next to the ")
        assert name == each["answer"]
        assert name in NEEDLE["character_set"]
        assert rest in ("Kiasma.", "Semperoper.")
        assert each["context"][span["start"] : span["end"]] == span["text"]
        assert each["question"] in (
            *("Who lives next to the Kiasma?", "Who lives next to the Semperoper?"),
            *("Who has been to Helsinki?", "Who has been to Dresden?"),
        )


def test_the_gold_scores_1_and_another_name_0(tmp_path: Path) -> None:
    example = build(tmp_path, [NEEDLE], "250")[0]
    others = [name for name in NEEDLE["character_set"] if name != example["answer"]]
    assert primary("nolima", example, f"It is {example['answer']}.") == 1.0
    assert primary("nolima", example, others[0]) == 0.0
    assert primary("nolima", example, example["answer"].lower()) == 0.0
    prompt = prompt_of(example)
    assert all(
        prompt.count(text) == 1 for text in (example["question"], "lives next to the Kiasma.", "the final answer only")
    )


@pytest.mark.parametrize(("config", "tokens"), [("250", 250), ("1k", 1000), ("2k", 2000)])
def test_depths_run_from_start_to_end_of_a_window(config: str, tokens: int, tmp_path: Path) -> None:
    examples = build(tmp_path, [NEEDLE], config)[:26]
    starts = [each["evidence"][0]["start"] for each in examples]
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert examples[-1]["context"].endswith(f"{examples[-1]['evidence'][0]['text']}\n")
    assert [each["meta"]["depth"] for each in examples[::25]] == [0.0, 1.0]
    for each in examples:
        (span,) = each["evidence"]
        window = each["context"][: span["start"]] + each["context"][span["end"] + 1 :]
        assert BOOK.startswith(window)
        assert 0.9 * tokens < count_tokens(window) <= tokens
        assert each["context"][: span["start"]].endswith("\n") or span["start"] == 0


def test_names_differ_by_depth_and_stay_the_same_from_run_to_run(tmp_path: Path) -> None:
    one, two = (build(tmp_path, [NEEDLE], "250") for _ in range(2))
    assert one == two
    assert {each["answer"] for each in one[:26]} == {*NEEDLE["character_set"]}


def test_a_needle_without_a_name_has_its_own_answers(tmp_path: Path) -> None:
    example = build(tmp_path, [FIXED], "250")[0]
    assert example["answers"] == ["barn", "stable"]
    assert example["evidence"][0]["text"] == "The barn is red."


def test_reasoning_is_scored_by_its_last_line(tmp_path: Path) -> None:
    example = build(tmp_path, [NEEDLE], "cot-250")[0]
    other = next(name for name in NEEDLE["character_set"] if name != example["answer"])
    assert "step by step" in example["instruction"]
    assert primary("nolima", example, f"{other}? No.\n{example['answer']}") == 1.0
    assert primary("nolima", example, f"{example['answer']}? No.\n{other}") == 0.0


@pytest.mark.parametrize("column", ["id", "needle", "questions", "character_set", "tests"])
def test_a_missing_column_is_named(column: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"no column '{column}'"):
        build(tmp_path, [{key: NEEDLE[key] for key in NEEDLE if key != column}], "250")


def test_a_book_without_a_usable_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="longer than 250 tokens"):
        build(tmp_path, [NEEDLE], "250", book="word " * 1000)


def test_needles_are_needed(tmp_path: Path) -> None:
    build(tmp_path, [NEEDLE], "250")
    (tmp_path / "nolima" / "needlesets" / "needle_set.json").unlink()
    with pytest.raises(DataError, match=r"there must be one set of needles \(got 0\)"):
        list(load("nolima", "250", data_dir=tmp_path))
