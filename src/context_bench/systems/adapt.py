"""Adapting what a user hands over: a function becomes a system."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from context_bench.errors import UsageError
from context_bench.http.loop import run_sync
from context_bench.refs import check_arguments, check_plain
from context_bench.traits import SystemTraits, find_name, is_endpoint, may_read_gold, system_traits
from context_bench.types import Example, MemorySystem, System

__all__ = ["AsyncFunctionSystem", "FunctionSystem", "Named", "adapt", "rename_system"]


class FunctionSystem:
    """A plain function as a system; a returned text is the new context."""

    def __init__(self, function: Callable[[Example], Any], name: str | None = None) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(parts=[self.function])

    @property
    def reads_gold(self) -> bool:
        """True unless the function says otherwise by an attribute of that name."""
        return may_read_gold(self.function)

    def process(self, example: Example) -> Example:
        """Call the function."""
        result = self.function(example)
        return {"context": result} if isinstance(result, str) else result


class AsyncFunctionSystem(FunctionSystem):
    """An `async def` function as a system; many of its calls may be in flight at once."""

    async def aprocess(self, example: Example) -> Example:
        """Await the function."""
        result = await self.function(example)
        return {"context": result} if isinstance(result, str) else result

    def process(self, example: Example) -> Example:
        """Call `aprocess` for a caller without an event loop."""
        return run_sync(self.aprocess(example))


class Named:
    """A system under another name; everything else is the system's own."""

    def __init__(self, system: Any, name: str) -> None:
        self._system = system
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "_system":  # asked for before it is set, as copying and unpickling do
            raise AttributeError(attribute)
        return getattr(self._system, attribute)

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(system_traits(self._system), parts=[self._system])

    def process(self, example: Example) -> Example:
        """Call the system."""
        result: Example = self._system.process(example)
        return result


def adapt(system: Any) -> System:
    """Accept a system as it is, or a function `f(example)`; anything else is an error that says what is missing."""
    if isinstance(system, type):
        raise UsageError(f"{system.__name__} is a class: pass an instance of it, {system.__name__}(...)")
    name = find_name(system)
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
        raise UsageError(f"a {type(system).__name__} is a memory system (ingest and query): evaluate_memory() runs it")
    missing = " and ".join(f".{part}" for part in ("name", "process") if not hasattr(system, part))
    raise UsageError(f"a {type(system).__name__} is not a system: it has no {missing}")


def rename_system(system: System, name: str) -> System:
    """Return the system under the given name."""
    return system if system.name == name else Named(system, name)
