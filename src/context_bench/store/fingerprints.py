"""What makes the results of a component differ, as one text: what it says of itself, or else its code and state.

Code is its source and that of everything of the user's own that it names, with the values of those names;
state is what it was made with. Whatever cannot be described makes the whole unknown: then its results are
not used again, which costs something, where a stale one would be wrong.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from enum import Enum
from pathlib import PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any

from context_bench.store.keys import digest

__all__ = ["fingerprint_of"]

_OURS = "context_bench"
_LIBRARY = os.path.dirname(os.__file__)
_PLAIN = (str, bytes, int, float, complex, type(None), type(...), PurePath, date, Enum, range)
"""Values whose repr tells them from all others."""


class _Unknown(Exception):
    """Something cannot be described."""


def fingerprint_of(component: Any) -> str | None:
    """What makes the results of a system or evaluator differ; None when that cannot be known.

    Its own `fingerprint` where it has one; `version` and parameters for an evaluator that has those;
    otherwise its source text and state.
    """
    own = _declared(component)
    if isinstance(own, str) and not _is_extended(component):
        return own
    try:
        return digest(repr(_described(component, set()))).hex()
    except (_Unknown, OSError, TypeError, RecursionError):  # inspect finds no source
        return None


def _declared(component: Any) -> Any:
    """The component's own `fingerprint`; () when it has none."""
    parts = getattr(component, "parts", None)
    if _is_ours(type(component)) and isinstance(parts, list):  # one of our wrappers
        found = [fingerprint_of(part) for part in parts]
        return None if None in found else "\n".join(filter(None, found))
    return getattr(component, "fingerprint", ())


def _is_extended(component: Any) -> bool:
    """Whether a user's class changes one of ours, which then says too little of itself."""
    kind = type(component)
    return not _is_ours(kind) and "fingerprint" not in vars(kind) and any(map(_is_ours, kind.__mro__))


def _is_ours(thing: Any) -> bool:
    return _module(thing).partition(".")[0] == _OURS


def _module(thing: Any) -> str:
    return thing.__name__ if isinstance(thing, ModuleType) else str(getattr(thing, "__module__", None) or "builtins")


def _described(value: Any, above: set[int]) -> Any:
    """A value as nested tuples of plain values; _Unknown when it has no such form."""
    if isinstance(value, _PLAIN):
        return (type(value).__name__, repr(value))
    if id(value) in above:
        return "itself"
    above = above | {id(value)}
    if isinstance(value, Mapping):
        return ("map", [(_described(key, above), _described(item, above)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [_described(item, above) for item in value])
    if isinstance(value, set | frozenset):
        return ("set", sorted(repr(_described(item, above)) for item in value))
    if isinstance(value, re.Pattern):
        return ("pattern", value.pattern, value.flags)
    if isinstance(value, functools.partial):
        return ("partial", _described((value.func, value.args, value.keywords), above))
    if isinstance(value, type | ModuleType) or inspect.isroutine(value):
        owner = getattr(value, "__self__", None)
        bound = owner is not None and not isinstance(owner, ModuleType)
        return ("method", value.__name__, _described(owner, above)) if bound else _code(value, above)
    return _instance(value, above)


def _instance(value: Any, above: set[int]) -> Any:
    kind, own = type(value), _declared(value)
    extended = _is_extended(value)
    if own is None:
        raise _Unknown
    if isinstance(own, str) and not extended:
        return ("fingerprint", own)
    if hasattr(value, "score") and hasattr(value, "version") and (_is_ours(kind) or "version" in vars(kind)):
        public = {name: item for name, item in _state(value) if not name.startswith("_")}
        return ("version", kind.__module__, kind.__qualname__, repr(value.version), _described(public, above))
    if _is_installed(kind):
        raise _Unknown
    state = dict(_state(value))
    if extended and own:  # what our part of it holds is in its fingerprint
        state = {name: item for name, item in state.items() if not _is_ours(type(item))} | {"": own}
    return ("instance", _code(kind, above), _described(state, above))


def _state(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, those in slots included."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if inspect.ismemberdescriptor(member) and hasattr(value, name):
                yield name, getattr(value, name)


def _code(thing: Any, above: set[int]) -> Any:
    """The code of a function or class; what is installed is known by its name and version."""
    if _is_installed(thing):
        module = _module(thing)
        version = getattr(sys.modules.get(module.partition(".")[0]), "__version__", None)
        return ("installed", module, getattr(thing, "__qualname__", ""), str(version))
    if isinstance(thing, ModuleType):
        return ("module", inspect.getsource(thing))
    if isinstance(thing, type):
        bases = [_code(base, above) for base in thing.__mro__[1:-1]]
        functions = [_code(each, above) for member in vars(thing).values() for each in _functions(member)]
        return ("class", inspect.getsource(thing), functions, bases)
    settings = _described((thing.__defaults__, thing.__kwdefaults__), above)
    return ("function", inspect.getsource(thing), settings, _named(thing, above))


def _is_installed(thing: Any) -> bool:
    """Whether something is part of Python or of a package, and not the user's own."""
    name = _module(thing)
    top = name.partition(".")[0]
    if top == _OURS or top in sys.stdlib_module_names:
        return not isinstance(thing, FunctionType) or name != "builtins"  # what exec() makes has no module
    path = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" in path or "dist-packages" in path


def _functions(member: Any) -> Iterator[FunctionType]:
    """The functions behind a member of a class that were written down, not generated (as a dataclass does)."""
    for each in (member, *(getattr(member, name, None) for name in ("__func__", "fget", "fset", "func"))):
        if isinstance(each, FunctionType) and not each.__code__.co_filename.startswith(("<string", _LIBRARY)):
            yield each


def _named(function: FunctionType, above: set[int]) -> Any:
    """The values of the names that a function takes from around it."""
    around = {name: function.__globals__[name] for name in _globals(function.__code__) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            around[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    around.pop("__class__", None)  # left there by super()
    return _described(dict(sorted(around.items())), above)


def _globals(code: CodeType) -> set[str]:
    names = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals(part) for part in code.co_consts if isinstance(part, CodeType)))
