"""Whose code something is, and which version of a library is there.

Nothing is imported to find out: paths tell where code comes from, and a library's metadata its version.
"""

from __future__ import annotations

import csv
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

__all__ = [
    *("USER", "describe_library", "find_class_home", "find_home", "find_module_home", "hash_file", "is_ours"),
    *("is_own_attribute", "name_in_keys"),
]

USER, LIBRARY, PYTHON, OURS = "user", "library", "python", "ours"


def _list_prefixes(*folders: str) -> tuple[str, ...]:
    """List the folders as prefixes of paths, also by their real names where they are linked."""
    return tuple({each + os.sep for folder in folders for each in (folder, os.path.realpath(folder))})


_PACKAGE = _list_prefixes(str(Path(__file__).parents[2]))
_STANDARD = _list_prefixes(*map(sysconfig.get_path, ("stdlib", "platstdlib")), os.path.dirname(os.__file__))
_SITES = re.compile(r"^(.*[\\/](?:site|dist)-packages)[\\/]([^\\/]+)")
_PYTHON_VERSION = f"{platform.python_implementation()} {platform.python_version()}"


def find_home(path: str | None) -> str:
    """Tell from a file's path whose code is in it; code without a file is the user's, or Python's when frozen."""
    if not path or path.startswith("<frozen"):
        return PYTHON if path else USER
    if path.startswith(_PACKAGE):
        return OURS
    if _SITES.match(path):
        return LIBRARY
    return PYTHON if path.startswith(_STANDARD) else USER


def find_module_home(name: str) -> str:
    """Tell whose a loaded module is; one that is not loaded under its name was made by the user."""
    module = sys.modules.get(name)
    if module is None:
        return USER
    path = getattr(module, "__file__", None)
    if path is None and hasattr(module, "__path__"):
        return find_home(next(iter(module.__path__), None))
    if path is None:
        return PYTHON if name in sys.builtin_module_names or name in sys.stdlib_module_names else USER
    return find_home(os.path.abspath(path))


def is_ours(kind: type) -> bool:
    """Whether a class is part of this package."""
    return find_module_home(kind.__module__) == OURS


MOVED = {
    **{
        f"context_bench.text.{name}": f"context_bench.{name}"
        for name in ("escapes", "golds", "masking", "squad", "words")
    },
    "context_bench.text.markup": "context_bench.evaluators.verdicts",
    "context_bench.evaluators.math.answer_equality": "context_bench.evaluators.math.compare",
    **{
        f"context_bench.evaluators.official.{name}": f"context_bench.evaluators.{name}"
        for name in ("bbh", "drop", "hotpot", "infinitebench", "longbench", "mrcr", "nolima", "truthfulqa")
    },
}
"""Modules of this package that were somewhere else when the first stores were written, and where that was."""


def name_in_keys(module: str) -> str:
    """Name a module as keys name it: what is in a store stays valid when a module of ours moves."""
    return MOVED.get(module, module)


def is_own_attribute(thing: Any) -> bool:
    """Whether a function or class is found in its module under its own name, and so is not made for somebody."""
    found: Any = sys.modules.get(getattr(thing, "__module__", None) or "")
    for part in str(getattr(thing, "__qualname__", "")).split("."):
        found = vars(found).get(part) if isinstance(found, ModuleType | type) else None
        found = getattr(found, "__func__", found)
    return found is thing


def describe_library(module: str, path: str | None = None) -> tuple[str, ...]:
    """Name a library of which a module is part, with its version."""
    if path is None:
        path = getattr(sys.modules.get(module), "__file__", None)
    top = module.partition(".")[0]
    home = find_module_home(top) if path is None else find_home(path)
    if home == OURS or top == "context_bench":
        from context_bench._version import __version__

        return ("context-bench", __version__)
    matched = _SITES.match(path or "")
    if matched is None:
        return ("python", _PYTHON_VERSION)
    return _find_versions(matched[1], matched[2].partition(".")[0])


@cache
def _find_versions(site: str, top: str) -> tuple[str, ...]:
    """Find the versions of the distributions that a package comes from; without any, a digest of its files."""
    records = _list_records(site)
    named = [path for path in records if _project_name(path) == _normalize(top) and top in _list_packages(path)]
    owners = named or [path for path in records if top in _list_packages(path)]
    if owners:
        return tuple(sorted(_describe_distribution(path) for path in owners))
    return ("files", _hash_files(Path(site), top))


@cache
def _list_records(site: str) -> tuple[str, ...]:
    with os.scandir(site) as entries:
        return tuple(sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info"))))


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _project_name(path: str) -> str:
    return _normalize(os.path.basename(path).partition("-")[0].removesuffix(".egg-info"))


@cache
def _list_packages(path: str) -> frozenset[str]:
    """List the packages of a distribution, from the lists that its installer left."""
    try:
        named = Path(path, "top_level.txt").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        named = []
    try:
        with open(os.path.join(path, "RECORD"), encoding="utf-8", errors="replace", newline="") as file:
            named += [row[0].partition("/")[0].partition(".")[0] for row in csv.reader(file) if row]
    except OSError:
        pass
    return frozenset(named)


def _describe_distribution(path: str) -> str:
    """Return name and version; of one that was installed from a folder or an address, a digest of its list of files."""
    name = os.path.basename(path)
    if path.endswith(".egg-info"):
        return f"{name} {_read_version(Path(path, 'PKG-INFO') if os.path.isdir(path) else Path(path))}"
    if os.path.exists(os.path.join(path, "direct_url.json")):
        return f"{name} {hash_file(os.path.join(path, 'RECORD'))}"
    return name


def _read_version(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith("Version:")), "")


def hash_file(path: str | os.PathLike[str]) -> str:
    """Compute a digest of a file's content."""
    return blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()


def _hash_files(site: Path, top: str) -> str:
    hasher = blake2b(digest_size=16)
    for path in sorted(_find_files(site, top)):
        hasher.update(f"{path.relative_to(site)} {hash_file(path)}".encode())
    return hasher.hexdigest()


def _find_files(site: Path, top: str) -> Iterator[Path]:
    """Find the code files of a package that has no metadata."""
    for path in site.glob(f"{top}*"):
        if path.is_dir() and path.name == top:
            yield from (each for each in path.rglob("*") if each.suffix in (".py", ".so", ".pyd"))
        elif path.is_file() and path.name.partition(".")[0] == top:
            yield path


def find_class_home(kind: type) -> str:
    """Tell whose a class is; one that a library or `exec` made of the user's functions is the user's."""
    home = find_module_home(kind.__module__)
    if home == USER or is_own_attribute(kind):
        return home
    functions = [member for member in vars(kind).values() if isinstance(member, FunctionType)]
    return USER if any(find_home(each.__code__.co_filename) == USER for each in functions) else home
