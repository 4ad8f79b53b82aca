"""A record that is not as it was written is known to be damaged, whichever bit it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any
from zlib import crc32

import pytest
import zstandard

from context_bench.store.seals import Damaged, about_keys, about_one, about_row, load, seal, sum_values, unseal


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


@pytest.mark.parametrize("length", range(12))
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
