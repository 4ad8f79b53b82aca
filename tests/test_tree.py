"""The shape of the tree: no module imports itself by way of others, no name means two things, no module is a scrap.

What is still to be mended is listed here with its reason; a list may only become shorter.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import context_bench
from context_bench.registry import BUILT_IN, registry
from source_tree import Source, find_cycles, find_importers, find_imports, read_sources

CYCLES_TO_MEND: dict[str, str] = {
    "cli": "the commands ask the parser for its options, and the parser asks the package for the commands",
    "store.fingerprints": "a wrapper is described by its parts, which the package's own function describes",
    "tap": "a stream is made of a reply, and a reply is made of a stream",
}
"""Packages that still have modules which import each other."""

SAME_SUBJECT: dict[str, str] = {
    "adapt": "accepts whatever a user hands over as a component of that kind",
    "multiple_choice": "the datasets with options, and the evaluator of their answers",
    "nolima": "the dataset and the rule of its authors",
    "official": "the number that the authors of a benchmark report",
}
"""Names that several modules share because they are about one thing."""

NAMES_TO_MEND: dict[str, str] = {
    "budget": "engine: money; systems: tokens",
    "code": "datasets: a family of datasets; store.fingerprints: compiled Python",
    "diff": "cli: a command; tap: the comparison of two requests",
    "endpoint": "http: the client; tap: the server",
    "extract": "sandbox: code in a reply; tap: what was sent",
    "masking": "text: what a secret is; cli: where a command line holds one",
    "numbers": "cli: types of arguments; tap: what was counted",
    "prefix": "metrics: a metric; tap: the comparison of requests",
    "run": "cli, conformance, engine, sandbox",
    "runs": "cli: a command; store: the list of runs",
    "schemas": "conformance: tools; store: the database",
    "secrets": "http: in requests; tap: in what is recorded",
    "streams": "cli: stdout and stderr; conformance: server-sent events",
    "tools": "datasets: a family of datasets; conformance: a check",
    "upstream": "conformance: a server; reporters: a table",
}
"""Names that still mean different things in different packages."""

LOADED_BY_NAME: dict[str, str] = {
    "__main__": "python -m context_bench",
    "evaluators.math.symbolic": "runs alone in a worker process, which imports it by name",
}
"""Small modules that no import statement names."""

SCRAPS_TO_MEND: dict[str, str] = {
    "reporters.functions": "reporters",
    "sandbox.dress": "sandbox.extract",
    "sandbox.inside.mirror": "sandbox.inside.peer",
    "store.damage": "store.reader",
    "store.fingerprints.gold": "store.fingerprints",
}
"""Small modules with a single importer, and that importer."""

SMALL = 40


@cache
def _read_package() -> dict[str, Source]:
    return read_sources(Path(context_bench.__file__).parent)


def _shorten(module: str) -> str:
    return module.removeprefix("context_bench.")


def _find_package(modules: list[str], packages: dict[str, str]) -> str | None:
    """Find the listed package that holds all the modules."""
    for package in packages:
        full = f"context_bench.{package}"
        if all(module == full or module.startswith(f"{full}.") for module in modules):
            return package
    return None


# --- cycles


def test_no_module_imports_itself_by_way_of_others() -> None:
    cycles = find_cycles(find_imports(_read_package()))
    assert [cycle for cycle in cycles if _find_package(cycle, CYCLES_TO_MEND) is None] == []


def test_every_listed_package_still_has_a_cycle() -> None:
    cycles = find_cycles(find_imports(_read_package()))
    assert set(CYCLES_TO_MEND) == {_find_package(cycle, CYCLES_TO_MEND) for cycle in cycles} - {None}


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
    named: dict[str, list[str]] = defaultdict(list)
    for source in _read_package().values():
        if not source.is_package:
            named[source.name].append(_shorten(source.module))
    return {name: modules for name, modules in named.items() if len(modules) > 1}


def test_no_module_name_means_two_things() -> None:
    known = {*SAME_SUBJECT, *NAMES_TO_MEND}
    assert {name: modules for name, modules in _find_repeated_names().items() if name not in known} == {}


def test_every_listed_name_is_still_repeated() -> None:
    assert {*SAME_SUBJECT, *NAMES_TO_MEND} - set(_find_repeated_names()) == set()


# --- scraps


def _list_component_modules() -> set[str]:
    """List the modules of shipped components, which users look for by name."""
    names = [(kind, name) for kind, shipped in BUILT_IN.items() if isinstance(shipped, dict) for name in shipped]
    return {registry.get(kind, name).__module__ for kind, name in names}


def _find_scraps() -> dict[str, str]:
    """Find the small modules with one importer or none, and that importer."""
    sources = _read_package()
    importers = find_importers(find_imports(sources))
    by_name = _list_component_modules()
    return {
        _shorten(module): ", ".join(map(_shorten, sorted(importers[module])))
        for module, source in sources.items()
        if source.lines < SMALL and len(importers[module]) < 2
        if not source.is_package and module not in by_name and ".adapters." not in module
    }


def test_a_small_module_has_several_importers_or_a_name_that_users_look_for() -> None:
    found = {module: importer for module, importer in _find_scraps().items() if module not in LOADED_BY_NAME}
    assert {module: importer for module, importer in found.items() if module not in SCRAPS_TO_MEND} == {}


def test_every_listed_scrap_is_still_there() -> None:
    assert {*SCRAPS_TO_MEND, *LOADED_BY_NAME} - set(_find_scraps()) == set()
