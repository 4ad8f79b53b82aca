"""Values, functions, classes and modules, described by all that may change what they do.

The user's own code is followed to its end; a library counts by its version. A description is made of plain texts and
digests, and nothing in it depends on addresses, on the order of sets, or on where a file lies.
"""

from __future__ import annotations

import builtins
import enum
import functools
import logging
import re
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import date, time, timedelta, timezone
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import FunctionType, ModuleType
from typing import Any

from context_bench.store.fingerprints.classes import find_state, list_members, read_content
from context_bench.store.fingerprints.compiled_code import Load, describe_code, find_uses
from context_bench.store.fingerprints.effects import find_effects
from context_bench.store.fingerprints.modules import ModuleFiles, is_loader
from context_bench.store.fingerprints.origin import (
    USER,
    describe_library,
    find_class_home,
    find_home,
    find_module_home,
    hash_file,
    is_ours,
    is_own_attribute,
    name_in_keys,
)
from context_bench.store.fingerprints.unknown import Unknown
from context_bench.store.keys import digest
from context_bench.traits import declares_fingerprint, find_fingerprint, find_parts, is_versioned

__all__ = ["Describer", "fingerprint_of"]

_PLAIN = {
    *(str, bytes, bytearray, int, float, complex, bool, type(None), type(...), type(NotImplemented), range),
    *(date, time, timedelta, timezone, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath),
}
"""Kinds of values whose repr tells them from all others."""

_TYPING = (types.GenericAlias, types.UnionType, typing.TypeVar, typing.ParamSpec, typing.NewType, typing.ForwardRef)
_LRU = type(functools.lru_cache(lambda: None))
_PARTS: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.singledispatchmethod: ("dispatcher", "func"),
    functools.partial: ("func", "args", "keywords", "__dict__"),
    types.MethodType: ("__self__", "__func__"),
}
"""The attributes that describe objects which Python itself makes around functions."""

_ARRAY = 32_000_000
"""Bytes of an array that are read at most; reading more would take longer than a run should wait."""


def fingerprint_of(component: Any) -> str | None:
    """Describe what makes the results of a system or evaluator differ; None when that cannot be known.

    Its own `fingerprint` where it has one; `version` and parameters for an evaluator that has those;
    otherwise a digest of its code and state, from which no value can be read.
    """
    try:
        own = _find_declared(component)
        if isinstance(own, str) and not _is_extended(component):
            return own
        return Describer().describe_component(component)
    except Exception:  # noqa: BLE001 - whatever an object does when it is looked at, the run goes on without its key
        return None


def _find_declared(component: Any) -> Any:
    """Return the component's own `fingerprint`; () when it has none."""
    parts = find_parts(component)
    if parts and is_ours(type(component)) and not declares_fingerprint(type(component)):  # one of our wrappers
        found = [fingerprint_of(part) for part in parts]
        return None if None in found else "\n".join(filter(None, found))
    return find_fingerprint(component)


def _is_extended(component: Any) -> bool:
    """Whether a user's class changes one of ours, which then says too little of itself."""
    kind = type(component)
    return not is_ours(kind) and "fingerprint" not in vars(kind) and any(map(is_ours, kind.__mro__))


class Describer:
    """Describes one component; whatever it reaches is described once."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._alive: list[Any] = []  # so that no id is given twice
        self._files = ModuleFiles(self.describe)
        self._reached: dict[str, None] = {}

    def describe_component(self, component: Any) -> str:
        """Compute one digest of a component, all that it reaches, and what its modules do when they are imported."""
        own = self.describe(component)
        effects: list[str] = []
        for name in self._list_reached():
            effects += [repr(self._describe_effect(code)) for code in find_effects(name, self._reached)]
        return digest(repr(own), *sorted(effects)).hex()

    def _list_reached(self) -> Iterator[str]:
        """List the user's modules, those included that are found on the way."""
        done = 0
        while done < len(self._reached):
            yield list(self._reached)[done]
            done += 1

    def describe(self, value: Any) -> Any:
        """Describe a value by a text or a digest; Unknown when that cannot be done."""
        if type(value) in _PLAIN:
            return (type(value).__name__, repr(value))
        if id(value) not in self._known:
            self._known[id(value)] = "itself"
            try:
                self._known[id(value)] = digest(repr(self._describe_new(value))).hex()
            except Exception as error:
                del self._known[id(value)]
                raise Unknown from error
            self._alive.append(value)
        return self._known[id(value)]

    def _describe_new(self, value: Any) -> Any:
        if isinstance(value, type):
            return self._describe_class(value)
        if isinstance(value, ModuleType):
            return self._describe_namespace(vars(value)) if find_module_home(value.__name__) == USER else _name(value)
        if isinstance(value, FunctionType):
            return self._describe_function(value)
        if isinstance(value, _LRU):
            return ("cached", self.describe(value.__wrapped__), repr(value.cache_parameters()))
        parts = _PARTS.get(type(value))
        if parts is not None:
            return (type(value).__name__, *(self.describe(getattr(value, part)) for part in parts))
        if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            return self._describe_builtin(value)
        if isinstance(
            value, types.WrapperDescriptorType | types.MethodDescriptorType | types.ClassMethodDescriptorType
        ):
            return ("builtin", self.describe(value.__objclass__), value.__name__)
        return self._describe_container(value)

    def _describe_container(self, value: Any) -> Any:
        if type(value) in (dict, types.MappingProxyType):
            return ("map", [(self.describe(key), self.describe(item)) for key, item in value.items()])
        if type(value) in (list, tuple):
            return (type(value).__name__, [self.describe(item) for item in value])
        if type(value) in (set, frozenset):
            return ("set", sorted(repr(self.describe(item)) for item in sorted(value, key=_shallow)))
        if type(value) is re.Pattern:  # whose repr is cut short
            return ("pattern", value.pattern, value.flags)
        if isinstance(value, _TYPING) or type(value).__module__ == "typing":
            named = [str(getattr(value, name, "")) for name in ("__name__", "_name", "__forward_arg__")]
            return ("type", named, self.describe(typing.get_origin(value)), self.describe(typing.get_args(value)))
        return self._describe_instance(value)

    # -- objects

    def _describe_instance(self, value: Any) -> Any:
        kind, own, extended = type(value), _find_declared(value), _is_extended(value)
        if own is None:
            raise Unknown
        if isinstance(own, str) and not extended:
            return ("fingerprint", own)
        if is_versioned(value) and (is_ours(kind) or "version" in vars(kind)):
            public = {name: item for name, item in find_state(value) if not name.startswith("_")}
            module = name_in_keys(kind.__module__) if is_ours(kind) else ""
            return ("version", module, kind.__qualname__, repr(value.version), self.describe(public))
        if find_class_home(kind) != USER:
            return self._describe_foreign(value)
        if isinstance(value, enum.Enum):
            return ("member", self.describe(kind), value.name)
        state = dict(find_state(value))
        if extended and own:  # what our part of it holds is in its fingerprint
            state = {name: item for name, item in state.items() if not is_ours(type(item))} | {"": own}
        return ("instance", self.describe(kind), self.describe(read_content(value)), self.describe(state))

    def _describe_foreign(self, value: Any) -> Any:
        """Describe an object of a library's class; Unknown for all but a few kinds, which show their content."""
        kind = type(value)
        if name := _find_own_name(value):
            return (*_name(kind), name)
        if kind is logging.Logger:
            return ("logger", value.name)
        if isinstance(value, enum.Enum):
            return (*_name(kind), value.name)
        if kind.__module__ == "numpy" and hasattr(value, "tobytes") and not value.dtype.hasobject:
            if value.nbytes > _ARRAY:
                raise Unknown
            return ("array", str(value.dtype), value.shape, digest(value.tobytes()).hex())
        if kind is object or hasattr(value, "__next__") or describe_library(kind.__module__)[0] != "python":
            raise Unknown
        reduced = value.__reduce_ex__(4)
        if isinstance(reduced, str):
            raise Unknown
        return ("object", [self.describe(list(part) if hasattr(part, "__next__") else part) for part in reduced])

    # -- code

    def _describe_class(self, kind: type) -> Any:
        if find_class_home(kind) != USER:
            return (*_name(kind), *self._find_extension(kind.__module__))
        self._reach(kind.__module__)
        members = [(name, self.describe(member)) for name, member in list_members(kind)]
        bases = [self.describe(base) for base in kind.__mro__[1:-1]]
        return ("class", kind.__name__, members, bases, self.describe(type(kind)))

    def _describe_function(self, function: FunctionType) -> Any:
        around = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
        if find_home(function.__code__.co_filename) != USER:
            if is_own_attribute(function) and find_module_home(function.__module__) != USER:
                _refuse_loader(function)
                return _name(function)
            library = describe_library(str(function.__globals__.get("__name__")), function.__code__.co_filename)
            own: Any = ("wrapper", *library, function.__code__.co_name)
            if "registry" in vars(function) and "dispatch" in vars(function):  # functools.singledispatch
                return (*own, self.describe(dict(vars(function)["registry"])))
            return (*own, self._describe_settings(function), self._describe_cells(around))
        self._reach(str(function.__globals__.get("__name__")))
        code = ("function", describe_code(function.__code__))
        return (*code, self._describe_settings(function), self._describe_uses(function, around))

    def _describe_settings(self, function: FunctionType) -> Any:
        return self.describe((function.__defaults__, function.__kwdefaults__, vars(function)))

    def _describe_cells(self, cells: Mapping[str, types.CellType]) -> Any:
        return [(name, self.describe(value)) for name, value in _read_cells(cells).items()]

    def _describe_uses(self, function: FunctionType, cells: Mapping[str, types.CellType]) -> Any:
        return self._describe_code_uses(function.__code__, function.__globals__, _read_cells(cells))

    def _describe_code_uses(
        self, code: types.CodeType, space: dict[str, Any], enclosed: Mapping[str, Any], *, strict: bool = True
    ) -> Any:
        """Describe what code takes from around it; where not strict, leave out what cannot be described."""
        uses, found = find_uses(code), []
        for load in uses.loads:
            if load.enclosed and load.name not in enclosed:
                continue  # a name of the code itself, or one that is not set yet
            try:
                found.append((load.name, load.attributes, self._describe_load(load, space, enclosed)))
            except Unknown:
                if strict:
                    raise
        package = str(space.get("__package__") or str(space.get("__name__")).rpartition(".")[0])
        return found, [self._files.describe_import(each, package) for each in uses.imports]

    def _describe_load(self, load: Load, space: dict[str, Any], enclosed: Mapping[str, Any]) -> Any:
        value: Any
        if load.enclosed:
            value = enclosed[load.name]
        elif load.name in space:
            value = space[load.name]
        elif hasattr(builtins, load.name):
            value = getattr(builtins, load.name)
        else:
            return "missing"
        owner, attributes = None, load.attributes
        while isinstance(value, ModuleType) and attributes:
            owner, name, attributes = value, attributes[0], attributes[1:]
            value = vars(owner).get(name, sys.modules.get(f"{owner.__name__}.{name}", _MISSING))
            if value is _MISSING:
                return self._describe_missing(owner)
        if is_loader(value):
            return self._describe_loaded(value, load.text, space)
        if value is builtins.globals:
            return self._describe_namespace(space)
        if owner is not None and find_module_home(owner.__name__) != USER and not _may_be_users(value):
            return (*_name(owner), load.attributes)
        return self.describe(value)

    def _describe_missing(self, owner: ModuleType) -> Any:
        """Describe an attribute that a module makes when it is asked for."""
        if find_module_home(owner.__name__) != USER:
            return _name(owner)
        return self.describe(vars(owner).get("__getattr__"))

    def _describe_loaded(self, loader: Any, text: str | None, space: dict[str, Any]) -> Any:
        """Describe code that is imported by a name in a text; Unknown unless the text is a literal."""
        if text is None or loader is sys.modules:
            raise Unknown
        if loader in (builtins.eval, builtins.exec):
            try:
                code = compile(text, "<text>", "exec", dont_inherit=True)
            except SyntaxError:
                return ("text", text)
            return ("text", describe_code(code), self._describe_code_uses(code, space, {}))
        if loader.__name__ not in ("import_module", "__import__") or text.startswith("."):
            raise Unknown
        return self._files.describe_module(text)

    def _describe_namespace(self, space: Mapping[str, Any]) -> Any:
        """Describe everything that a module holds."""
        self._reach(str(space.get("__name__")))
        named = [name for name in sorted(space) if not name.startswith("__") or name == "__getattr__"]
        return ("module", [(name, self.describe(space[name])) for name in named])

    def _describe_builtin(self, value: Any) -> Any:
        _refuse_loader(value)
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            return ("method", value.__name__, self.describe(owner))
        return (*_name(value), *self._find_extension(str(value.__module__)))

    def _find_extension(self, module: str) -> Iterator[str]:
        """Compute the digest of a compiled module of the user's own."""
        path = getattr(sys.modules.get(module), "__file__", None)
        if path and find_home(path) == USER and not path.endswith(".py"):
            yield hash_file(path)

    # -- what modules do when they are imported

    def _reach(self, module: str) -> None:
        if find_module_home(module) == USER:
            self._reached.setdefault(module)

    def _describe_effect(self, effect: tuple[types.CodeType, dict[str, Any]]) -> Any:
        code, space = effect
        try:
            return describe_code(code), self._describe_code_uses(code, space, {}, strict=False)
        except Unknown:
            return describe_code(code)


_MISSING = object()


def _name(thing: Any) -> tuple[str, ...]:
    """Describe an object of a library by its name and the library's version."""
    if isinstance(thing, ModuleType):
        return ("library", *describe_library(thing.__name__), name_in_keys(thing.__name__))
    module = str(getattr(thing, "__module__", None) or "builtins")
    return ("library", *describe_library(module), name_in_keys(module), str(getattr(thing, "__qualname__", "")))


def _find_own_name(value: Any) -> str | None:
    """Find the name by which a library itself knows an object: one of its callables, or the only one of its kind."""
    if is_own_attribute(value):
        return str(value.__qualname__)
    kind, name = type(value), getattr(value, "__name__", None)
    if isinstance(name, str) and vars(sys.modules.get(kind.__module__.partition(".")[0], sys)).get(name) is value:
        return name
    if describe_library(kind.__module__)[0] != "python":
        return None
    beside = vars(sys.modules.get(kind.__module__, builtins))
    return next((name for name, each in beside.items() if each is value), None)


def _shallow(value: Any) -> tuple[str, str]:
    """Return a sort key for a member of a set that is the same in every process."""
    plain = type(value) in _PLAIN
    return type(value).__name__, repr(value) if plain else str(getattr(value, "__qualname__", ""))


def _read_cells(cells: Mapping[str, types.CellType]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    return found


def _refuse_loader(value: Any) -> None:
    if is_loader(value):
        raise Unknown


def _may_be_users(value: Any) -> bool:
    """Whether something in a library's module may have been put there by the user."""
    if isinstance(value, FunctionType):
        return find_home(value.__code__.co_filename) == USER or not is_own_attribute(value)
    if isinstance(value, type):
        return find_class_home(value) == USER
    return isinstance(value, ModuleType)
