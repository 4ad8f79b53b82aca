"""A system that a reference named can be made again elsewhere."""

from __future__ import annotations

from pathlib import Path

from context_bench.systems.adapt import build_systems, find_recipe
from context_bench.systems.reference import Truncate


def test_a_system_of_a_reference_is_made_again_under_its_name() -> None:
    (system,) = build_systems("truncate:ratio=0.25")
    recipe = find_recipe(system)
    assert recipe is not None
    make, parameters = recipe
    again = make(**parameters)
    example = {"id": 1, "context": " ".join(f"word{k}" for k in range(40))}
    assert again.name == system.name == "truncate:ratio=0.25"
    assert again.process(dict(example)) == system.process(dict(example))


def test_a_class_of_a_file_comes_with_its_parameters(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "class Own:\n"
        "    name = 'own'\n"
        "    def __init__(self, keep=1):\n"
        "        self.keep = keep\n"
        "    def process(self, example):\n"
        "        return {'context': example['context'][: self.keep]}\n"
    )
    (system,) = build_systems(f"{tmp_path / 'own.py'}:Own:keep=3")
    recipe = find_recipe(system)
    assert recipe is not None
    assert recipe[0](**recipe[1]).process({"context": "abcdef"}) == {"context": "abc"}


def test_a_system_that_somebody_made_has_none() -> None:
    assert find_recipe(Truncate(ratio=0.5)) is None
