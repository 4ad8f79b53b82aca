"""Programming tasks, from records in the sources' own schemas to a verdict of the sandbox.

Real records where CONTEXT_BENCH_DATA has them: a spread of them, or with CONTEXT_BENCH_SLOW=1 all.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.catalog import catalog
from context_bench.datasets.public import load
from context_bench.datasets.public.adapters import Where
from context_bench.datasets.public.adapters.code import mbpp
from context_bench.evaluators import CodeExecution
from context_bench.types import Example
from public_cases import Case, load_case, needed_columns, primary, prompt_of, real, write_file

SLOW = bool(os.environ.get("CONTEXT_BENCH_SLOW"))

needs_sandbox = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap (bwrap) is not installed")

HUMANEVAL = {
    "task_id": "HumanEval/900",
    "prompt": 'from typing import List\n\n\ndef last(items: List[int]) -> int:\n    """The last of some numbers."""\n',
    "canonical_solution": "    return items[-1]\n",
    "test": "METADATA = {}\n\ndef check(candidate):\n    assert candidate([1, 2]) == 2\n    assert candidate([7]) == 7",
    "entry_point": "last",
}
FULL = {
    "task_id": 20,
    "text": "Write a function to add a number to each item of a list.",
    "code": "def add_each(items, n):\r\n    return [item + n for item in items]\r\n",
    "test_list": [
        "assert add_each([1], 1) == [2]",
        "assert add_each([], 5) == []",
        "assert add_each([2, 3], 0) == [2, 3]",
    ],
    "test_setup_code": "",
    "challenge_test_list": [],
}
SANITIZED = {
    "source_file": "made.ipynb",
    "task_id": 21,
    "prompt": "Write a function to take the square root.",
    "code": "import math\ndef root(x):\n    return math.sqrt(x)",
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(root(4), 2)", "assert root(9) == 3", "assert root(0) == 0"],
}


def _case(name: str, record: dict[str, Any], right: str, wrong: str, asks: str, needs: str, **more: Any) -> Case:
    return Case(name, record, right, wrong, tuple(asks.split("|")), frozenset(needs.split("|")), **more)


_MBPP = "task_id|text|code|test_list|test_setup_code"
_CHECKED = "task_id|prompt|code|test_imports|test_list"
CASES = [
    _case(
        "humaneval",
        HUMANEVAL,
        f"```python\n{HUMANEVAL['prompt']}{HUMANEVAL['canonical_solution']}```",
        "    return items[0]\n",
        "def last(|The last of some numbers|code only",
        "|".join(HUMANEVAL),
    ),
    _case(
        "humaneval",
        HUMANEVAL,
        "    return items[-1]\n",
        "I cannot.",
        "def last(",
        "|".join(HUMANEVAL),
        layout="files",
        file="HumanEval.jsonl",
    ),
    _case(
        "mbpp",
        FULL,
        FULL["code"],
        "def add_each(items, n):\n    return items\n",
        "add a number|assert add_each([1], 1)",
        _MBPP,
    ),
    _case("mbpp", FULL, FULL["code"], "", "code only", _MBPP, layout="files", file="mbpp.jsonl"),
    _case(
        "mbpp",
        SANITIZED,
        SANITIZED["code"],
        "def root(x):\n    return x\n",
        "square root|assert root(9) == 3",
        _CHECKED,
        config="sanitized",
        layout="sanitized",
    ),
    _case(
        "mbpp",
        SANITIZED,
        SANITIZED["code"],
        "def square(x):\n    return x\n",
        "square root",
        _CHECKED,
        config="sanitized",
        layout="sanitized",
        file="sanitized-mbpp.json",
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case.id}{'-file' if case.file else ''}")
def case(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_record_has_the_columns_of_the_card(case: Case) -> None:
    assert {*case.record} == {*catalog()[case.name].columns[case.layout]}


def test_a_missing_column_is_named(case: Case, tmp_path: Path) -> None:
    assert needed_columns(case, tmp_path) == case.needs


@needs_sandbox
def test_the_reference_passes_and_another_program_does_not(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    prompt = prompt_of(example)
    for text in case.asks:
        assert prompt.count(text) == 1
    assert primary(case.name, example, case.right) == 1.0
    assert primary(case.name, example, case.wrong) == 0.0


def test_the_solution_is_not_in_the_prompt(case: Case, tmp_path: Path) -> None:
    (example,) = load_case(case, tmp_path)
    assert example["reference"].strip() not in prompt_of(example)


def test_setup_code_runs_before_the_tests(tmp_path: Path) -> None:
    setup = FULL | {"test_setup_code": "five = 5", "test_list": ["assert add_each([1], five) == [6]"]}
    (example,) = load_case(CASES[2], tmp_path, setup)
    assert example["test_setup_code"] == "five = 5"


def test_files_that_hold_all_splits_give_the_test_split(tmp_path: Path) -> None:
    records = [FULL | {"task_id": number} for number in (1, 10, 11, 510, 511, 600, 601, 974)]
    write_file(tmp_path / "mbpp" / "mbpp.jsonl", records)
    assert [example["id"] for example in load("mbpp", data_dir=tmp_path)] == [11, 510]


def _spread(examples: list[Example], count: int) -> list[Example]:
    return examples if SLOW else examples[:: -(-len(examples) // count)]


def _failures(examples: list[Example]) -> list[Any]:
    judge = CodeExecution(timeout=60)  # task 123 of MBPP takes seconds, and more on a busy machine
    programs = [{"response": each.get("prompt", "") + each["reference"]} for each in examples]
    with ThreadPoolExecutor(2) as threads:
        scores = threads.map(judge.score, examples, programs)
        return [example["id"] for example, score in zip(examples, scores) if score != {"pass_at_1": 1.0}]


@needs_sandbox
def test_real_humaneval() -> None:
    folder = real("humaneval", "HumanEval.jsonl.gz")
    examples = list(load("humaneval", data_dir=folder))
    assert len(examples) == len({each["id"] for each in examples}) == 164
    with gzip.open(Path(folder) / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as lines:
        assert {*json.loads(next(lines))} == {*catalog()["humaneval"].columns["files"]}
    assert _failures(_spread(examples, 25)) == []


@needs_sandbox
@pytest.mark.parametrize(
    ("config", "file", "records", "tested"),
    [("full", "mbpp.jsonl", 974, 500), ("sanitized", "sanitized-mbpp.json", 427, 257)],
)
def test_real_mbpp(config: str, file: str, records: int, tested: int) -> None:
    folder = real("mbpp", file)
    text = (Path(folder) / "mbpp" / file).read_text(encoding="utf-8")
    given = json.loads(text) if file.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    everything = [example for record in given for example in mbpp(record, Where(config, "", 0, "mbpp"))]
    assert len(everything) == len({each["id"] for each in everything}) == records
    examples = list(load("mbpp", config, data_dir=folder))
    assert len(examples) == tested
    # The loader says which dataset it is and asks for code; all else is the same.
    ours = {each["id"]: each for each in everything}
    assert all(ours[each["id"]].items() <= each.items() for each in examples)
    assert _failures(_spread(everything, 25)) == []
