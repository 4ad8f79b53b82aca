"""Make systems: from a user's function, from a `--system` reference, or as a second run of the baseline.

A system built from a reference keeps its recipe (class and parameters), so that another process can rebuild it.
"""

from __future__ import annotations

import inspect
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.compare.verdicts import choose_baseline, name_twin
from context_bench.errors import UsageError
from context_bench.http.loop import run_sync
from context_bench.options import is_number
from context_bench.refs import (
    Ref,
    call_with,
    check_arguments,
    check_parameters,
    check_plain,
    parse,
    resolve,
    takes_parameter,
)
from context_bench.store.fingerprints import fingerprint_of
from context_bench.text.masking import mask_reference
from context_bench.traits import (
    SystemTraits,
    find_name,
    is_endpoint,
    may_read_gold,
    never_wins,
    reference_traits,
    system_traits,
)
from context_bench.types import Example, MemorySystem, System


class FunctionSystem:
    """A plain function as a system; a returned text is the new context."""

    def __init__(self, function: Callable[[Example], Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(parts=[self.function])

    @property
    def reads_gold(self) -> bool:
        """True unless the function has a `reads_gold` attribute that is false."""
        return may_read_gold(self.function)

    def process(self, example: Example) -> Example:
        result = self.function(example)
        return {"context": result} if isinstance(result, str) else result


class AsyncFunctionSystem(FunctionSystem):
    """An `async def` function as a system; many of its calls may be in flight at once."""

    async def aprocess(self, example: Example) -> Example:
        result = await self.function(example)
        return {"context": result} if isinstance(result, str) else result

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop."""
        return run_sync(self.aprocess(example))


class Named:
    """An unchanged system under another name."""

    def __init__(self, system: Any, name: str) -> None:
        self._system = system
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "_system":  # copying and unpickling read it before it is set
            raise AttributeError(attribute)
        return getattr(self._system, attribute)

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(system_traits(self._system), parts=[self._system])

    def process(self, example: Example) -> Example:
        result: Example = self._system.process(example)
        return result


def adapt(system: Any) -> System:
    """Return a system unchanged, wrap a function `f(example)`, and refuse anything else.

    A system without a name gets the name of its class.
    """
    if isinstance(system, type):
        raise UsageError(f"{system.__name__} is a class: pass an instance of it, {system.__name__}(...)")
    name = find_name(system)
    if name is None and callable(getattr(system, "process", None)):
        name, system = type(system).__name__, Named(system, type(system).__name__)
    if isinstance(system, System):
        if not isinstance(name, str) or not name:
            raise UsageError(f"a {type(system).__name__} has no usable name: .name must be a text")
        if not is_endpoint(system):
            check_plain(system, "process", "aprocess")
            check_plain(system, "process_conversation", "aprocess_conversation")
        return system
    if callable(system):
        check_arguments(system, 1, "a system must take one argument, the example")
        return AsyncFunctionSystem(system) if inspect.iscoroutinefunction(system) else FunctionSystem(system)
    if isinstance(system, MemorySystem):
        raise UsageError(f"a {type(system).__name__} is a memory system (ingest and query): use evaluate_memory()")
    raise UsageError(f"a {type(system).__name__} is not a system: it has no .process")


def rename_system(system: System, name: str) -> System:
    """Return the system under the given name."""
    return system if system.name == name else Named(system, name)


Recipe = tuple[Callable[..., Any], dict[str, Any]]

_recipes: dict[int, tuple[weakref.ref[Any], Recipe]] = {}


def note_recipe(system: Any, factory: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
    """Store the recipe of a system for as long as the system exists."""
    place = id(system)
    try:
        known = weakref.ref(system, lambda _: _recipes.pop(place, None))
    except TypeError:  # its class has no weak references: the system is pickled instead
        return
    _recipes[place] = (known, (factory, dict(parameters)))


def find_recipe(system: Any) -> Recipe | None:
    """Return the function and arguments that make such a system; None if they are unknown."""
    inner = getattr(system, "_system", None) if isinstance(system, Named) else None
    if inner is not None:
        known = find_recipe(inner)
        return None if known is None else (_make_named, {"recipe": known, "name": system.name})
    found = _recipes.get(id(system))
    return found[1] if found is not None and found[0]() is system else None


def _make_named(recipe: Recipe, name: str) -> Any:
    make, parameters = recipe
    return rename_system(make(**parameters), name)


def build_systems(text: str, seed: int | None = None) -> Iterator[System]:
    """Build the system of a reference, or several for a sweep. A system's name is the reference's text or `name=`."""
    for ref in parse("system", text):
        found = resolve("system", ref)
        if ":" in ref.target and "name" in ref.parameters and not takes_parameter(found, "name"):
            ref = _take_name(ref)
        built = adapt(_build(ref, found, seed))
        own = "name" in ref.parameters and isinstance(found, type)
        yield rename_system(built, built.name if own else mask_reference(ref.text))


def _take_name(ref: Ref) -> Ref:
    """Name a user's system by `name=` if its code has no such parameter; other parameters are appended to the name."""
    others = dict(ref.parameters)
    name = str(others.pop("name"))
    rest = ",".join(f"{key}={value}" for key, value in others.items())
    return Ref(f"{name}:{rest}" if rest else name, ref.target, ref.argument, others)


def _build(ref: Ref, found: Any, seed: int | None) -> Any:
    if isinstance(found, type):
        if seed is not None and "seed" in inspect.signature(found).parameters:
            ref = Ref(ref.text, ref.target, ref.argument, {"seed": seed, **ref.parameters})
        traits = reference_traits(found)
        argument = None if traits is None else traits.argument
        system = call_with(found, ref, argument)
        note_recipe(system, found, check_parameters(found, ref, argument))
        return system
    if callable(getattr(found, "process", None)):
        if ref.parameters or ref.argument:
            raise UsageError(f"{ref.text!r}: this system is already an instance and takes no parameters")
        return found
    if not callable(found):
        raise UsageError(f"{ref.text!r} is not a system: it is of type {type(found).__name__}")
    # A plain function is the system itself: bind its other parameters now; the example comes later.
    parameters = check_parameters(found, ref, given=1)
    return partial(found, **parameters) if parameters else found


def check_settings(*, may_be_zero: bool, **values: float | None) -> None:
    """Check that numeric settings are valid; the error names the parameter."""
    for name, value in values.items():
        if value is None:
            continue
        if not is_number(value) or not (0 < value < math.inf or (may_be_zero and value == 0)):
            raise UsageError(f"{name} must be a number {'of at least 0' if may_be_zero else 'above 0'} (got {value!r})")


def settings_fingerprint(kind: str, function: Callable[..., Any] | None, **settings: Any) -> str | None:
    """Describe all settings in one text; None if the user's function cannot be identified."""
    made_by = None if function is None else fingerprint_of(function)
    if function is not None and made_by is None:
        return None
    described = orjson.dumps([made_by, settings], option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return f"{kind} {blake2b(described, digest_size=16).hexdigest()}"


_DONE_ONCE = ("prepare", "finish")
"""Members that are called only on the original system, because both systems share its tap and process."""


class Again(Named):
    """A system under a second name. This copy is asked again, because answers are stored by name, and is not ranked."""

    def __init__(self, system: Any) -> None:
        super().__init__(system, name_twin(system.name))

    def __getattr__(self, attribute: str) -> Any:
        if attribute in _DONE_ONCE:
            raise AttributeError(attribute)
        return super().__getattr__(attribute)

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(super().__context_bench_traits__(), competes=False, list_unmatched=None)


def add_twin(systems: Sequence[System], baseline: str | None) -> tuple[list[System], Again]:
    """Insert a second copy of the baseline after the first; return all systems and the copy.

    Raises:
        UsageError: Another system already has its name.
    """
    names = [each.name for each in systems]
    controls = [each.name for each in systems if never_wins(each)]
    chosen = choose_baseline(names, baseline, controls) or names[0]
    place = names.index(chosen)
    twin = Again(systems[place])
    if twin.name in names:
        raise UsageError(f"a system has the name {twin.name!r}, which the second run of the baseline needs: rename it")
    return [*systems[: place + 1], twin, *systems[place + 1 :]], twin
