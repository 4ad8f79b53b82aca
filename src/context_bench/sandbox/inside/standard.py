"""Types of the standard library that may cross between the processes, besides plain values.

Each is taken apart into plain values and built again from them by the receiver's own library. What a
hostile sender puts into the parts is checked, so that building never asks the sender for anything.
"""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["pack", "unpack"]

_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond")


def pack(value: Any) -> tuple[str, Any] | None:
    """Return the name and the parts of a value; None for a type that is not among these."""
    kind = type(value)
    if (kind.__module__, kind.__qualname__) in _PACKERS:
        parts = _PACKERS[kind.__module__, kind.__qualname__](value)
        return None if parts is None else (kind.__qualname__, parts)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return "namedtuple", (kind.__name__, tuple(kind._fields), tuple(value))
    if issubclass(kind, type):
        name = value.__name__
        return ("type", name) if getattr(builtins, name, None) is value else None
    return None


def unpack(name: str, parts: Any) -> Any:
    """Rebuild a value from its name and parts; ValueError, TypeError or the like for parts that do not fit."""
    return _BUILDERS[name](parts)


def _fields(value: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(getattr(value, name) for name in names)


def _moment(value: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return the fields of a time with its zone and fold; None for a zone of the program's own, which is not data."""
    zone = value.tzinfo
    return None if zone is not None and pack(zone) is None else (*_fields(value, names), zone, value.fold)


def _factory(value: Any) -> str | None:
    """Return the name of a default factory, where it is a built-in type."""
    packed = pack(value.default_factory)
    return packed[1] if packed and packed[0] == "type" else None


_PACKERS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("builtins", "range"): lambda value: (value.start, value.stop, value.step),
    ("builtins", "slice"): lambda value: (value.start, value.stop, value.step),
    ("builtins", "dict_keys"): list,
    ("builtins", "dict_values"): list,
    ("builtins", "dict_items"): list,
    ("collections", "Counter"): dict,
    ("collections", "OrderedDict"): dict,
    ("collections", "defaultdict"): lambda value: (_factory(value), dict(value)),
    ("collections", "deque"): lambda value: (list(value), value.maxlen),
    ("decimal", "Decimal"): str,
    ("fractions", "Fraction"): lambda value: (value.numerator, value.denominator),
    ("datetime", "date"): lambda value: _fields(value, _DATE),
    ("datetime", "time"): lambda value: _moment(value, _TIME),
    ("datetime", "datetime"): lambda value: _moment(value, _DATE + _TIME),
    ("datetime", "timedelta"): lambda value: (value.days, value.seconds, value.microseconds),
    ("datetime", "timezone"): lambda value: value.__getinitargs__(),
    ("zoneinfo", "ZoneInfo"): lambda value: value.key,
}


def _exact(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{kind.__name__} expected")
    return value


def _each(values: Any, container: type, kind: type) -> Any:
    for value in _exact(values, container):
        _exact(value, kind)
    return values


def _from(module: str, name: str) -> Any:
    return getattr(__import__(module), name)


def _of_integers(module: str, name: str) -> Callable[[Any], Any]:
    return lambda parts: _from(module, name)(*_each(parts, tuple, int))


def _at_moment(name: str) -> Callable[[Any], Any]:
    def build(parts: Any) -> Any:
        *fields, zone, fold = _exact(parts, tuple)  # a zone that is none, or is a reference, is refused by the type
        return _from("datetime", name)(*_each(fields, list, int), tzinfo=zone, fold=_exact(fold, int))

    return build


def _time_zone(parts: Any) -> Any:
    offset, *name = _exact(parts, tuple)
    return _from("datetime", "timezone")(_exact(offset, _from("datetime", "timedelta")), *_each(name, list, str))


def _zone_of_the_world(key: Any) -> Any:
    try:
        return _from("zoneinfo", "ZoneInfo")(_exact(key, str))
    except OSError as error:  # a folder has the name, say
        raise ValueError(str(error)) from None


def _type(name: str) -> type:
    found = getattr(builtins, name)
    if not isinstance(found, type):
        raise TypeError(f"{name} is not a type")
    return found


def _slice(parts: Any) -> slice:
    for part in _exact(parts, tuple):
        if part is not None:
            _exact(part, int)
    start, stop, step = parts
    return slice(start, stop, step)


def _default_dict(parts: Any) -> Any:
    factory, content = parts
    known = None if factory is None else _type(factory)
    return _from("collections", "defaultdict")(known, _exact(content, dict))


def _deque(parts: Any) -> Any:
    items, length = parts
    return _from("collections", "deque")(_exact(items, list), None if length is None else _exact(length, int))


def _build_named_tuple(parts: Any) -> Any:
    name, fields, values = parts
    kind = _from("collections", "namedtuple")(_exact(name, str), _each(fields, tuple, str))
    return kind(*_exact(values, tuple))


_BUILDERS: dict[str, Callable[[Any], Any]] = {
    "range": _of_integers("builtins", "range"),
    "slice": _slice,
    "dict_keys": lambda parts: dict.fromkeys(_exact(parts, list)).keys(),
    "dict_values": lambda parts: dict(enumerate(_exact(parts, list))).values(),
    "dict_items": lambda parts: dict(_each(parts, list, tuple)).items(),
    "Counter": lambda parts: _from("collections", "Counter")(_exact(parts, dict)),
    "OrderedDict": lambda parts: _from("collections", "OrderedDict")(_exact(parts, dict)),
    "defaultdict": _default_dict,
    "deque": _deque,
    "Decimal": lambda parts: _from("decimal", "Decimal")(_exact(parts, str)),
    "Fraction": _of_integers("fractions", "Fraction"),
    "date": _of_integers("datetime", "date"),
    "time": _at_moment("time"),
    "datetime": _at_moment("datetime"),
    "timedelta": _of_integers("datetime", "timedelta"),
    "timezone": _time_zone,
    "ZoneInfo": _zone_of_the_world,
    "namedtuple": _build_named_tuple,
    "type": _type,
}
