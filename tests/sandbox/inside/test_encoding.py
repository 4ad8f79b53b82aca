"""Values there and back, and bytes that a hostile sender makes up."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from context_bench.sandbox.inside.encoding import DEPTH, MINE, EncodingError, decode, encode

Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    LOW = 3


class Odd(tzinfo):
    pass


class Word(str):
    __slots__ = ()


def _refer(value: object) -> tuple[bytes, int]:
    return MINE, 7


def _resolve(tag: bytes, number: int) -> Any:
    return f"{tag.decode()}{number}"


def there_and_back(value: object) -> Any:
    return decode(encode(value, _refer), _resolve, set())


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 255, 256, -128, -129, 10**400, -(10**400), 0.0, -0.0, 0.1, 1e308, float("inf"), 5e-324,
    1j, complex(-0.0, 2.5), "", "a", "é🍕\x00", "\ud800", b"", b"\xff", bytearray(b"x"), [], [1, [2, [3]]], (), (1,),
    set(), {1, 2}, frozenset({1}), {}, {1: "a", None: [1], (1, 2): {3}}, range(3), range(5, -5, -2), Decimal("1.10"),
    slice(1, None, 2),
    Decimal("-Infinity"), Fraction(1, 3), Counter("abca"), OrderedDict([(2, 1), (1, 2)]), deque([1, 2], 3), deque([1]),
    date(2024, 2, 29), time(1, 2, 3, 4), datetime(2024, 2, 29, 1, 2, 3, 4), timedelta(-1, 2, 3), int, list, ValueError,
    time(1, tzinfo=timezone.utc), time(1, fold=1), timezone.utc, timezone(-timedelta(1) / 2, "X"),
    ZoneInfo("Asia/Tokyo"), datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2))),
    datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_arrive_as_they_were(value: object) -> None:
    back = there_and_back(value)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_not_a_number() -> None:
    back = there_and_back(float("nan"))
    assert back != back


def test_types_that_need_a_closer_look() -> None:
    made = there_and_back(defaultdict(list, {1: [2]}))
    assert (made, made[5]) == ({1: [2], 5: []}, [])
    assert there_and_back(defaultdict(lambda: 1)).default_factory is None
    assert there_and_back({1: 2}.keys()) == {1}
    assert list(there_and_back({1: 2}.values())) == [2]
    assert there_and_back({1: 2}.items()) == {(1, 2)}
    point = there_and_back(Point(1, 2))
    assert (point, point.y, type(point).__name__) == ((1, 2), 2, "Point")
    assert there_and_back(deque([1, 2], 3)).maxlen == 3


def test_instances_of_subclasses_arrive_as_what_they_hold() -> None:
    assert there_and_back(Level.LOW) == 3
    assert type(there_and_back(Level.LOW)) is int
    assert type(there_and_back(Word("a"))) is str
    assert type(there_and_back(type("L", (list,), {})([1]))) is list


@pytest.mark.parametrize(
    "value",
    [object(), Colour.RED, len, iter([]), (x for x in ()), datetime(2024, 1, 1, tzinfo=Odd()), random],  # type: ignore[abstract]
)
def test_what_is_no_data_becomes_a_reference(value: object) -> None:
    assert there_and_back(value) == "M7"
    assert there_and_back([value]) == ["M7"]


def test_nesting_has_an_end() -> None:
    value: list[Any] = []
    for _ in range(DEPTH - 1):
        value = [value]
    assert there_and_back(value) == value
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(EncodingError, match="too deeply"):
        encode(circle, _refer)


def _node(tag: bytes, size: int, content: bytes = b"") -> bytes:
    return tag + size.to_bytes(8, "big") + content


def _named(name: str, parts: object) -> bytes:
    return _node(b"n", 2, encode(name, _refer) + encode(parts, _refer))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"i",
        _node(b"i", 5, b"1"),
        _node(b"q", 0),
        _node(b"l", 1),
        _node(b"l", 1 << 63),
        _node(b"s", 1, b"\xff"),
        _node(b"f", 3, b"xyz"),
        _node(b"c", 1, b"1"),
        _node(b"d", 1, encode(1, _refer)),
        _node(b"d", 2, encode([], _refer) * 2),
        _node(b"e", 1, encode([], _refer)),
        _node(b"l", 1) * (DEPTH + 5) + _node(b"l", 0),
        _node(b"n", 1, encode("range", _refer)),
        encode(1, _refer) + b"x",
        _named("no such", 1),
        _named("type", "eval"),
        _named("type", "__import__"),
        _named("type", 5),
        _named("range", [1, 2]),
        _named("range", (object(), 1)),
        _named("range", (1, 2, 0)),
        _named("slice", (1, object(), 2)),
        _named("slice", (1,)),
        _named("Fraction", (1, 0)),
        _named("Decimal", "x"),
        _named("Decimal", object()),
        _named("date", (2024, 13, 1)),
        _named("datetime", (2024, 1, 1, 0, 0, 0, 0)),
        _named("datetime", (2024, 1, 1, 0, 0, 0, 0, "UTC", 0)),
        _named("datetime", (2024, 1, 1, 0, 0, 0, 0, None, 2)),
        _named("time", (0, 0, 0, 0.0, None, 0)),
        _named("timezone", ()),
        _named("timezone", (3600,)),
        _named("timezone", (timedelta(2),)),
        _named("timezone", (timedelta(1) / 2, 7)),
        _named("ZoneInfo", "Nowhere/None"),
        _named("ZoneInfo", "../../etc/passwd"),
        _named("ZoneInfo", "Europe"),
        _named("ZoneInfo", 3),
        _named("Counter", object()),
        _named("OrderedDict", [(1, 2)]),
        _named("defaultdict", ("eval", {})),
        _named("defaultdict", (5, {})),
        _named("deque", ([1], -1)),
        _named("deque", (object(), None)),
        _named("dict_items", [object()]),
        _named("dict_keys", [[]]),
        _named("namedtuple", ("P", ("x y",), (1,))),
        _named("namedtuple", ("P", ("import",), (1,))),
        _named("namedtuple", ("P\nimport os", ("x",), (1,))),
        _named("namedtuple", ("P", "x", (1,))),
        _node(b"n", 2, encode([], _refer) * 2),
    ],
)
def test_bytes_that_are_no_value(data: bytes) -> None:
    with pytest.raises(EncodingError):
        decode(data, _resolve, set())


def test_any_bytes_give_a_value_or_an_error() -> None:
    rng = random.Random(7)
    whole = encode(VALUES, _refer)
    for _ in range(2000):
        data = bytearray(whole[: rng.randrange(1, len(whole))] if rng.random() < 0.5 else whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            decode(bytes(data), _resolve, set())
        except EncodingError:
            pass
