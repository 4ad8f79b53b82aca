"""The effects of importing a module, beyond naming things: it may set a seed, or change a library.

Statements that only define, import or set something are left out, since what they name is followed where it is used;
so is a program's own part (`__main__`), which runs the benchmark.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from context_bench.store.fingerprints.modules import parse_source, read_literals
from context_bench.store.fingerprints.origin import USER, find_module_home
from context_bench.store.fingerprints.unknown import Unknown

__all__ = ["find_effects"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def find_effects(name: str, reached: dict[str, None]) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """Find the statements of a loaded module that do something, with the code and plain values that they may name.

    The modules of the user's that it imports are added to `reached`.
    """
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None) or ""
    if module is None or name == "__main__" or not path.endswith(".py"):
        return
    try:
        tree = parse_source(path)
    except Unknown:
        return
    package = str(getattr(module, "__package__", "") or "")
    doing: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, _SCOPES) or _is_main(statement):
            continue
        inner = list(_walk(statement))
        for each in inner:
            reached.update(dict.fromkeys(_find_imported(each, package)))
        sets = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)
        if not sets and any(isinstance(each, ast.Call) for each in inner):
            doing.append(statement)
    if doing:
        code = compile(ast.Module(doing, type_ignores=[]), "<module>", "exec", dont_inherit=True)
        yield code, {**_find_code(module), **dict(read_literals(tree)), "__package__": package}


def _find_code(module: ModuleType) -> dict[str, Any]:
    """Find the functions, classes and modules that a module names; other values may be new each time."""
    return {name: each for name, each in vars(module).items() if isinstance(each, FunctionType | type | ModuleType)}


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a statement and the nodes in it, but for the bodies of functions and classes."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _SCOPES):
            yield from _walk(child)


def _find_imported(node: ast.AST, package: str) -> Iterator[str]:
    """Find the loaded modules of the user's that a statement imports."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        try:
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package or None)
        except ImportError:
            return
        names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
    for name in names:
        parts = name.split(".")
        for end in range(len(parts)):
            around = ".".join(parts[: end + 1])
            if around in sys.modules and find_module_home(around) == USER:
                yield around
