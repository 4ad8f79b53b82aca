"""Values as bytes, so that two processes that do not trust each other can exchange them.

Reading builds plain values and the fixed set of types in `standard`, and runs nothing that the other
side wrote: an object that equals everything arrives as data or as a reference, never as itself.
Whatever the bytes are, reading gives a value or raises EncodingError.
"""

from __future__ import annotations

from context_bench.sandbox.inside.standard import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Refer = Callable[[object], tuple[bytes, int]]
    Resolve = Callable[[bytes, int], Any]

__all__ = ["DEPTH", "MINE", "YOURS", "EncodingError", "decode", "encode"]

DEPTH = 200
"""How deep values may be nested; also what ends a value that contains itself."""

MINE, YOURS = b"M", b"Y"
"""Tags of references: an object of the sender, an object of the receiver."""


_BROKEN = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError)


class EncodingError(Exception):
    """A value that cannot be sent, or bytes that are not a value."""


def encode(value: object, refer: Refer) -> bytes:
    """Encode a value; what is not data becomes the reference that `refer` gives it."""
    parts: list[bytes] = []
    _put(parts, value, refer, 0)
    return b"".join(parts)


def decode(data: bytes, resolve: Resolve, types: set[object]) -> Any:
    """Decode a value; `resolve` turns references into objects, and types of this side that were named go to `types`."""
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
        _put(out, _BASES[base](value), refer, depth + 1)  # a subclass crosses as what it holds
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
        value = unpack(name, payload)
        self.types.add(value if name == "type" else getattr(value, "default_factory", None))
        return value


def _nothing(_: object) -> bytes:
    return b""


def _none(_: object) -> None:
    return None


def _complex(data: bytes) -> complex:
    real, imaginary = data.decode().split()
    return complex(float.fromhex(real), float.fromhex(imaginary))


def _pairs(flat: list[Any]) -> dict[Any, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


_SCALARS_OUT: dict[type, tuple[bytes, Callable[[Any], bytes]]] = {
    type(None): (b"0", _nothing),
    bool: (b"?", lambda value: b"1" if value else b""),
    int: (b"i", lambda value: value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)),
    float: (b"f", lambda value: value.hex().encode()),
    complex: (b"c", lambda value: f"{value.real.hex()} {value.imag.hex()}".encode()),
    str: (b"s", lambda value: value.encode("utf-8", "surrogatepass")),
    bytes: (b"b", lambda value: value),
    bytearray: (b"B", bytes),
}
_SCALARS_IN: dict[bytes, Callable[[bytes], Any]] = {
    b"0": _none,
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
    b"l": lambda children: children,
    b"t": tuple,
    b"e": set,
    b"z": frozenset,
    b"d": _pairs,
}
_BASES: dict[type, Callable[[Any], Any]] = {
    int: int.__index__,
    float: float.__float__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: bytes,
    bytearray: bytearray,
    tuple: tuple,
    list: list,
    set: set,
    frozenset: frozenset,
    dict: dict,
}
