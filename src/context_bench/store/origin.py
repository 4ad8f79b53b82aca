"""Origin of code: its owner, the user files that it comes from and imports, and versions of libraries. Nothing is
imported to find it. User files are identified by content, wherever they are; installed packages by name and version.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import pkgutil
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution

DIGEST_SIZE = 16

USER, LIBRARY, PYTHON, OURS = "user", "library", "python", "ours"

_SITES = re.compile(r"^(.*[\\/](?:site|dist)-packages)[\\/]([^\\/]+)")
_PYTHON_VERSION = f"{platform.python_implementation()} {platform.python_version()}"

_LOADERS = {"__import__", "import_module", "run_path", "run_module", "spec_from_file_location", "spec_from_loader"}
"""Functions that load code by name: the code can be followed if the name is a literal, else it is unknown."""


def digest(*parts: bytes | str) -> bytes:
    """Digest parts of any length, in this order, into sixteen bytes."""
    hasher = blake2b(digest_size=DIGEST_SIZE)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


class Unknown(Exception):
    """Results depend on something that cannot be described."""


def _list_prefixes(*folders: str) -> tuple[str, ...]:
    """List the folders as path prefixes, with links also resolved."""
    return tuple({each + os.sep for folder in folders for each in (folder, os.path.realpath(folder))})


_PACKAGE = _list_prefixes(str(Path(__file__).parents[1]))
_STANDARD = _list_prefixes(*map(sysconfig.get_path, ("stdlib", "platstdlib")), os.path.dirname(os.__file__))


def find_home(path: str | None) -> str:
    """Find the owner of a file's code by its path; code without a file is the user's, or Python's if frozen."""
    if not path or path.startswith("<frozen"):
        return PYTHON if path else USER
    if path.startswith(_PACKAGE):
        return OURS
    if _SITES.match(path):
        return LIBRARY
    return PYTHON if path.startswith(_STANDARD) else USER


def find_module_home(name: str) -> str:
    """Find the owner of a loaded module; a module that is not loaded under its name is the user's."""
    module = sys.modules.get(name)
    if module is None:
        return USER
    path = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if path is None:
        return PYTHON if name in sys.builtin_module_names or name in sys.stdlib_module_names else USER
    return find_home(os.path.abspath(path))


def is_ours(kind: type) -> bool:
    """Whether a class is part of this package."""
    return find_module_home(kind.__module__) == OURS


def is_own_attribute(thing: Any) -> bool:
    """Whether a function or class is in its module under its own name, and so was not made by a call."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in str(getattr(thing, "__qualname__", "")).split("."):
        found = vars(found).get(part) if isinstance(found, ModuleType | type) else None
        found = getattr(found, "__func__", found)
    return found is thing


def describe_library(module: str, path: str | None = None) -> str:
    """Return the installed package of a module, with its version."""
    if path is None:
        path = getattr(sys.modules.get(module), "__file__", None) or ""
    if path.startswith(_PACKAGE) or module.partition(".")[0] == "context_bench":
        from context_bench._version import __version__

        return f"context-bench {__version__}"
    matched = _SITES.match(path)
    return _PYTHON_VERSION if matched is None else _find_version(matched[1], matched[2].partition(".")[0])


@cache
def _find_version(site: str, top: str) -> str:
    """Find the version of the installed package that a module comes from; without metadata, a digest of its files."""
    from importlib.metadata import Distribution  # importing this takes 17 ms, and most runs use no other package

    found = list(Distribution.discover(name=top, path=[site]))
    found = found or [each for each in Distribution.discover(path=[site]) if top in _list_packages(each)]
    if found:
        return " ".join(sorted(map(_describe_distribution, found)))
    root = Path(site)
    files = [path for path in root.glob(f"{top}.*") if path.is_file()]
    files += [path for path in (root / top).rglob("*") if path.suffix in (".py", ".so", ".pyd")]
    parts = [part for path in sorted(files) for part in (str(path.relative_to(root)), path.read_bytes())]
    return digest(*parts).hex()


def _list_packages(installed: Distribution) -> set[str]:
    """List the modules of a distribution, as its installer recorded them."""
    listed = [line.partition("/")[0].partition(".")[0] for line in (installed.read_text("RECORD") or "").splitlines()]
    return {*listed, *(installed.read_text("top_level.txt") or "").split()}


def _describe_distribution(installed: Distribution) -> str:
    """Return name and version, with a digest for an editable install, which may change within its version."""
    edited = installed.read_text("RECORD") if installed.read_text("direct_url.json") else None
    return f"{installed.name} {installed.version} {digest(edited).hex() if edited else ''}"


class ImportedFiles:
    """The user's files that code comes from, and all files that they import."""

    def __init__(self) -> None:
        # each file by its digest, and each import by the digest of the file, the name, and its target
        self.found: set[str] = set()
        self._known: dict[str, str] = {}

    def add_module(self, name: str) -> str:
        """Add a module with the packages around it; return the digest of its file, or a library's version."""
        parts = name.split(".")
        return [self._add(".".join(parts[: end + 1])) for end in range(len(parts))][-1]

    def _add(self, name: str) -> str:
        if name in self._known:
            return self._known[name]
        spec = None if name in sys.stdlib_module_names else _find_spec(name)
        locations = list(spec.submodule_search_locations or ()) if spec is not None else []
        path = spec.origin if spec is not None and spec.has_location else next(iter(locations), None)
        if name.partition(".")[0] in sys.stdlib_module_names:
            self._known[name] = _PYTHON_VERSION
        elif path is None:
            self._known[name] = "absent"
        elif find_home(path) != USER:
            self._known[name] = describe_library(name, path)
        elif os.path.isdir(path):
            self._known[name] = "package"
        else:
            content = Path(path).read_bytes()
            self._known[name] = digest(content).hex()
            if path.endswith(".py"):
                self.add_source(content, name if locations else name.rpartition(".")[0])
        return self._known[name]

    def add_source(self, source: bytes | str, package: str) -> str:
        """Add source text and all that it imports; return its digest."""
        own = digest(source).hex()
        self.found.add(own)
        indented = isinstance(source, str) and source[:1].isspace()
        try:
            tree = ast.parse(f"if True:\n{source!s}" if indented else source)
        except (SyntaxError, ValueError):  # a lambda inside a call: it imports nothing
            return own
        for name in _list_imports(tree, package):
            self.found.add(f"{own} {name.rpartition('.')[2]} {self.add_module(name)}")
        return own


def _list_imports(tree: ast.Module, package: str) -> Iterator[str]:
    """List all modules that a source imports; Unknown if it computes the name of one."""
    followed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if any(alias.asname and alias.name in _LOADERS for alias in node.names):
                raise Unknown
            yield from _list_from_import(node, package)
        elif isinstance(node, ast.Call) and _get_name(node.func) in ("import_module", "__import__"):
            text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
            if isinstance(text, str) and not text.startswith("."):
                followed.add(id(node.func))
                yield text
    if any(_get_name(node) in _LOADERS and id(node) not in followed for node in ast.walk(tree)):
        raise Unknown


def _get_name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None


def _list_from_import(node: ast.ImportFrom, package: str) -> Iterator[str]:
    try:
        base = importlib.util.resolve_name("." * node.level + (node.module or ""), package or None)
    except ImportError:
        raise Unknown from None
    yield base
    spec = _find_spec(base)
    locations = list(spec.submodule_search_locations or ()) if spec is not None else []
    names = {alias.name for alias in node.names}
    if "*" in names:
        names = {each.name for each in pkgutil.iter_modules(locations)}
    if locations and find_home(locations[0]) == USER:
        yield from (f"{base}.{name}" for name in sorted(names) if _find_spec(f"{base}.{name}"))


def _find_spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """Find the origin of a module; unlike `importlib.util.find_spec`, this imports no parent package."""
    loaded: importlib.machinery.ModuleSpec | None = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        return loaded
    parent, _, _ = name.rpartition(".")
    try:
        if not parent:
            return importlib.util.find_spec(name)
        around = _find_spec(parent)
        locations = list(around.submodule_search_locations or ()) if around is not None else []
        return importlib.machinery.PathFinder.find_spec(name, locations) if locations else None
    except (ImportError, ValueError, AttributeError):
        return None
