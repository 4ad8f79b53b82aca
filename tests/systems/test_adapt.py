"""Whatever a user hands over as a system becomes one, or one sentence says why not."""

from __future__ import annotations

import asyncio
import copy
import functools
import pickle
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.errors import UsageError
from context_bench.systems import Truncate, adapt, rename_system
from context_bench.systems.adapt import build_systems
from context_bench.types import System


class Proper:
    name = "proper"
    extra = 5

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": example["context"].upper()}


def test_a_system_is_taken_as_it_is() -> None:
    system = Proper()
    assert adapt(system) is system


def test_a_function_is_called_with_the_example() -> None:
    def shout(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": example["context"].upper()}

    system = adapt(shout)
    assert isinstance(system, System)
    assert system.name == "shout"
    assert system.process({"id": 1, "context": "x"}) == {"response": "X"}


def test_a_text_from_a_function_is_the_new_context() -> None:
    assert adapt(lambda example: example["context"][:2]).process({"id": 1, "context": "abc"}) == {"context": "ab"}


@pytest.mark.parametrize(
    ("function", "name"),
    [(lambda example: "", "<lambda>"), (functools.partial(max, key=len), "partial"), (Proper().process, "process")],
)
def test_any_callable_has_a_name(function: Any, name: str) -> None:
    assert adapt(function).name == name


class NoName:
    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example


class NoProcess:
    name = "n"


class EmptyName(Proper):
    name = ""


class NumberName(Proper):
    name = 7  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (Proper, "Proper is a class: pass an instance of it, Proper(...)"),
        (NoProcess(), "a NoProcess is not a system: it has no .process"),
        (EmptyName(), "a EmptyName has no usable name: .name must be a text"),
        (NumberName(), "a NumberName has no usable name: .name must be a text"),
        ("truncate", "a str is not a system: it has no .process"),
        (None, "a NoneType is not a system: it has no .process"),
    ],
)
def test_what_is_no_system_is_told_what_it_lacks(thing: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        adapt(thing)
    assert str(caught.value) == message


def test_another_name_changes_nothing_else() -> None:
    system = rename_system(Proper(), "mine")
    assert isinstance(system, System)
    assert system.name == "mine"
    assert system.process({"id": 1, "context": "x"}) == {"response": "X"}
    assert system.extra == 5  # type: ignore[attr-defined]
    assert not hasattr(system, "aprocess")
    assert Proper.name == "proper"


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_system_under_another_name_can_be_copied_and_sent_to_another_process(clone: Any) -> None:
    system = clone(rename_system(Truncate(budget=3), "mine"))
    assert (system.name, system.keep) == ("mine", "head")


def test_the_same_name_needs_no_wrapper() -> None:
    system = Proper()
    assert rename_system(system, "proper") is system


def test_an_async_function_is_a_system_whose_calls_overlap() -> None:
    running = most = 0

    async def shorten(example):  # type: ignore[no-untyped-def]
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        return example["context"][:2]

    examples = [{"id": number, "context": "abcd", "answer": "ab"} for number in range(8)]
    result = evaluate(shorten, examples, max_workers=4, progress=False)
    assert [row.response for row in result.rows] == ["ab"] * 8
    assert most == 4
    assert adapt(shorten).process({"id": 1, "context": "xyz"}) == {"context": "xy"}


def test_a_memory_system_is_not_taken_for_another_one() -> None:
    class Memory:
        name = "mine"

        def reset(self) -> None: ...

        def ingest(self, turns: list[dict[str, Any]]) -> None: ...

        def query(self, question: str) -> str:
            return ""

    with pytest.raises(UsageError, match=r"a Memory is a memory system .*: use evaluate_memory\(\)"):
        adapt(Memory())
    with pytest.raises(UsageError, match="run each kind separately"):
        evaluate([Memory(), "passthrough"], [{"id": 1, "context": "c"}])


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_a_dataset_for_memory_systems_is_told_in_a_plain_sentence(name: str) -> None:
    said = f"unknown dataset '{name}': it is a memory dataset, which `context-bench memory --dataset {name}` runs"
    with pytest.raises(UsageError, match=said):
        evaluate("passthrough", name)


def test_a_class_needs_no_name(tmp_path: Path) -> None:
    """Its class or the reference names it; the store tells two of them apart by their code."""
    assert adapt(NoName()).name == "NoName"
    code = """
class Half:
    def __init__(self, part=2):
        self.part = part

    def process(self, example):
        return {"context": example["context"][: len(example["context"]) // self.part]}


ready = Half(3)
"""
    (tmp_path / "own.py").write_text(code)
    names = [f"{tmp_path}/own.py:{each}" for each in ("Half:part=4", "ready")]
    result = evaluate(names, [{"id": 1, "context": "x" * 400}], cache_dir=tmp_path / "store", progress=False)
    assert result.systems == names
    assert [len(row.response) for row in result.rows] == [100, 133]


def test_a_reference_to_the_users_code_takes_a_name_that_the_code_does_not_take(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("""
def keep(example, ratio=0.5):
    return {"context": str(ratio)}

class Ours:
    name = "Ours"
    def process(self, example):
        return {}

class Named(Ours):
    def __init__(self, name="x"):
        self.name = name + "!"
""")
    told = {
        "keep:name=rare,ratio=0.1|0.3": ["rare:ratio=0.1", "rare:ratio=0.3"],
        "Ours:name=ours": ["ours"],
        "Named:name=own": ["own!"],
    }
    for reference, names in told.items():
        systems = list(build_systems(f"{file}:{reference}"))
        assert [system.name for system in systems] == names
    assert [run_system(system) for system in build_systems(f"{file}:keep:name=rare,ratio=0.3")] == ["0.3"]


def run_system(system: Any) -> str:
    return str(system.process({"context": "text"})["context"])
