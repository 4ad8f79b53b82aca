"""Names and modules that are imported when they are first used, so that a program loads only what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from typing import Any

__all__ = ["add_module", "lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names live in these submodules."""
    home = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted({*vars(sys.modules[package]), *home})


def add_module(name: str, about: str, names: Collection[str], get: Callable[[str], Any]) -> None:
    """Make a module without a file importable, because other tools and earlier scripts know its names under that path.

    Args:
        name: The full name; its parent must be imported already, or just be on its way.
        about: Its docstring.
        names: The names that can be imported from it.
        get: Called with one of the names on its first use.
    """
    module = module_from_spec(ModuleSpec(name, None))
    module.__doc__ = about

    def get_name(wanted: str) -> Any:
        if wanted not in names:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        value = get(wanted)
        setattr(module, wanted, value)
        return value

    vars(module).update(__all__=sorted(names), __getattr__=get_name, __dir__=lambda: sorted(names))
    parent, _, short = name.rpartition(".")
    sys.modules[name] = module
    setattr(sys.modules[parent], short, module)
