"""Modules that are imported inside functions: described from their files, since they may not be loaded yet.

A module is described the same before and after it is loaded; what was replaced in it since counts besides. Nothing is
imported here.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from context_bench.store.fingerprints.compiled_code import Import, Load, Uses, describe_code, find_uses
from context_bench.store.fingerprints.origin import USER, describe_library, find_home, hash_file
from context_bench.store.fingerprints.unknown import Unknown
from context_bench.store.keys import digest

__all__ = ["ModuleFiles", "is_loader", "parse_source", "parse_text", "read_literals"]

_SPECS = {"spec_from_file_location", "spec_from_loader", "module_from_spec", "find_spec"}

_LOADERS = {
    "builtins": {"eval", "exec", "__import__"},
    "importlib": {"import_module", "__import__", "reload"},
    "importlib.util": _SPECS,
    **{name: {"__import__", *_SPECS} for name in ("importlib._bootstrap", "_frozen_importlib")},
    **dict.fromkeys(("importlib._bootstrap_external", "_frozen_importlib_external"), _SPECS),
    "runpy": {"run_path", "run_module"},
    "sys": {"modules"},
}
"""Functions that load code which cannot be foreseen, unless its name is written there."""

_PACKAGES = {name for name in _LOADERS if name != "builtins"}


def is_loader(value: Any) -> bool:
    """Whether a value is one of these functions, or the table of loaded modules."""
    if value is sys.modules:
        return True
    if not isinstance(value, FunctionType | BuiltinFunctionType):
        return False
    return value.__name__ in _LOADERS.get(str(value.__module__), ())


class ModuleFiles:
    """Describes modules by their files.

    Args:
        describe: Describes any value; used for what was replaced in a module that is loaded.
    """

    def __init__(self, describe: Callable[[Any], Any]) -> None:
        self._describe = describe
        self._known: dict[str, str] = {}

    def describe_import(self, statement: Import, package: str) -> list[str]:
        """Describe everything that an import statement brings in, the packages around it included."""
        try:
            name = importlib.util.resolve_name("." * statement.level + statement.name, package or None)
        except ImportError:
            raise Unknown from None
        parts = name.split(".")
        found = [self.describe_module(".".join(parts[: end + 1])) for end in range(len(parts))]
        locations = _find_locations(name)
        inner = set(statement.parts)
        if "*" in inner:
            inner = {each.name for each in pkgutil.iter_modules(locations)}
        if locations:
            found += [self.describe_module(f"{name}.{part}") for part in sorted(inner) if _find_spec(f"{name}.{part}")]
        return found

    def describe_module(self, name: str) -> str:
        """Describe a module by its file, a library by its version, and a missing one by its absence."""
        if name not in self._known:
            self._known[name] = "itself"
            try:
                self._known[name] = digest(repr(self._describe_found(name, _find_spec(name)))).hex()
            except BaseException:
                del self._known[name]
                raise
        return self._known[name]

    def _describe_found(self, name: str, spec: importlib.machinery.ModuleSpec | None) -> Any:
        if spec is None:
            return ("absent", name)
        locations = list(spec.submodule_search_locations or ())
        path = spec.origin if spec.has_location else next(iter(locations), None)
        if path is None or find_home(path) != USER:
            return ("library", *describe_library(name, path))
        if not spec.has_location:
            return ("package", name.rpartition(".")[2])
        if not path.endswith(".py"):
            return ("file", hash_file(path))
        return self._describe_source(name, spec, path)

    def _describe_source(self, name: str, spec: importlib.machinery.ModuleSpec, path: str) -> Any:
        tree = parse_source(path)
        code: CodeType = compile(tree, "<module>", "exec", dont_inherit=True)
        uses = find_uses(code)
        _refuse_hidden_code(uses)
        package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
        imports = [self.describe_import(each, package) for each in uses.imports]
        named = [self.describe_module(each.text) for each in uses.loads if each.text and _loads_module(each)]
        module = sys.modules.get(name)
        replaced = [] if module is None else [*self._find_replaced(module, tree, code)]
        return ("module", describe_code(code), imports, named, replaced)

    def _find_replaced(self, module: ModuleType, tree: ast.Module, code: CodeType) -> Iterator[tuple[str, Any]]:
        """Find functions and plain values of a loaded module that differ from its file."""
        compiled = {each.co_name: each for each in code.co_consts if isinstance(each, CodeType)}
        for name, value in read_literals(tree):
            if name in vars(module) and self._describe(vars(module)[name]) != self._describe(value):
                yield name, self._describe(vars(module)[name])
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and not statement.decorator_list:
                live = vars(module).get(statement.name)
                same = isinstance(live, FunctionType) and describe_code(live.__code__) == describe_code(
                    compiled[statement.name]
                )
                if not same:
                    yield statement.name, self._describe(live)


def read_literals(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Read the names that a module sets once, to a literal value."""
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and stored.count(target.id) == 1:
                try:
                    yield target.id, ast.literal_eval(statement.value)
                except ValueError:
                    continue


def _refuse_hidden_code(uses: Uses) -> None:
    """Raise Unknown where a module that is not loaded brings in code by a text that is not written there."""
    for load in uses.loads:
        path = (load.name, *load.attributes)
        hidden = path[0] in _LOADERS["builtins"] or any(
            path[end] in _LOADERS.get(".".join(path[:end]), ()) for end in range(1, len(path))
        )
        if hidden and not (load.text and _loads_module(load)):
            raise Unknown
    for each in uses.imports:
        if each.name in _PACKAGES and _LOADERS[each.name].intersection(each.parts):
            raise Unknown


def _loads_module(load: Load) -> bool:
    return (load.name, *load.attributes)[:2] in (("importlib", "import_module"), ("__import__",))


def parse_source(path: str) -> ast.Module:
    """Parse a file; Unknown when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        raise Unknown from None


def parse_text(text: str) -> str:
    """Parse source text, which drops its comments and layout."""
    try:
        return ast.dump(ast.parse(textwrap.dedent(text)))
    except SyntaxError:
        raise Unknown from None


def _find_spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Find where a module would come from; unlike `importlib.util.find_spec` this imports no package on the way."""
    loaded: importlib.machinery.ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return loaded
    parent, _, _ = name.rpartition(".")
    try:
        if not parent:
            return importlib.util.find_spec(name)
        locations = _find_locations(parent)
        return importlib.machinery.PathFinder.find_spec(name, locations) if locations else None
    except (ImportError, ValueError, AttributeError):
        return None


def _find_locations(name: str) -> list[str]:
    spec = _find_spec(name)
    return list(spec.submodule_search_locations or ()) if spec is not None else []
