"""Fingerprints: everything that the results of a system or evaluator depend on, as one text.

A component may declare its `fingerprint`. Otherwise its code and its state count. Code counts by files: the user's own
modules that it comes from, and all their imports. Code of the running script, of a notebook or of `python -c` counts by
its source text, so that another call of `evaluate` in the same script repeats no request. State is the content of the
object, and the values of the names in its functions. If any part cannot be described, the fingerprint is unknown and
results are not reused, because a stale result would be wrong.
"""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import os
import re
import sys
import types
from collections.abc import Iterator
from datetime import date, time, timedelta, timezone
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import CodeType, FunctionType, ModuleType
from typing import Any

from context_bench import traits
from context_bench.store.origin import (
    USER,
    ImportedFiles,
    Unknown,
    describe_library,
    digest,
    find_home,
    find_module_home,
    is_ours,
    is_own_attribute,
)

_PLAIN = {
    *(str, bytes, bytearray, int, float, complex, bool, type(None), type(...), type(NotImplemented), range),
    *(date, time, timedelta, timezone, PosixPath, PurePosixPath, PureWindowsPath, WindowsPath),
}
"""Types of values whose repr identifies them."""

_PARTS: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.singledispatchmethod: ("dispatcher", "func"),
    functools.partial: ("func", "args", "keywords", "__dict__"),
    type(functools.lru_cache(lambda: None)): ("__wrapped__",),
    re.Pattern: ("pattern", "flags"),
    types.MethodType: ("__self__", "__func__"),
    types.BuiltinFunctionType: ("__self__", "__name__"),
    types.MethodWrapperType: ("__self__", "__name__"),
    types.WrapperDescriptorType: ("__objclass__", "__name__"),
    types.MethodDescriptorType: ("__objclass__", "__name__"),
    types.ClassMethodDescriptorType: ("__objclass__", "__name__"),
    types.MemberDescriptorType: ("__name__",),
    types.GetSetDescriptorType: ("__name__",),
    types.UnionType: ("__args__",),
}
"""The attributes that describe objects which Python itself makes, most of them around functions."""

_CONTENTS: tuple[tuple[type, Any], ...] = (
    (dict, lambda value: dict(dict.items(value))),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: tuple(tuple.__iter__(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (str, str.__str__),
    (bytes, lambda value: bytes(memoryview(value))),
    (int, int.__int__),
    (float, float.__float__),
    (BaseException, lambda value: value.args),
)
"""Types with content in addition to their attributes, each with a way to read it that no subclass can override."""

_MAX_ARRAY_BYTES = 32_000_000  # hashing a larger array would delay the run


def fingerprint_of(component: Any) -> str | None:
    """Describe everything that the results of a system or evaluator depend on; None if unknown. This is its own
    `fingerprint`, if any; for an evaluator with a `version`, the version and the parameters; otherwise a digest of its
    code and state, which reveals no value.
    """
    try:
        own = _find_declared(component)
        if isinstance(own, str) and not _is_extended(component):
            return own
        describer = Describer()
        described = describer.describe(component)
        return digest(repr(described), *sorted(describer.files.found)).hex()
    except Exception:  # noqa: BLE001 - whatever an object does when it is inspected, the run continues without its key
        return None


def may_read_gold(system: Any) -> bool:
    """True unless the system declares `reads_gold = False`; our wrappers declare this for the system inside.

    If a user's subclass changes one of our classes, the class's declaration does not apply to the subclass.
    """
    kind = type(system)
    if is_ours(kind):
        parts = traits.find_parts(system)
        if parts:
            return any(may_read_gold(part) for part in parts)
    elif "reads_gold" not in getattr(system, "__dict__", {}):
        declaring = next((base for base in kind.__mro__ if "reads_gold" in vars(base)), None)
        if declaring is not None and is_ours(declaring):
            return True
    return traits.may_read_gold(system)


def _find_declared(component: Any) -> Any:
    """Return the component's own `fingerprint`; () if it has none."""
    parts = traits.find_parts(component)
    if parts and is_ours(type(component)) and not traits.declares_fingerprint(type(component)):  # one of our wrappers
        found = [fingerprint_of(part) for part in parts]
        return None if None in found else "\n".join(filter(None, found))
    return traits.find_fingerprint(component)


def _is_extended(component: Any) -> bool:
    """Whether a user's class changes one of ours, so that the inherited `fingerprint` is incomplete."""
    kind = type(component)
    return not is_ours(kind) and "fingerprint" not in vars(kind) and any(map(is_ours, kind.__mro__))


class Describer:
    """Describes values, functions and classes, each once."""

    def __init__(self) -> None:
        self.files = ImportedFiles()  # the user's files that the described code comes from
        self._known: dict[int, str] = {}
        self._alive: list[Any] = []  # so that no id is given twice

    def describe(self, value: Any) -> Any:
        """Describe a value by a text or a digest; Unknown if that is impossible."""
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
        kind = type(value)
        if isinstance(value, type):
            return self._describe_class(value)
        if isinstance(value, ModuleType):
            return ("module", self.files.add_module(value.__name__))
        if isinstance(value, FunctionType):
            return self._describe_function(value)
        if kind in (dict, types.MappingProxyType):
            return ("map", [(self.describe(key), self.describe(item)) for key, item in value.items()])
        if kind in (list, tuple):
            return (kind.__name__, [self.describe(item) for item in value])
        if kind in (set, frozenset):
            return ("set", sorted(repr(self.describe(item)) for item in value))
        if kind in _PARTS:
            return (kind.__name__, *(self.describe(getattr(value, part)) for part in _PARTS[kind]))
        return self._describe_instance(value)

    # -- objects

    def _describe_instance(self, value: Any) -> Any:
        kind, own, extended = type(value), _find_declared(value), _is_extended(value)
        if own is None:
            raise Unknown
        if isinstance(own, str) and not extended:
            return ("fingerprint", own)
        if traits.is_versioned(value) and (is_ours(kind) or "version" in vars(kind)):
            public = {name: item for name, item in _find_state(value) if not name.startswith("_")}
            module = kind.__module__ if is_ours(kind) else ""
            return ("version", module, kind.__qualname__, repr(value.version), self.describe(public))
        if find_module_home(kind.__module__) != USER:
            return self._describe_foreign(value)
        state = dict(_find_state(value))
        if extended and own:  # our part's state is in its fingerprint
            state = {name: item for name, item in state.items() if not is_ours(type(item))} | {"": own}
        return ("instance", self.describe(kind), self.describe(_read_content(value)), self.describe(state))

    def _describe_foreign(self, value: Any) -> Any:
        """Describe an object of a library's class; Unknown except for a few types with readable content."""
        kind = type(value)
        library = (kind.__qualname__, describe_library(kind.__module__))
        if is_own_attribute(value):
            return (*library, value.__qualname__)
        if (
            kind.__module__ == "numpy"
            and getattr(value, "nbytes", _MAX_ARRAY_BYTES) < _MAX_ARRAY_BYTES
            and (not value.dtype.hasobject)
        ):
            return ("array", str(value.dtype), value.shape, digest(value.tobytes()).hex())
        if kind is object or hasattr(value, "__next__") or library[1] != describe_library("sys"):
            raise Unknown
        beside = vars(sys.modules.get(kind.__module__, types))
        if name := next((name for name, each in beside.items() if each is value), None):
            return (*library, name)  # the only one of its kind, such as `os.environ`
        reduced = value.__reduce_ex__(4)
        if isinstance(reduced, str):
            return (*library, reduced)
        return ("object", [self.describe(list(part) if hasattr(part, "__next__") else part) for part in reduced])

    # -- code

    def _describe_class(self, kind: type) -> Any:
        if find_module_home(kind.__module__) != USER:
            return ("library", kind.__qualname__, describe_library(kind.__module__))
        members = [(name, each) for name, each in sorted(vars(kind).items()) if not _is_left_out(kind, name, each)]
        source = self._read_source(kind, kind.__module__, None)
        described = [(name, self.describe(each)) for name, each in members]
        return (
            "class",
            kind.__name__,
            source,
            described,
            [self.describe(each) for each in (*kind.__mro__[1:-1], type(kind))],
        )

    def _describe_function(self, function: FunctionType) -> Any:
        code, space = function.__code__, function.__globals__
        module = str(space.get("__name__"))
        users = find_home(code.co_filename) == USER
        if not users and is_own_attribute(function):
            return ("library", function.__qualname__, describe_library(function.__module__))
        cells = dict(_read_cells(function))
        settings = self.describe((function.__defaults__, function.__kwdefaults__, vars(function), cells))
        if not users:
            return ("wrapper", code.co_name, describe_library(module, code.co_filename), settings)
        source = self._read_source(function, module, code)
        loaded, names = _list_names(code)
        named = [(name, self._describe_named(space[name], names)) for name in sorted(loaded) if name in space]
        return ("function", code.co_name, source, settings, named)

    def _describe_named(self, value: Any, names: set[str]) -> Any:
        """Describe a global of a function; for a user's module also the attributes that the function names."""
        described = self.describe(value)
        if isinstance(value, ModuleType) and find_module_home(value.__name__) == USER:
            used = sorted(names.intersection(vars(value)))
            return described, [(name, self.describe(vars(value)[name])) for name in used if not name.startswith("__")]
        return described

    def _read_source(self, thing: Any, module: str, code: CodeType | None) -> str:
        """Return the digest of the file of a function or class, else of its source text."""
        path = getattr(sys.modules.get(module), "__file__", None)
        if (
            path
            and module != "__main__"
            and (code is None or os.path.abspath(code.co_filename) == os.path.abspath(path))
        ):
            return self.files.add_module(module)
        package = str(getattr(sys.modules.get(module), "__package__", None) or "")
        return self.files.add_source(_read_text(thing, module), package)


def _read_text(thing: Any, module: str) -> str:
    """Read the source text of a function or class: its own, that of its notebook cell, or of `python -c`."""
    code = getattr(thing, "__code__", None)
    if code is not None and code.co_filename == "<string>" and module != "__main__":
        raise Unknown  # made by exec(): from Python 3.13 on, the text of `python -c` is found under that name
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        members = vars(thing).values() if isinstance(thing, type) else ()
    cells = [linecache.getlines(each.__code__.co_filename) for each in members if isinstance(each, FunctionType)]
    if cell := next(filter(None, cells), None):
        return "".join(cell)
    if module == "__main__" and sys.argv[:1] == ["-c"] and "-c" in sys.orig_argv:
        return sys.orig_argv[sys.orig_argv.index("-c") + 1]
    raise Unknown


def _list_names(code: CodeType) -> tuple[set[str], set[str]]:
    """List the names that code, including nested code, takes from its module; and all names that it uses."""
    loaded = {str(each.argval) for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more, others = _list_names(inner)
            loaded, names = loaded | more, names | others
    return loaded, names


def _read_cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not set yet
            continue


def _is_left_out(kind: type, name: str, member: Any) -> bool:
    """Whether a member of a class is made from its source, by Python, dataclasses, attrs or the like."""
    special, function = name.startswith("__") and name.endswith("__"), getattr(member, "__func__", member)
    if isinstance(function, FunctionType):
        has_file = getattr(sys.modules.get(kind.__module__), "__file__", None) is not None
        return special and function.__code__.co_filename.startswith("<") and has_file
    return name == "_abc_impl" or (special and type(member) not in _PARTS)


def _find_state(value: Any) -> Iterator[tuple[str, Any]]:
    """List the attributes of an object, including those in slots."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if inspect.ismemberdescriptor(member) and hasattr(value, name):
                yield name, getattr(value, name)


def _read_content(value: Any) -> Any:
    """Read the content of a user's object that is a list, text or the like; Unknown if it is hidden."""
    for kind, read in _CONTENTS:
        if isinstance(value, kind):
            return read(value)
    for base in type(value).__mro__[:-1]:
        compiled = not any(isinstance(member, FunctionType) for member in vars(base).values())
        foreign = find_module_home(base.__module__) != USER and not is_ours(base)
        if compiled and foreign and base.__module__ not in ("typing", "abc", "collections.abc", "enum"):
            raise Unknown
    return None
