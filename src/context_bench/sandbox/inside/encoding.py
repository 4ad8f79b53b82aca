"""Values as bytes, so that two processes that do not trust each other can exchange them.

Reading builds plain values and the fixed set of types below, and runs no code of the other side: an object that equals
everything arrives as data or as a reference, never as itself. Any bytes give a value or raise EncodingError.
"""

from __future__ import annotations

import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Refer = Callable[[object], tuple[bytes, int]]
    Resolve = Callable[[bytes, int], Any]


# --- types of the standard library
# Each is taken apart into plain values and built again from them by the receiver's own library. The parts are checked,
# so that building never asks a hostile sender for anything.

_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second", "microsecond")


def pack(value: Any) -> tuple[str, Any] | None:
    """Return the name and the parts of a value; None for an unknown type."""
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


def _fields(value: Any, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(getattr(value, name) for name in names)


def _moment(value: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return the fields of a time with its zone and fold; None for a zone class of the program, which is not data."""
    zone = value.tzinfo
    return None if zone is not None and pack(zone) is None else (*_fields(value, names), zone, value.fold)


def _factory(value: Any) -> str | None:
    """Return the name of a default factory that is a built-in type."""
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
        *fields, zone, fold = _exact(parts, tuple)  # the type refuses an invalid zone or a reference
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


# --- values as bytes

DEPTH = 200  # deepest nesting of values; also stops a value that contains itself

MINE, YOURS = b"M", b"Y"  # tags of references: an object of the sender, an object of the receiver


_BROKEN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


class EncodingError(Exception):
    """A value that cannot be sent, or bytes that are not a value."""


def encode(value: object, refer: Refer) -> bytes:
    """Encode a value; `refer` makes references of objects that are not data."""
    parts: list[bytes] = []
    _put(parts, value, refer, 0)
    return b"".join(parts)


def decode(data: bytes, resolve: Resolve, types: set[object]) -> Any:
    """Decode a value; `resolve` turns references into objects, and named types of this side are added to `types`."""
    reader = _Reader(data, resolve, types)
    try:
        value = reader.value(0)
    except _BROKEN as error:
        raise EncodingError(f"bytes that are not a value: {type(error).__name__}") from None
    if reader.at != len(data):
        raise EncodingError("bytes after the end of the value")
    return value


def _put(out: list[bytes], value: object, refer: Refer, depth: int) -> None:
    if depth > DEPTH:
        raise EncodingError("the value is nested too deeply")
    kind = type(value)
    if kind in _SCALARS_OUT:
        tag, to_bytes = _SCALARS_OUT[kind]
        content = to_bytes(value)
        out.append(tag + len(content).to_bytes(8, "big") + content)
    elif kind in _CONTAINERS_OUT:
        tag, children = _CONTAINERS_OUT[kind]
        _put_all(out, tag, list(children(value)), refer, depth)
    elif (packed := pack(value)) is not None:
        _put_all(out, b"n", list(packed), refer, depth)
    elif (base := next((base for base in _BASES if isinstance(value, base)), None)) is not None:
        _put(out, _BASES[base](value), refer, depth + 1)  # a subclass crosses as its content
    else:
        tag, number = refer(value)
        out.append(tag + number.to_bytes(8, "big"))


def _put_all(out: list[bytes], tag: bytes, children: list[Any], refer: Refer, depth: int) -> None:
    out.append(tag + len(children).to_bytes(8, "big"))
    for child in children:
        _put(out, child, refer, depth + 1)


class _Reader:
    def __init__(self, data: bytes, resolve: Resolve, types: set[object]) -> None:
        self.data, self.resolve, self.types, self.at = data, resolve, types, 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if end > len(self.data):
            raise EncodingError("bytes that end too early")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def value(self, depth: int) -> Any:
        if depth > DEPTH + 2:
            raise EncodingError("the value is nested too deeply")
        tag, size = self.take(1), int.from_bytes(self.take(8), "big")
        if tag in _SCALARS_IN:
            return _SCALARS_IN[tag](self.take(size))
        if tag in (MINE, YOURS):
            return self.resolve(tag, size)
        children = [self.value(depth + 1) for _ in range(size)]
        if tag in _CONTAINERS_IN:
            return _CONTAINERS_IN[tag](children)
        if tag != b"n":
            raise EncodingError("an unknown tag")
        name, payload = children
        value = _BUILDERS[name](payload)
        self.types.add(value if name == "type" else getattr(value, "default_factory", None))
        return value


def _complex(data: bytes) -> complex:
    real, imaginary = data.decode().split()
    return complex(float.fromhex(real), float.fromhex(imaginary))


_SCALARS_OUT: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    type(None): (b"0", lambda _: b""),
    bool: (b"?", lambda value: b"1" if value else b""),
    int: (b"i", lambda value: value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)),
    float: (b"f", lambda value: value.hex().encode()),
    complex: (b"c", lambda value: f"{value.real.hex()} {value.imag.hex()}".encode()),
    str: (b"s", lambda value: value.encode("utf-8", "surrogatepass")),
    bytes: (b"b", lambda value: value),
    bytearray: (b"B", bytes),
}
_SCALARS_IN: dict[bytes, Callable[[bytes], Any]] = {
    b"0": lambda _: None,
    b"?": bool,
    b"i": lambda data: int.from_bytes(data, "big", signed=True),
    b"f": lambda data: float.fromhex(data.decode()),
    b"c": _complex,
    b"s": lambda data: data.decode("utf-8", "surrogatepass"),
    b"b": bytes,
    b"B": bytearray,
}
_CONTAINERS_OUT: dict[type, tuple[bytes, Callable[[Any], Iterable[Any]]]] = {
    list: (b"l", list),
    tuple: (b"t", list),
    set: (b"e", list),
    frozenset: (b"z", list),
    dict: (b"d", lambda value: [part for pair in value.items() for part in pair]),
}
_CONTAINERS_IN: dict[bytes, Callable[[list[Any]], Any]] = {
    b"l": lambda children: children, b"t": tuple, b"e": set, b"z": frozenset,
    b"d": lambda flat: dict(zip(flat[::2], flat[1::2], strict=True)),
}  # fmt: skip
_BASES: dict[type, Callable[[Any], Any]] = {
    int: int.__index__, float: float.__float__, complex: complex.__pos__, str: str.__str__, bytes: bytes,
    bytearray: bytearray, tuple: tuple, list: list, set: set, frozenset: frozenset, dict: dict,
}  # fmt: skip
