"""Which part of the package may import which, as data. Imports point one way; nothing imports the CLI.

Every import counts, also those inside functions and under TYPE_CHECKING.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from banks import each_case
from source_tree import Source, read_package

BASE = {"_lazy", "_version", "caveats", "config", "errors", "refs", "registry", "results", "stats"} | {
    *("options", "compare", "numbers", "output.plots", "settings", "summary", "tallies", "text", "traits", "types")
}
"""What everything stands on. It imports nothing above it; the registry knows the rest by name only."""

TOKENS = {"utils"}

MAY_IMPORT: dict[str, set[str]] = {
    # the base, from the bottom
    "_lazy": set(),
    "_version": set(),
    "errors": set(),
    "options": {"errors"},
    "config": {"options"},
    "settings": {"config", "options"},
    "numbers": set(),
    "stats": {"config", "errors", "text"},
    "text": {"errors"},
    "registry": {"errors"},
    "traits": {"errors", "numbers"},
    "refs": {"errors", "registry", "traits"},
    "types": {"results"},  # for annotations alone
    "caveats": {"numbers", "compare", "settings", "results", "text"},  # of results the annotations alone
    "tallies": {"numbers", "caveats", "errors", "stats", "traits", "types", "results"},
    "summary": {
        "errors",
        "numbers",
        "caveats",
        "compare",
        "config",
        "registry",
        "settings",
        "stats",
        "tallies",
        "traits",
        "types",
        "results",
    },
    # comparison; runs are read from the store
    "compare": {"numbers", "config", "errors", "settings", "stats", "results", "summary", "text", "registry", "store"},
    "results": {
        "numbers",
        "compare",
        "errors",
        "output.plots",
        "registry",
        "settings",
        "stats",
        "summary",
        "text",
        "types",
    },
    # what counts, asks, keeps and runs
    "utils": {"errors"},
    "pricing": BASE | TOKENS,
    "wire": BASE | TOKENS,  # the forms of the APIs
    "traffic": BASE | TOKENS | {"wire", "pricing"},  # what was seen of a request
    "processes": BASE,
    "http": BASE | TOKENS | {"wire.events"},
    "store": BASE | TOKENS,
    "sandbox": BASE | {"processes"},
    # the components, side by side: none knows another kind, but for what a model was sent
    "metrics": BASE | TOKENS | {"pricing"},
    "datasets": BASE | TOKENS | {"wire", "traffic"},
    "systems": BASE | TOKENS | {"wire", "processes", "http", "store.fingerprints"},
    # what stands behind a proxy
    "tap": BASE | TOKENS | {"wire", "traffic", "processes", "http", "systems", "store.fingerprints"},
    "evaluators": BASE
    | TOKENS
    | {"wire", "traffic", "processes", "http", "sandbox"}
    | {"systems.chat", "systems.reference", "systems.prompts"},
    "local": BASE | TOKENS | {"wire", "processes", "http", "tap", "traffic"},
    "conformance": BASE | TOKENS | {"wire", "http", "tap"},
    # what runs them
    "core": BASE
    | TOKENS
    | {"ray.ray_engine"}  # to know a cluster from this machine
    | {"monitors"}  # the run starts those that were asked for
    | {"pricing", "http", "store", "metrics", "evaluators", "datasets", "systems"}
    | {"wire", "traffic"},
    "monitors": BASE | TOKENS | {"core", "pricing", "traffic"},
    "runner": BASE
    | TOKENS
    | {"monitors"}
    | {"pricing", "http", "store", "metrics", "evaluators", "datasets", "systems", "core", "ray.ray_engine"},
    "ray": BASE | TOKENS | {"pricing", "http", "store", "datasets", "evaluators", "systems", "core", "runner"},
    # memory systems: conversations are written once, and their questions are examples of a run
    "memory": BASE
    | TOKENS
    | {"pricing", "http", "store", "metrics", "evaluators", "datasets", "systems", "core", "monitors", "runner"}
    | {"wire", "traffic", "processes", "tap"},
    "fuzz": BASE | TOKENS | {"wire", "conformance", "evaluators", "systems", "memory.members"},
    # what shows the result
    "output": BASE | TOKENS | {"pricing", "datasets.catalog", "memory.findings", "wire", "traffic", "store"},
    # sends recorded traffic through systems, and shows what became of it
    "replay": BASE | TOKENS | {"conformance", "http", "output", "pricing", "processes", "tap", "traffic", "wire"},
    # bundles of runs, and claims that are checked
    "claims": BASE
    | TOKENS
    | {"pricing", "traffic", "store", "evaluators", "datasets", "systems", "core", "runner", "memory"}
    | {"metrics", "monitors", "output", "replay"},
    "reporters": BASE | {"output"},
    "pytest": BASE | {"runner"},
    # what checks a part as a run would use it
    "testing": BASE
    | TOKENS
    | {"datasets", "evaluators", "http", "memory", "metrics", "output", "runner", "store", "systems"},
    "cli": BASE
    | TOKENS
    | {"pricing", "http", "store", "metrics", "evaluators", "datasets", "systems", "core", "runner"}
    | {
        "monitors",
        "wire",
        "traffic",
        "processes",
        "tap",
        "local",
        "conformance",
        "fuzz",
        "replay",
        "claims",
        "output",
        "ray",
        "memory",
        "testing",  # `datasets check`
    },
    # the front door
    "__init__": BASE
    | TOKENS
    | {"systems", "runner", "pricing", "store", "core", "monitors", "ray", "tap", "local", "memory"},
    "__main__": {"cli"},
}

REQUIRED = {"orjson", "pycurl", "rapidfuzz", "splintr", "tomli", "zstandard"}
"""Installed with the package, so that a module may import them at its top; all else is imported where it is used."""


def _part(source: str) -> str:
    return source.split("/")[0].removesuffix(".py")


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        if node.module == "context_bench":
            return [f"context_bench.{alias.name}" for alias in node.names]
        return [node.module or ""]
    return []


def _inner(source: Source) -> Iterator[str]:
    """Every module of ours that a source imports, without the leading `context_bench.`."""
    for node in source.nodes:
        for module in _modules(node):
            if module.split(".")[0] == "context_bench":
                yield module.partition(".")[2]


def _allowed(module: str, allowed: set[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in allowed)


def test_only_the_store_knows_its_database() -> None:
    users = {source.file for source in read_package().values() for node in source.nodes if "sqlite3" in _modules(node)}
    assert {_part(source) for source in users} == {"store"}


def test_every_part_is_in_the_table() -> None:
    assert {_part(source.file) for source in read_package().values()} <= set(MAY_IMPORT)


@each_case("part", MAY_IMPORT)
def test_a_part_imports_only_what_it_may(part: str) -> None:
    wrong = [
        f"{source.file} imports {module}"
        for source in read_package().values()
        if _part(source.file) == part
        for module in _inner(source)
        if not _allowed(module, MAY_IMPORT[part] | {part})
    ]
    assert wrong == []


UPWARD = {("compare", "store"), ("core", "monitors"), ("core", "ray.ray_engine"), ("runner", "ray.ray_engine")}
"""Runs to compare are read from the store; a run recognizes the engine of a cluster."""


def test_the_table_itself_points_one_way() -> None:
    order = list(MAY_IMPORT)
    above = [
        (part, other)
        for part in order
        for other in MAY_IMPORT[part] - BASE
        if (part, other) not in UPWARD
        and order.index(other.split(".")[0]) > order.index(part)
        and part not in ("__init__", "__main__")
    ]
    assert above == []
    assert not any("cli" in allowed for part, allowed in MAY_IMPORT.items() if part != "__main__")


def test_imports_are_absolute() -> None:
    relative = [
        source.file
        for source in read_package().values()
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def _at_the_top(tree: ast.Module) -> Iterator[str]:
    """Modules that are imported as soon as the source is; `if TYPE_CHECKING` is not run."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                waiting += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            waiting += node.body
        else:
            yield from _modules(node)


def test_optional_libraries_are_imported_where_they_are_used() -> None:
    known = REQUIRED | {"context_bench"} | set(sys.stdlib_module_names) | {"tomllib"}
    eager = [
        f"{source.file} imports {module}"
        for source in read_package().values()
        for module in _at_the_top(source.tree)
        if module.split(".")[0] not in known and (source.file, module) != ("pytest.py", "pytest")  # which loads it
    ]
    assert eager == []


@pytest.mark.parametrize("name", ["helpers", "common", "manager", "base", "misc"])
def test_nothing_is_called_a_home_for_whatever_has_none(name: str) -> None:
    assert not [source.file for source in read_package().values() if source.path.stem == name]
