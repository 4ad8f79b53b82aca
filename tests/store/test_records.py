"""What is written down comes back as it was, nothing is written twice, and a damaged record is known to be one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from zlib import crc32

import orjson
import pytest
import zstandard

from banks import each_case
from context_bench.results import EvalRow
from context_bench.store.records import (
    Damaged,
    about_keys,
    about_one,
    about_row,
    identity_of,
    load,
    pack_keys,
    pack_processed,
    pack_row,
    places_of,
    run_of,
    seal,
    sum_values,
    to_bytes,
    unpack_keys,
    unpack_processed,
    unpack_row,
    unseal,
)

EXAMPLE: dict[str, Any] = {
    "id": 1,
    "context": "a long context",
    "question": "q",
    "answer": "gold",
    "tags": ["x", {"y": 1}],
}


@each_case(
    "processed",
    [
        {"response": "an answer"},
        {"response": ""},
        {"context": "short", "response": "short"},
        {"context": "short", "response": "an answer"},
        {"context": "a long context", "response": "a long context"},
        {**EXAMPLE, "response": "a long context"},
        {**EXAMPLE, "context": "short", "response": "short", "tags": []},
        {"response": "gold", "answer": "gold"},
        {"response": "x", "question": None},
        {"response": "x", "documents": [{"id": "d", "text": "t"}], "tool_calls": [{"function": {"name": "f"}}]},
    ],
)
@each_case("example", [EXAMPLE, {**EXAMPLE, "response": "somebody else's"}], ids=["plain", "has response"])
def test_a_result_comes_back(processed: dict[str, Any], example: dict[str, Any]) -> None:
    packed = orjson.loads(to_bytes(pack_processed(processed, example)))
    assert unpack_processed(packed, example) == processed


def test_a_context_is_not_written_again() -> None:
    long = {"id": 1, "context": "word " * 10_000}
    for processed in ({**long, "response": long["context"]}, {"context": long["context"], "response": "x"}):
        assert len(to_bytes(pack_processed(processed, long))) < 200
    short = {"context": "half " * 5_000, "response": "half " * 5_000}
    assert len(to_bytes(pack_processed(short, long))) < 26_000


def test_values_that_do_not_say_whether_they_are_equal() -> None:
    class Array:
        def __eq__(self, other: object) -> Any:
            class Many:
                def __bool__(self) -> bool:
                    raise ValueError("ambiguous")

            return Many()

        __hash__ = None  # type: ignore[assignment]

    assert pack_processed({"response": "x", "v": Array()}, {"v": Array()})["same"] == []


def test_a_row_comes_back() -> None:
    row = EvalRow(
        system="s|é",
        example_id="id",
        scores={"f1": 0.1 + 0.2, "exact_match": 0.0},
        input_tokens=3,
        output_tokens=2,
        metadata={"output": "context", "cost": 1e-9, "nested": {"list": [1, None, "x"]}},
        latency=1 / 3,
        dataset="d",
        response="the response",
        error=None,
        repeat=2,
        unscored={"judge": "away"},
        upstream_tokens=7,
    )
    assert unpack_row(orjson.loads(pack_row(row)), "the response") == row
    failed = EvalRow("s", 1, {}, 3, 0, error="TimedOut: no answer")
    assert unpack_row(orjson.loads(pack_row(failed)), "") == failed
    assert b"the response" not in pack_row(row)


@pytest.mark.parametrize("odd", ["\ud800", 2**70, {1, 2}, {("a", 1): 2}, float("nan"), b"bytes", object])
def test_odd_values_are_written_somehow(odd: Any) -> None:
    assert orjson.loads(to_bytes({"value": odd}))


# 2 ** 32 is 4,294,967,296
@pytest.mark.parametrize(
    ("run", "place", "identity"),
    [
        (0, 0, 0),
        (1, 0, 4_294_967_296),
        (3, 5, 12_884_901_893),
        (3, 4_294_967_295, 17_179_869_183),
        (4, 0, 17_179_869_184),
    ],
)
def test_an_id_is_the_run_and_the_place_in_it(run: int, place: int, identity: int) -> None:
    assert identity_of(run, place) == identity
    assert run_of(identity) == run


def test_the_places_of_a_run_end_where_those_of_the_next_begin() -> None:
    assert places_of(3) == (12_884_901_888, 17_179_869_184)
    assert places_of(4)[0] == places_of(3)[1]


def test_keys_as_they_stand_on_disk() -> None:
    known = [(b"0123456789abcdef", 1), (b"\x00" * 16, 12_884_901_893), (b"\xff" * 16, 2**63 - 1)]
    body = (
        *(b"0123456789abcdef", b"\x01\0\0\0\0\0\0\0"),
        *(b"\x00" * 16, b"\x05\0\0\0\x03\0\0\0"),
        *(b"\xff" * 16, b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
    )
    assert pack_keys(known) == b"".join(body)
    assert list(unpack_keys(b"".join(body))) == known


def test_no_keys_and_keys_that_come_twice() -> None:
    assert pack_keys([]) == b""
    assert list(unpack_keys(b"")) == []
    twice = [(b"0123456789abcdef", 2), (b"0123456789abcdef", 1)]
    assert list(unpack_keys(pack_keys(iter(twice)))) == twice, "in their order: the last one counts"


def test_a_record_as_it_stands_on_disk() -> None:
    checksum = crc32(b"content", crc32(b"about")).to_bytes(4, "little")
    assert seal(b"content", b"about") == b"\x00" + checksum + b"content"
    assert crc32(b"123456789") == 0xCBF43926, "the CRC-32 that everybody means"


def test_what_a_record_belongs_to() -> None:
    assert about_one(7) == b"\x07" + b"\0" * 7
    assert about_one(7, b"key") == b"\x07" + b"\0" * 7 + b"key"
    assert about_row(7, 258) == b"\x07" + b"\0" * 7 + b"\x02\x01" + b"\0" * 6
    assert about_row(7, None) == b"\x07" + b"\0" * 7 + b"\xff" * 8
    assert about_keys(1, "row") == b"\x01" + b"\0" * 7 + b"row"


@pytest.mark.parametrize("content", [b"", b"x", b'{"a": [1, 2.5, "text"]}', bytes(range(256)) * 20])
def test_content_comes_back(content: bytes) -> None:
    assert unseal(seal(content, b"k"), b"k") == content


def test_every_flipped_bit_is_seen() -> None:
    record = seal(b'{"score": 0.5}', about_one(3))
    for bit in range(len(record) * 8):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            unseal(bytes(damaged), about_one(3))


@each_case("length", range(12))
def test_a_record_that_is_cut_is_seen(length: int) -> None:
    with pytest.raises(Damaged):
        unseal(seal(b"content", b"k")[:length], b"k")


def test_a_record_of_something_else_is_seen() -> None:
    record = seal(b"content", about_one(3))
    for about in (b"", about_one(4), about_one(3, b"k"), about_row(3, None)):
        with pytest.raises(Damaged):
            unseal(record, about)


@pytest.mark.parametrize("record", [None, "text", 5, 2.5, b""])
def test_a_column_of_another_kind_is_seen(record: Any) -> None:
    with pytest.raises(Damaged):
        unseal(record, b"k")


@pytest.mark.parametrize("value", ["3", 2.5, b"3", 2**70])
def test_an_id_of_another_kind_is_seen(value: Any) -> None:
    for about in (about_one, lambda each: about_row(each, 1), lambda each: about_row(1, each)):
        with pytest.raises(Damaged):
            about(value)
    with pytest.raises(Damaged):
        about_one(3, None)  # type: ignore[arg-type]


def test_what_is_no_json_is_damaged() -> None:
    assert load(seal(b"[1, null]", b"k"), b"k") == [1, None]
    with pytest.raises(Damaged):
        load(seal(b"[1, nul", b"k"), b"k")


def test_columns_are_told_apart() -> None:
    columns: list[tuple[Any, ...]] = [(1, "a"), (1, "b"), (2, "a"), (1, "a", None), (1, None), ("1", "a"), (1, b"\xff")]
    assert len({sum_values(*each) for each in columns}) == len(columns)


# --- compressed


LONG = b"The quick brown fox jumps over the lazy dog. " * 2_000


def test_a_long_content_is_compressed_where_that_is_smaller() -> None:
    record = seal(LONG, b"k")
    assert (record[0], len(record) < len(LONG) / 10) == (1, True)
    assert zstandard.ZstdDecompressor().decompress(record[5:]) == LONG
    assert int.from_bytes(record[1:5], "little") == crc32(b"k\x01" + record[5:])
    assert unseal(record, b"k") == LONG


@pytest.mark.parametrize("content", [LONG[:4_000], Random(1).randbytes(90_000)])
def test_any_other_content_stays_as_it_is(content: bytes) -> None:
    record = seal(content, b"k")
    assert record[:1] + record[5:] == b"\x00" + content
    assert unseal(record, b"k") == content


def test_a_long_content_that_was_written_as_it_is_can_be_read() -> None:
    record = b"\x00" + crc32(b"k" + LONG).to_bytes(4, "little") + LONG
    assert unseal(record, b"k") == LONG


def test_no_flipped_bit_of_a_compressed_record_goes_unnoticed() -> None:
    record = seal(LONG, about_one(3))
    for bit in range(8 * len(record)):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Damaged):
            unseal(bytes(damaged), about_one(3))


def test_threads_compress_side_by_side() -> None:
    with ThreadPoolExecutor(4) as threads:
        contents = [bytes([65 + n % 26]) * 50_000 + LONG for n in range(200)]
        records = list(threads.map(lambda each: seal(each, b"k"), contents))
        assert list(threads.map(lambda each: unseal(each, b"k"), records)) == contents
