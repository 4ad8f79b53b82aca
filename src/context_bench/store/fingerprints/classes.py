"""The members of a class that are described, and the content of an object."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import types
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from context_bench.store.fingerprints.modules import parse_text
from context_bench.store.fingerprints.origin import USER, find_class_home, find_module_home
from context_bench.store.fingerprints.unknown import Unknown

__all__ = ["find_state", "list_members", "read_content"]

_CODE = (FunctionType, property, staticmethod, classmethod, functools.cached_property)
_GENERATED = {"__init__", "__repr__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"} | {
    *("__setattr__", "__delattr__", "__replace__", "__getstate__", "__setstate__", "__attrs_init__", "__match_args__")
}
"""Members that dataclasses and attrs generate from the fields of a class."""

_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
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
"""Kinds that hold something beside their attributes, and how to get at it whatever a class of the user's says."""


def list_members(kind: type) -> Iterator[tuple[str, Any]]:
    """List the members of a class that may change what it does, by name; generated ones by what they are made from."""
    if issubclass(kind, enum.Enum):
        yield "(members)", [(name, member.value) for name, member in kind.__members__.items()]
    if dataclasses.is_dataclass(kind):
        yield "(fields)", [_describe_field(field) for field in dataclasses.fields(kind)]
    for attribute in vars(kind).get("__attrs_attrs__", ()):
        factory = getattr(attribute.default, "factory", attribute.default)
        yield "(attribute)", (attribute.name, None if type(factory).__name__ == "_Nothing" else factory)
    yield "(annotations)", [(name, _spell(each)) for name, each in vars(kind).get("__annotations__", {}).items()]
    if find_module_home(type(kind).__module__) != USER and type(kind).__module__ not in ("builtins", "abc", "enum"):
        yield "(source)", _read_source(kind)  # a library's metaclass keeps in its own way what was written
    for name, member in sorted(vars(kind).items()):
        if not _is_left_out(kind, name, member):
            yield name, None if _is_slot(member) else member


def _describe_field(field: Any) -> tuple[Any, ...]:
    """Describe a field of a dataclass: its default, and whether it has one."""
    missing = dataclasses.MISSING
    values = [None if each is missing else (each,) for each in (field.default, field.default_factory)]
    return (field.name, *values, field.init, field.kw_only)


def _spell(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else str(getattr(annotation, "__qualname__", repr(annotation)))
    return type(annotation).__name__ if " at 0x" in text else text


def _read_source(kind: type) -> str:
    try:
        return parse_text(inspect.getsource(kind))
    except (OSError, TypeError):
        raise Unknown from None


def _is_left_out(kind: type, name: str, member: Any) -> bool:
    if name == "_abc_impl" or (issubclass(kind, enum.Enum) and not isinstance(member, _CODE)):
        return True
    if name == "__doc__":
        return member is None or str(member).startswith(f"{kind.__name__}(")  # as a dataclass writes it
    if name.startswith("__") and name.endswith("__") and name != "__slots__" and not _is_code(member):
        return True  # what Python and libraries note down about a class
    if isinstance(member, FunctionType) and name in _GENERATED:
        path = member.__code__.co_filename
        return path.startswith("<attrs generated") or (path == "<string>" and dataclasses.is_dataclass(kind))
    return False


def _is_code(member: Any) -> bool:
    return isinstance(member, _CODE) or callable(member) or find_class_home(type(member)) == USER


def _is_slot(member: Any) -> bool:
    return isinstance(member, _DESCRIPTORS) or type(member).__name__ == "_tuplegetter"


def find_state(value: Any) -> Iterator[tuple[str, Any]]:
    """Return the attributes of an object, those in slots included."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        for name, member in vars(kind).items():
            if inspect.ismemberdescriptor(member) and hasattr(value, name):
                yield name, getattr(value, name)


def read_content(value: Any) -> Any:
    """Read what an object of a user's class holds as a kind of list, text or the like; Unknown where it is hidden."""
    for kind, read in _CONTENTS:
        if isinstance(value, kind):
            return read(value)
    for base in type(value).__mro__[:-1]:
        compiled = find_module_home(base.__module__) != USER and not any(
            isinstance(member, FunctionType) for member in vars(base).values()
        )
        if (
            compiled
            and base.__module__ not in ("typing", "abc", "collections.abc", "enum")
            and base.__basicsize__ > _EMPTY
        ):
            raise Unknown
    return None


class _Empty:
    pass


_EMPTY = _Empty.__basicsize__
