"""Packs what workers need from this process: the parts that they call, and their code.

A part that was built from a reference travels as its class and parameters, so that the worker loads its model; any
other travels as a pickle. Ray's runtime environment brings the modules of the user's code.

Calls wait in a queue of parcels, which groups them and keeps track of those whose worker died.
"""

from __future__ import annotations

import asyncio
import pickle
import shutil
import site
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from context_bench import errors
from context_bench.errors import UsageError, describe
from context_bench.ray.ray_worker import Call
from context_bench.systems.adapt import find_recipe
from context_bench.traits import find_parts

_OURS = Path(errors.__file__).parent


@dataclass(frozen=True)
class ShippedPart:
    """The sent form of a part: `kind` is system, compressor or evaluator, `recipe` makes it."""

    name: str
    kind: str
    recipe: Any


class Parts:
    """Numbers the parts of a run; each is packed once, however many workers get it."""

    def __init__(self) -> None:
        self._keys: dict[int, int] = {}
        self._objects: list[Any] = []
        self._packed: list[ShippedPart] = []

    def __getitem__(self, key: int) -> ShippedPart:
        return self._packed[key]

    def add(self, part: Any, kind: str) -> int:
        """Return the number of a part.

        Raises:
            UsageError: It cannot be sent.
        """
        key = self._keys.get(id(part))
        if key is None:
            self._packed.append(ShippedPart(part.name, kind, _pack(part)))
            self._objects.append(part)  # so that its id stays its own
            key = self._keys[id(part)] = len(self._packed) - 1
        return key


def _pack(part: Any) -> Any:
    """Pack the function and arguments that make a part; a large pack is put into the object store once."""
    import ray
    import ray.cloudpickle as cloudpickle

    try:
        recipe = bytes(cloudpickle.dumps(find_recipe(part) or (_return_part, {"part": part}), protocol=5))
    except Exception as error:
        hint = "pass it as a reference, file.py:object, so that each worker creates its own"
        raise UsageError(f"{part.name} cannot be sent to workers ({describe(error)}): {hint}") from error
    return ray.put(recipe) if len(recipe) > 100_000 else recipe


def _return_part(part: Any) -> Any:
    return part


def find_user_modules(parts: Iterable[Any]) -> list[ModuleType]:
    """Find the user's own modules that parts are made of, and the modules that these import."""
    found: dict[str, ModuleType] = {}
    waiting = [module for part in parts for module in _list_modules(part)]
    while waiting:
        module = waiting.pop()
        if module.__name__ in found or not (module.__name__ == "__main__" or _is_users(module)):
            continue
        found[module.__name__] = module
        waiting += [used for value in vars(module).values() if (used := _find_module(value)) is not None]
    found.pop("__main__", None)  # definitions of a script or a notebook travel in the pickle of a part
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
    """Put the workers' modules into a folder, under their import names.

    Returns:
        For each path to bring to the workers, the file or folder that it was copied from.
    """
    staged = {str(_OURS): str(_OURS)}
    for module in modules:
        source = Path(str(module.__file__)).resolve()
        top = sys.modules.get(module.__name__.partition(".")[0], module)
        # A package is copied whole; one without an `__init__.py` may be in several folders.
        packages = [Path(each).resolve() for each in getattr(top, "__path__", ())]
        if (package := next((each for each in packages if source.is_relative_to(each)), None)) is not None:
            staged[str(package)] = str(package)
        else:
            copy = folder / f"{module.__name__}.py"  # a file given by its path has a generated name
            shutil.copyfile(source, copy)
            staged[str(copy)] = str(source)
    return staged


LEAST_WORK = 0.1  # target seconds of work in a task, since sending one takes about two milliseconds

MAX_PARCELS = 256  # the most single calls that are sent together


class WorkerLost(Exception):
    """A worker died during these calls, and its node did not."""


@dataclass(slots=True, eq=False)
class Parcel:
    """Calls that are sent together."""

    calls: Sequence[Call]
    seconds: float | None  # the worker stops after that time, and answers the first calls alone; None answers all
    single: bool  # it is one call of many like it: several such parcels may be sent as one
    # the answers, in order; WorkerLost if the worker died during them
    answers: asyncio.Future[list[Any]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def keys(self) -> set[int]:
        """The parts that its calls need."""
        return {key for key, _ in self.calls}


class ParcelQueue:
    """A first-come, first-served queue that groups single calls until they are enough work."""

    def __init__(self) -> None:
        self._waiting: deque[Parcel] = deque()
        self._changed = asyncio.Event()
        self._seconds: dict[int, float] = {}

    def put(self, parcel: Parcel) -> None:
        """Add a parcel."""
        self._waiting.append(parcel)
        self._changed.set()

    def put_back(self, parcels: Iterable[Parcel]) -> None:
        """Put unfinished parcels back to the front."""
        self._waiting.extendleft(reversed(list(parcels)))
        self._changed.set()

    def take_all(self, chosen: Callable[[Parcel], bool]) -> list[Parcel]:
        """Take out every parcel of that kind."""
        taken = [parcel for parcel in self._waiting if chosen(parcel)]
        self._waiting = deque(parcel for parcel in self._waiting if parcel not in taken)
        return taken

    def fail_all(self, error: BaseException) -> None:
        """Fail all waiting parcels."""
        for parcel in self._waiting:
            if not parcel.answers.done():
                parcel.answers.set_exception(error)
        self._waiting.clear()
        self._changed.set()

    def wake(self) -> None:
        """Wake all waiters; a worker may have been asked to stop."""
        self._changed.set()

    def note_seconds(self, key: int, seconds: float) -> None:
        """Note how long a call of a part takes."""
        known = self._seconds.get(key)
        self._seconds[key] = seconds if known is None else 0.8 * known + 0.2 * seconds

    async def take(self, fits: Callable[[Parcel], bool], over: Callable[[], bool]) -> list[Parcel]:
        """Wait for a suitable parcel, and take others that can go with it; return nothing at the end."""
        while not over():
            for index, parcel in enumerate(self._waiting):
                if fits(parcel):
                    del self._waiting[index]
                    return [parcel, *self._take_more(parcel, fits)]
            self._changed.clear()
            await self._changed.wait()
        return []

    def _take_more(self, first: Parcel, fits: Callable[[Parcel], bool]) -> list[Parcel]:
        more: list[Parcel] = []
        work = self._estimate(first)
        while first.single and self._waiting and len(more) < MAX_PARCELS and work < LEAST_WORK:
            parcel = self._waiting[0]
            if not parcel.single or not fits(parcel):
                break
            more.append(self._waiting.popleft())
            work += self._estimate(parcel)
        return more

    def _estimate(self, parcel: Parcel) -> float:
        """Estimate the seconds of a single call; unknown calls go alone."""
        return self._seconds.get(parcel.calls[0][0], LEAST_WORK)


def pack_calls(calls: Sequence[Call]) -> bytes:
    """Serialize calls with pickle, or with Ray's pickler where plain pickle fails."""
    try:
        return pickle.dumps(calls, protocol=5)
    except Exception:  # noqa: BLE001 - objects of somebody else, made in a notebook for example
        import ray.cloudpickle as cloudpickle

        return bytes(cloudpickle.dumps(calls, protocol=5))
