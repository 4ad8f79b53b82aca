"""Loader functions under the names that scripts import."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import context_bench.datasets
from banks import each_case
from context_bench import evaluate
from context_bench.datasets import MODULES, load_jsonl
from context_bench.datasets.catalog import catalog
from context_bench.errors import DataError

NAMES = [(module, name) for module, names in MODULES.items() for name in names]


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of GSM8K as its authors publish them."""
    (tmp_path / "gsm8k").mkdir()
    rows = [{"question": f"What is {n} + 1?", "answer": f"{n} + 1 = {n + 1}\n#### {n + 1}"} for n in range(5)]
    (tmp_path / "gsm8k" / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("CONTEXT_BENCH_DATA", str(tmp_path))
    return tmp_path


def test_examples_of_a_public_dataset(records: Path) -> None:
    from context_bench.datasets.huggingface import gsm8k  # type: ignore[import-not-found]

    examples = gsm8k(n=3)
    assert isinstance(examples, list)
    assert [example["answer"] for example in examples] == ["1", "2", "3"]
    assert len(gsm8k()) == 5
    result = evaluate(lambda example: {"response": f"#### {example['id']}"}, examples, progress=False)
    assert [row.dataset for row in result.rows] == ["gsm8k"] * 3
    assert all("math_equiv" in row.scores for row in result.rows)


@each_case(("module", "name"), NAMES)
def test_every_loader_is_of_the_catalog(module: str, name: str) -> None:
    home = importlib.import_module(f"context_bench.datasets.{module}")
    loader = getattr(home, name)
    assert (loader.__name__, loader.__module__) == (name, home.__name__)
    assert MODULES[module][name] in catalog()
    assert name in dir(home)
    assert getattr(context_bench.datasets, module) is home


def test_a_split_that_is_a_configuration_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_bench.datasets.longcontext import infinitebench  # type: ignore[import-not-found]

    monkeypatch.setenv("CONTEXT_BENCH_DATA", str(tmp_path))
    (tmp_path / "infinitebench").mkdir()
    record = {"id": 1, "context": "c", "input": "q", "answer": ["a"], "options": []}
    (tmp_path / "infinitebench" / "passkey.jsonl").write_text(json.dumps(record) + "\n")
    assert [example["answer"] for example in infinitebench(split="passkey")] == ["a"]


def test_the_modules_have_no_files_and_stand_in_for_none() -> None:
    folder = Path(context_bench.datasets.__file__).parent
    assert not [name for name in (*MODULES, "local") if list(folder.glob(f"{name}*"))]


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(ImportError, match="cannot import name 'hotpot'"):
        from context_bench.datasets.huggingface import hotpot  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("context_bench.datasets.imagenet")


def test_nothing_is_loaded_before_a_function_is_called() -> None:
    code = (
        "import sys; from context_bench.datasets.qa import musique; "
        "heavy = 'datasets', 'huggingface_hub', 'context_bench.datasets.public'; "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# Files


def test_a_file(tmp_path: Path) -> None:
    from context_bench.datasets.local import load_jsonl as same  # type: ignore[import-not-found]

    path = tmp_path / "mine.jsonl"
    path.write_text('{"context": "a"}\n\n{"id": "x", "context": "b"}\n{"context": "c"}\n')
    assert load_jsonl(path) == [
        {"id": 0, "context": "a"},
        {"id": "x", "context": "b"},
        {"id": 3, "context": "c"},
    ]
    assert load_jsonl(str(path), n=2) == load_jsonl(path)[:2]
    assert same is load_jsonl


@pytest.mark.parametrize(("text", "said"), [("[1]\n", "line 1: an example must be an object"), ("{", "broken JSON")])
def test_a_file_that_holds_no_examples(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad.jsonl").write_text(text)
    with pytest.raises(DataError, match=said):
        load_jsonl(tmp_path / "bad.jsonl")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load_jsonl(tmp_path / "none.jsonl")
