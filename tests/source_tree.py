"""Reads a tree of Python sources without importing it: its modules, and which of them import which.

Every import counts, also one inside a function; what stands under `if TYPE_CHECKING` is never run, and is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import context_bench

__all__ = ["Source", "find_cycles", "find_imports", "read_package", "read_sources"]

PACKAGE = Path(context_bench.__file__).parent


@dataclass(frozen=True)
class Source:
    """One module: its full name, its file and its syntax tree."""

    module: str
    path: Path
    tree: ast.Module
    lines: int

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__` of a package."""
        return self.path.name == "__init__.py"

    @property
    def name(self) -> str:
        """The last part of its full name."""
        return self.module.rpartition(".")[2]

    @property
    def file(self) -> str:
        """Its path inside the package of this project."""
        return self.path.relative_to(PACKAGE).as_posix()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its tree."""
        return list(ast.walk(self.tree))


@cache
def read_package() -> dict[str, Source]:
    """Read the package of this project, once for all tests of a process."""
    return read_sources(PACKAGE)


def read_sources(root: Path) -> dict[str, Source]:
    """Read every module of the package in a folder, by its full name."""
    sources: dict[str, Source] = {}
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text(encoding="utf-8")
        sources[module] = Source(module, path, ast.parse(text), len(text.splitlines()))
    return sources


def find_imports(sources: Mapping[str, Source]) -> dict[str, set[str]]:
    """Find the modules of the tree that each module imports; `from package import name` may mean a module or a name."""
    return {module: set(_list_imported(source.tree, sources)) - {module} for module, source in sources.items()}


def _list_imported(tree: ast.Module, sources: Mapping[str, Source]) -> Iterator[str]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in sources)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                named = f"{node.module}.{alias.name}"
                yield from (each for each in [named if named in sources else node.module] if each in sources)
        waiting += ast.iter_child_nodes(node)


def find_cycles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Find the groups of modules that import each other, directly or by way of others; each group sorted."""
    reached = {module: _follow(module, imports) for module in imports}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in imports
        if module in reached[module]
    }
    return sorted(sorted(group) for group in groups)


def _follow(module: str, imports: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [*imports[module]]
    while waiting:
        other = waiting.pop()
        if other not in reached:
            reached.add(other)
            waiting += imports[other]
    return reached
