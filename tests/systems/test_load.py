"""From what a user types after --system to systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_bench.errors import UsageError
from context_bench.systems import RandomDrop, Truncate
from context_bench.systems.adapt import build_systems

CODE = """
class Cut:
    def __init__(self, size=3):
        self.size = size
        self.name = "cut"
    def process(self, example):
        return {"context": example["context"][: self.size]}

class NoSystem:
    pass

ready = Cut(1)

def shrink(example, size=2):
    return example["context"][:size]

def anything(example, **options):
    return str(options)

number = 5
"""
EXAMPLE = {"id": 1, "context": "abcdef"}


@pytest.fixture
def code(tmp_path: Path) -> str:
    file = tmp_path / "own.py"
    file.write_text(CODE)
    return str(file)


def test_a_system_is_called_by_the_text_that_was_typed() -> None:
    (system,) = build_systems("truncate:ratio=0.3,keep=tail")
    assert system.name == "truncate:ratio=0.3,keep=tail"
    assert system.fingerprint == Truncate(0.3, keep="tail").fingerprint  # type: ignore[attr-defined]


def test_a_sweep_makes_several() -> None:
    names = [system.name for system in build_systems("bm25:ratio=0.1|0.3")]
    assert names == ["bm25:ratio=0.1", "bm25:ratio=0.3"]


def test_the_seed_of_the_run_reaches_systems_that_have_one() -> None:
    (system,) = build_systems("random-drop", seed=7)
    assert system.fingerprint == RandomDrop(seed=7).fingerprint  # type: ignore[attr-defined]
    (system,) = build_systems("random-drop:seed=3", seed=7)
    assert system.fingerprint == RandomDrop(seed=3).fingerprint  # type: ignore[attr-defined]
    assert len(list(build_systems("truncate", seed=7))) == 1


@pytest.mark.parametrize(
    ("reference", "context"),
    [("Cut", "abc"), ("Cut:size=4", "abcd"), ("ready", "a"), ("shrink", "ab"), ("shrink:size=5", "abcde")],
)
def test_ones_own_classes_objects_and_functions(code: str, reference: str, context: str) -> None:
    (system,) = build_systems(f"{code}:{reference}")
    assert system.name == f"{code}:{reference}"
    assert system.process(EXAMPLE) == {"context": context}


def test_a_function_may_take_anything(code: str) -> None:
    (system,) = build_systems(f"{code}:anything:a=1")
    assert system.process(EXAMPLE) == {"context": "{'a': 1}"}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("Cut:sise=4", "unknown parameter 'sise'; did you mean size? it takes size"),
        ("shrink:sise=4", "unknown parameter 'sise'; did you mean size? it takes size"),
        ("shrink:4", "'4' is not key=value"),
        ("Cut:4", "'4' is not key=value"),
        ("ready:size=4", "this system is already an instance and takes no parameters"),
        ("number", "is not a system"),
        ("NoSystem", "a NoSystem is not a system: it has no .process"),
        ("Missing", "has no 'Missing'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(code: str, reference: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        list(build_systems(f"{code}:{reference}"))
    assert message in str(caught.value)


def test_a_required_parameter_that_is_missing() -> None:
    with pytest.raises(UsageError, match="base_url"):
        list(build_systems("openai-proxy"))
