"""The code that parts are made of, as it is brought to workers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import context_bench
import ray_parts
from context_bench.ray.shipping import find_user_modules, stage_modules
from context_bench.systems.adapt import build_systems
from context_bench.systems.reference import BM25


def test_a_module_of_the_users_is_brought_along_and_nothing_that_is_installed() -> None:
    assert [module.__name__ for module in find_user_modules([ray_parts.Halve(), BM25()])] == ["ray_parts"]


def test_a_file_by_its_path_goes_under_the_name_by_which_it_was_imported(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def f(example):\n    return example['context'][:1]\n")
    (system,) = build_systems(f"{tmp_path / 'one.py'}:f")
    (module,) = find_user_modules([system])
    (tmp_path / "stage").mkdir()
    staged = stage_modules([module], tmp_path / "stage")
    ours = str(Path(context_bench.__file__).parent)
    copy = str(tmp_path / "stage" / f"{module.__name__}.py")
    assert staged == {ours: ours, copy: str(tmp_path / "one.py")}
    assert Path(copy).read_text() == (tmp_path / "one.py").read_text()


def test_a_package_without_an_init_file_goes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare_package").mkdir()
    (tmp_path / "bare_package" / "one.py").write_text("class One:\n    name = 'one'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("bare_package.one")
    package = str(tmp_path / "bare_package")
    assert stage_modules(find_user_modules([module.One()]), tmp_path)[package] == package


def test_modules_that_a_notebook_uses_are_brought_along(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ModuleType("__main__")  # it has no file
    exec("import ray_parts\nclass Mine:\n    name = 'mine'\n", vars(notebook))
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    assert [module.__name__ for module in find_user_modules([notebook.Mine()])] == ["ray_parts"]
