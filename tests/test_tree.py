"""The shape of the tree: no module imports itself by way of others, no name means two things, no module is a scrap.

Exceptions are listed here, each with its reason.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import context_bench
from context_bench.cli.commands import COMMANDS, find_module
from context_bench.registry import BUILT_IN, registry
from source_tree import Source, find_cycles, find_importers, find_imports, read_sources

SAME_SUBJECT: dict[str, str] = {
    "adapt": "accepts what a user hands over as a component of that kind",
    "multiple_choice": "the datasets with options, and the evaluator of their answers",
    "nolima": "the dataset and the rule of its authors",
    "compare": "runs against each other: the formulas, and the command",
    "load": "builds components of that kind from references",
    "repeats": "several answers to one example: the formulas, and the metric",
    "curves": "quality against tokens: the formulas, and the curves of a run",
    "datasets": "data for systems, and for memory systems",
    "judge": "a model that rates answers: to examples, and from a memory",
    "nli": "the datasets with verdicts, and the evaluator of their answers",
    "official": "the rules of a benchmark's authors",
    "scoring": "what judges answers: in a run, and of a memory",
    "store": "the package, and the class that it is about",
    "systems": "systems, and memory systems",
}
"""Names that several modules or packages share because they are about one thing."""

LOADED_BY_NAME: dict[str, str] = {
    "__main__": "python -m context_bench",
    "evaluators.math.symbolic": "runs alone in a worker process, which imports it by name",
}
"""Small modules that no import statement names."""

SMALL = 40


@cache
def _read_package() -> dict[str, Source]:
    return read_sources(Path(context_bench.__file__).parent)


def _shorten(module: str) -> str:
    return module.removeprefix("context_bench.")


# --- cycles


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert find_cycles(find_imports(_read_package())) == []


CYCLIC_TREES: dict[str, dict[str, str]] = {
    "at the top": {"a.py": "import box.b", "b.py": "import box.a"},
    "by name": {"a.py": "from box.b import value", "b.py": "from box.a import other"},
    "inside a function": {"a.py": "from box.b import value", "b.py": "def f():\n    from box.a import other"},
    "inside a coroutine": {"a.py": "from box import b", "b.py": "async def f():\n    from box import a"},
    "inside a method": {"a.py": "import box.b", "b.py": "class C:\n    def f(self):\n        import box.a as x"},
    "inside a try": {"a.py": "import box.b", "b.py": "try:\n    import box.a\nexcept ImportError:\n    pass"},
    "where types are not checked": {
        "a.py": "import box.b",
        "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import box.a",
    },
    "with the package itself": {"__init__.py": "from box.a import value", "a.py": "from box import value"},
    "of three": {"a.py": "import box.b", "b.py": "import box.c", "c.py": "import box.a"},
    "across packages": {"a.py": "import box.inner.b", "inner/__init__.py": "", "inner/b.py": "import box.a"},
}


def _write_tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "box" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "box"


@pytest.mark.parametrize("kind", CYCLIC_TREES)
def test_a_cycle_is_found(kind: str, tmp_path: Path) -> None:
    files = CYCLIC_TREES[kind]
    (cycle,) = find_cycles(find_imports(read_sources(_write_tree(tmp_path, files))))
    names = {
        f"box/{name}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name, text in files.items()
        if text
    }
    assert set(cycle) == names


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "import box.b", "b.py": "import box.c", "c.py": ""},
        {"a.py": "import box.b", "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import box.a"},
        {"a.py": "import box.c", "b.py": "import box.c", "c.py": ""},
        {"__init__.py": "from box.a import value", "a.py": "import box.b", "b.py": ""},
        {"a.py": "import b", "b.py": "import a"},
    ],
    ids=["a chain", "types alone", "two that share one", "a package that shows its parts", "another package's modules"],
)
def test_no_cycle_is_found_where_none_is(files: dict[str, str], tmp_path: Path) -> None:
    assert find_cycles(find_imports(read_sources(_write_tree(tmp_path, files)))) == []


# --- names


def _find_repeated_names() -> dict[str, list[str]]:
    """Find the names of several modules or packages; a command may have the name of the package that it drives."""
    sources = _read_package()
    drivers = {find_module(command) for command in COMMANDS if f"context_bench.{command}" in sources}
    named: dict[str, list[str]] = defaultdict(list)
    for source in sources.values():
        if source.module not in drivers:
            named[source.name].append(_shorten(source.module))
    return {name: modules for name, modules in named.items() if len(modules) > 1}


def test_no_module_name_means_two_things() -> None:
    assert {name: modules for name, modules in _find_repeated_names().items() if name not in SAME_SUBJECT} == {}


def test_every_listed_name_is_still_repeated() -> None:
    assert set(SAME_SUBJECT) - set(_find_repeated_names()) == set()


# --- scraps


def _list_named_modules() -> set[str]:
    """List the modules of shipped components and of commands, which users look for by name."""
    names = [(kind, name) for kind, shipped in BUILT_IN.items() if isinstance(shipped, dict) for name in shipped]
    return {registry.get(kind, name).__module__ for kind, name in names} | set(map(find_module, COMMANDS))


def _find_scraps() -> dict[str, str]:
    """Find the small modules with one importer or none, and that importer."""
    sources = _read_package()
    importers = find_importers(find_imports(sources))
    by_name = _list_named_modules()
    return {
        _shorten(module): ", ".join(map(_shorten, sorted(importers[module])))
        for module, source in sources.items()
        if source.lines < SMALL and len(importers[module]) < 2
        if not source.is_package and module not in by_name and ".adapters." not in module
    }


def test_a_small_module_has_several_importers_or_a_name_that_users_look_for() -> None:
    assert {module: importer for module, importer in _find_scraps().items() if module not in LOADED_BY_NAME} == {}


def test_every_module_that_is_loaded_by_name_is_still_there() -> None:
    assert set(LOADED_BY_NAME) - set(_find_scraps()) == set()


# --- one home for the forms of the APIs


STREAM_WORDS = {
    *("delta", "text_delta", "input_json_delta", "content_block_delta", "content_block_start", "message_start"),
    *("message_delta", "message_stop", "chat.completion", "chat.completion.chunk"),
}
"""Fields and event types that nothing but a reply of an API has."""

WITNESSES = ("context_bench.wire.", "context_bench.conformance.")
"""`wire` is the home of the forms; `conformance` has its own on purpose: it is the witness."""


def test_replies_of_apis_are_read_in_one_place() -> None:
    elsewhere = [
        f"{_shorten(module)}, line {node.lineno}: {node.value!r}"
        for module, source in _read_package().items()
        if not module.startswith(WITNESSES)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and node.value in STREAM_WORDS
    ]
    assert elsewhere == []


def test_lanes_are_set_up_by_the_scheduler_and_the_run_alone() -> None:
    importers = find_importers(find_imports(_read_package()))["context_bench.engine.scheduler"]
    users = [
        _shorten(module)
        for module in sorted(importers)
        for node in ast.walk(_read_package()[module].tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Feed"
    ]
    assert users == ["engine.execute"]
