"""Public datasets: what the loader adds to an adapter, and how it says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.public import load
from context_bench.errors import DataError, UnknownName, UsageError
from context_bench.registry import load_dataset

RECORD = {"question": "Who?", "answer": ["Ada"]}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(tmp_path, "natural-questions/NQ-open.dev.jsonl", *[{**RECORD, "question": f"Who {n}?"} for n in range(20)])
    return tmp_path


def write(folder: Path, name: str, *records: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_examples_carry_their_dataset_and_its_instruction(data: Path) -> None:
    first = next(iter(load("natural-questions", data_dir=data)))
    assert first["dataset"] == "natural-questions"
    assert first["instruction"].startswith("Answer with the shortest phrase")
    assert first["id"] == "natural-questions-open-0"


def test_it_can_be_iterated_twice_and_by_its_registered_name(data: Path) -> None:
    dataset = load_dataset("natural_questions", data_dir=data)
    assert len(list(dataset)) == len(list(dataset)) == 20


def test_the_environment_names_the_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_DATA", str(data))
    assert len(list(load("natural-questions"))) == 20


def test_a_sample(data: Path) -> None:
    def ids(**how: Any) -> list[str]:
        return [example["id"] for example in load("natural-questions", data_dir=data, n=5, **how)]

    assert ids() == [f"natural-questions-open-{n}" for n in range(5)]
    assert ids(sample="random", seed=1) == ids(sample="random", seed=1) != ids(sample="random", seed=2)


def test_the_source_tells_versions_of_a_file_apart(data: Path) -> None:
    def source() -> Any:
        return load("natural-questions", data_dir=data).source

    before = source()
    assert list(before["files"]) == ["NQ-open.dev.jsonl"]
    write(data, "natural-questions/NQ-open.dev.jsonl", RECORD)
    assert source() != before


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"question": "Who?"}, "record 2: no column 'answer'; it has question; the catalog expects question, answer"),
        ({"question": "Who?", "answer": []}, "record 2: the layout is unknown (IndexError"),
        ({"question": "Who?", "answer": None}, "record 2: the layout is unknown (TypeError"),
        (["Who?"], "record 2: a record must be an object with columns (got list)"),
        (None, "record 2: a record must be an object with columns (got NoneType)"),
    ],
)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, record: Any, problem: str) -> None:
    path = write(tmp_path, "natural-questions/NQ-open.dev.jsonl", RECORD, record)
    with pytest.raises(DataError) as caught:
        list(load("natural-questions", data_dir=tmp_path))
    assert str(caught.value).startswith(f"natural-questions:open: {path}, {problem}")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"config": "opn"}, "natural-questions has no configuration 'opn'; it has open, oracle"),
        ({"config": "oracle"}, "no file for natural-questions:oracle"),
        ({"revision": "main"}, "--revision is for the hub"),
        ({"sample": "best"}, "a sample must be one of first, random, stratified"),
        ({"split": "train"}, "expected open/train.* or train.* or data/train.*"),
    ],
)
def test_a_wrong_choice_is_one_sentence(data: Path, arguments: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        load("natural-questions", data_dir=data, **arguments)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_names_that_are_no_public_dataset() -> None:
    for name in ("natural-question", "needle", ""):
        with pytest.raises(UnknownName, match="unknown public dataset"):
            load(name)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        load("natural-questions", data_dir=tmp_path / "nowhere")


def test_a_dataset_that_is_on_no_hub_says_where_to_put_its_files() -> None:
    with pytest.raises(UsageError, match="put its files under DIR/2wikimultihopqa/ and add --data-dir DIR"):
        load("2wikimultihopqa")


def test_several_configurations_at_once_are_told_apart(tmp_path: Path) -> None:
    for task in ("causal_judgement", "navigate"):
        write(tmp_path, f"bbh/{task}/test.jsonl", {"input": f"{task}?", "target": "Yes"})
    with pytest.raises(DataError, match="no file for bbh:boolean_expressions"):  # a part of BBH is not BBH
        load("bbh", data_dir=tmp_path)
    (example,) = load("bbh", "navigate", data_dir=tmp_path)
    assert example["meta"]["group"] == "navigate"
