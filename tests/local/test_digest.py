"""Digests of files: right, remembered, and read again when the file may be another."""

from __future__ import annotations

import json
import os
from pathlib import Path

from context_bench.local.weights import digest_of

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""The example of the standard, FIPS 180-4: the digest of `abc`."""
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_the_digest_of_the_standard(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    assert digest_of(tmp_path / "abc", tmp_path) == ABC
    assert digest_of(tmp_path / "empty", tmp_path) == EMPTY


def test_a_file_that_looks_the_same_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"abc")
    facts = file.stat()
    digest_of(file, tmp_path)
    file.write_bytes(b"xyz")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert digest_of(file, tmp_path) == ABC


def test_a_file_with_another_time_or_size_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "model"
    file.write_bytes(b"xyz")
    digest_of(file, tmp_path)
    file.write_bytes(b"abc")
    os.utime(file, ns=(0, 0))
    assert digest_of(file, tmp_path) == ABC
    file.write_bytes(b"")
    os.utime(file, ns=(0, 0))
    assert digest_of(file, tmp_path) == EMPTY


def test_two_files_are_remembered_side_by_side(tmp_path: Path) -> None:
    for name, content in (("one", b"abc"), ("two", b"")):
        (tmp_path / name).write_bytes(content)
        digest_of(tmp_path / name, tmp_path / "notes")
    for name in ("one", "two"):  # what is remembered answers
        facts = (tmp_path / name).stat()
        (tmp_path / name).write_bytes(b"x" * facts.st_size)
        os.utime(tmp_path / name, ns=(0, facts.st_mtime_ns))
    assert digest_of(tmp_path / "one", tmp_path / "notes") == ABC
    assert digest_of(tmp_path / "two", tmp_path / "notes") == EMPTY


def test_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    for name in ("gone", "there"):
        (tmp_path / name).write_bytes(b"abc")
        digest_of(tmp_path / name, tmp_path)
        (tmp_path / "gone").unlink(missing_ok=True)
    assert set(json.loads((tmp_path / "digests.json").read_text())) == {str((tmp_path / "there").resolve())}


def test_a_damaged_or_unwritable_memory_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    for damaged in (b"{", b"[]", b'{"abc": 1}', b"\xff"):
        (tmp_path / "digests.json").write_bytes(damaged)
        assert digest_of(tmp_path / "abc", tmp_path) == ABC
    assert digest_of(tmp_path / "abc", tmp_path / "abc" / "no folder") == ABC
