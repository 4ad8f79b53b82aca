"""Packs what workers need of this process: the parts that they call, and the code that those are made of.

A part that was built from a reference travels as its class and its parameters, so that a model is loaded by the worker;
any other as a pickle. The modules of a user's own code are brought along by Ray's runtime environment.
"""

from __future__ import annotations

import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from context_bench import errors
from context_bench.errors import UsageError, describe
from context_bench.systems.recipes import find_recipe
from context_bench.traits import find_parts

__all__ = ["Part", "Parts", "find_user_modules", "stage_modules"]

_OURS = Path(errors.__file__).parent


@dataclass(frozen=True)
class Part:
    """A part as it is sent: `kind` is system, compressor or evaluator, `recipe` makes it."""

    name: str
    kind: str
    recipe: Any


class Parts:
    """Numbers the parts of a run; each is packed once, however many workers get it."""

    def __init__(self) -> None:
        self._keys: dict[int, int] = {}
        self._objects: list[Any] = []
        self._packed: list[Part] = []

    def __getitem__(self, key: int) -> Part:
        return self._packed[key]

    def add(self, part: Any, kind: str) -> int:
        """Return the number of a part.

        Raises:
            UsageError: It cannot be sent.
        """
        key = self._keys.get(id(part))
        if key is None:
            self._packed.append(Part(part.name, kind, _pack(part)))
            self._objects.append(part)  # so that its id stays its own
            key = self._keys[id(part)] = len(self._packed) - 1
        return key


def _pack(part: Any) -> Any:
    """Pack a function and its arguments that make a part; a large one goes once, into the object store."""
    import ray
    import ray.cloudpickle as cloudpickle

    try:
        recipe = bytes(cloudpickle.dumps(find_recipe(part) or (_return_part, {"part": part}), protocol=5))
    except Exception as error:
        hint = "give it as a reference, file.py:object, so that each worker makes its own"
        raise UsageError(f"{part.name} cannot be sent to workers ({describe(error)}): {hint}") from error
    return ray.put(recipe) if len(recipe) > 100_000 else recipe


def _return_part(part: Any) -> Any:
    return part


def find_user_modules(parts: Iterable[Any]) -> list[ModuleType]:
    """Find the modules of a user's own code that parts are made of, and those that these use."""
    found: dict[str, ModuleType] = {}
    waiting = [module for part in parts for module in _list_modules(part)]
    while waiting:
        module = waiting.pop()
        if module.__name__ in found or not (module.__name__ == "__main__" or _is_users(module)):
            continue
        found[module.__name__] = module
        waiting += [used for value in vars(module).values() if (used := _find_module(value)) is not None]
    found.pop("__main__", None)  # what a script or a notebook defines travels in the pickle of a part
    return list(found.values())


def _list_modules(part: Any) -> Iterator[ModuleType]:
    for each in (part, type(part), part.func if isinstance(part, partial) else None):
        if (module := _find_module(each)) is not None:
            yield module
    for inner in find_parts(part):
        yield from _list_modules(inner)


def _find_module(value: Any) -> ModuleType | None:
    if isinstance(value, ModuleType):
        return value
    name = getattr(value, "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) else None


def _is_users(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return False
    path = Path(file).resolve()
    installed = [*site.getsitepackages(), site.getusersitepackages(), sysconfig.get_path("stdlib"), str(_OURS)]
    return not any(path.is_relative_to(Path(folder).resolve()) for folder in installed)


def stage_modules(modules: Iterable[ModuleType], folder: Path) -> dict[str, str]:
    """Put what workers import into a folder, under the names by which it is imported.

    Returns:
        For each path to bring to the workers, the file or folder that it was copied from.
    """
    staged = {str(_OURS): str(_OURS)}
    for module in modules:
        source = Path(str(module.__file__)).resolve()
        top = sys.modules.get(module.__name__.partition(".")[0], module)
        # A package goes whole; one without an `__init__.py` may be in several folders.
        packages = [Path(each).resolve() for each in getattr(top, "__path__", ())]
        if (package := next((each for each in packages if source.is_relative_to(each)), None)) is not None:
            staged[str(package)] = str(package)
        else:
            copy = folder / f"{module.__name__}.py"  # a file that was given by its path has a name of our own
            shutil.copyfile(source, copy)
            staged[str(copy)] = str(source)
    return staged
