"""The file itself: made once by whoever comes first, refused with one sentence, readable whatever happened to it."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import sqlite3
import string
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from command import called, environment
from context_bench.errors import StoreError
from context_bench.store import Store
from context_bench.store.database import FILE_NAME, SCHEMA, connect
from numbered import right, write
from servers import Server

RUN = ("--system", "passthrough", "--dataset", "data.jsonl", "--cache-dir")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a dataset, and a store with one run over it."""
    write(tmp_path / "data.jsonl", *range(300))
    done = called(*RUN, "store", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def one_sentence(done: subprocess.CompletedProcess[str], said: str) -> None:
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert said in done.stderr.splitlines()[-1]


def _open_and_close(directory: str, gun: multiprocessing.synchronize.Event) -> None:
    gun.wait()
    for _ in range(5):
        Store(directory).close()


@pytest.mark.long
def test_many_processes_make_one_store_at_the_same_moment(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    for attempt in range(5):
        gun = context.Event()
        directory = tmp_path / str(attempt)
        racers = [context.Process(target=_open_and_close, args=(str(directory), gun)) for _ in range(8)]  # type: ignore[attr-defined]
        for racer in racers:
            racer.start()
        gun.set()
        for racer in racers:
            racer.join(30)
        assert [racer.exitcode for racer in racers] == [0] * 8
        with closing(connect(directory)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA,)


def test_a_store_of_a_newer_version_is_left_alone(here: Path) -> None:
    path = here / "store" / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = path.read_bytes()
    one_sentence(called(*RUN, "store", cwd=here), f"newer context-bench (schema {SCHEMA + 1}; this one knows {SCHEMA})")
    one_sentence(called("runs", "list", "--cache-dir", "store", cwd=here), "newer context-bench")
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [-1, -(2**31), 1, SCHEMA - 1, 0, SCHEMA + 1, 2**31 - 1])
def test_a_store_of_another_version_is_refused_with_one_sentence(here: Path, version: int) -> None:
    path = here / "store" / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    said = {0: "is not a store of context-bench"}.get(
        version, "upgrade, or use" if version > SCHEMA else "move it away"
    )
    for arguments in (
        (*RUN, "store"),
        *((*each, "--cache-dir", "store") for each in (("runs", "list"), ("score", "last"))),
    ):
        one_sentence(called(*arguments, cwd=here), said)
    assert path.read_bytes() == before


def test_a_store_without_its_tables_is_damaged(here: Path) -> None:
    with closing(sqlite3.connect(here / "store" / FILE_NAME)) as connection:
        connection.execute("DROP TABLE keys")
    one_sentence(called(*RUN, "store", cwd=here), "is damaged (it has no table 'keys')")


def test_the_database_of_another_program_is_left_alone(here: Path) -> None:
    (here / "other").mkdir()
    with closing(sqlite3.connect(here / "other" / FILE_NAME)) as connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT)")
    before = (here / "other" / FILE_NAME).read_bytes()
    one_sentence(called(*RUN, "other", cwd=here), "is not a store of context-bench")
    assert (here / "other" / FILE_NAME).read_bytes() == before


@pytest.mark.parametrize("garbage", [b"this is no database, it is a text of some length" * 50, b"\x00" * 5000])
def test_a_file_that_is_no_database(here: Path, garbage: bytes) -> None:
    (here / "other").mkdir()
    (here / "other" / FILE_NAME).write_bytes(garbage)
    one_sentence(called(*RUN, "other", cwd=here), "is damaged")
    one_sentence(called("runs", "list", "--cache-dir", "other", cwd=here), "is damaged")
    assert (here / "other" / FILE_NAME).read_bytes() == garbage


def test_a_file_whose_end_is_missing(here: Path) -> None:
    path = here / "store" / FILE_NAME
    os.truncate(path, path.stat().st_size // 3)
    one_sentence(called(*RUN, "store", cwd=here), "is damaged")
    one_sentence(called("runs", "export", "last", "--cache-dir", "store", cwd=here), "is damaged")


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_a_page_of_rubbish_in_the_middle(here: Path, share: float) -> None:
    path = here / "store" / FILE_NAME
    page = int(path.stat().st_size * share) // 4096 * 4096
    with path.open("r+b") as file:
        file.seek(page)
        file.write(b"\xff" * 4096)
    for arguments in ((*RUN, "store"), ("runs", "export", "last", "--cache-dir", "store"), ("score", "last")):
        more = () if "--cache-dir" in arguments else ("--cache-dir", "store")
        done = called(*arguments, *more, cwd=here)
        assert "Traceback" not in done.stderr, done.stderr
        if done.returncode:
            one_sentence(done, "is damaged")


def test_an_empty_file_is_a_new_store(here: Path) -> None:
    (here / "other").mkdir()
    (here / "other" / FILE_NAME).touch()
    assert called(*RUN, "other", cwd=here).returncode == 0


def test_a_file_in_place_of_the_directory(here: Path) -> None:
    (here / "file").touch()
    one_sentence(called(*RUN, "file", cwd=here), "use another --cache-dir, or --no-store")
    one_sentence(called(*RUN, "file/below", cwd=here), "use another --cache-dir, or --no-store")


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a /proc, where nobody can write")
def test_a_place_where_nobody_can_write(here: Path) -> None:
    one_sentence(called(*RUN, "/proc/nowhere", cwd=here), "cannot be written")


def test_looking_makes_nothing(tmp_path: Path) -> None:
    for arguments in (("runs", "list"), ("runs", "show", "last"), ("runs", "rm", "last"), ("score", "last")):
        one_sentence(called(*arguments, cwd=tmp_path), "nothing was recorded there yet")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="nothing was recorded"):
        Store(tmp_path, readonly=True)


def test_a_failed_opening_leaves_nothing_open(tmp_path: Path) -> None:
    """An unclosed connection would be a warning, and warnings are errors."""
    (tmp_path / FILE_NAME).write_bytes(b"x" * 5000)
    with pytest.raises(StoreError):
        Store(tmp_path)


# Disks


def _as_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("mount") is not None


@contextmanager
def small_disk(directory: Path, size: str) -> Iterator[None]:
    directory.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", directory], check=False)
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


@pytest.mark.skipif(not _as_root(), reason="only root can mount a disk that is small or read-only")
def test_a_read_only_disk_can_be_read(here: Path) -> None:
    disk = here / "disk"
    with small_disk(disk, "4m"):
        shutil.copy(here / "store" / FILE_NAME, disk / FILE_NAME)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        one_sentence(called(*RUN, "disk", cwd=here), "cannot be written")
        listed = called("runs", "list", "--cache-dir", "disk", cwd=here)
        assert "passthrough" in listed.stdout, listed.stderr
        exported = called("runs", "export", "last", "--output", "csv", "--cache-dir", "disk", cwd=here)
        assert len(exported.stdout.splitlines()) == 301


def _make_noise(length: int) -> str:
    """A text that cannot be compressed."""
    return "".join(random.Random(1).choices(string.printable[:90], k=length))


@pytest.mark.skipif(not _as_root(), reason="only root can mount a disk that is small or read-only")
def test_a_full_disk_stops_the_run_and_keeps_what_was_there(here: Path) -> None:
    write(here / "big.jsonl", *range(600), notes=_make_noise(20_000))
    disk = here / "disk"
    with small_disk(disk, "2m"), Server(right) as server:
        run = ("--proxy", server.url, "--name", "p", "--dataset", "big.jsonl", "--cache-dir", "disk")
        done = called(*run, cwd=here)
        one_sentence(done, "is full: free some space, then continue with --resume")
        assert "| p " in done.stdout, "there is a report of what was done"
        assert "stopped early: the disk" in done.stdout
        spent = len(server.chats)
        assert spent < 600
        listed = called("runs", "list", "--cache-dir", "disk", cwd=here)
        assert listed.returncode == 0, listed.stderr
        exported = called("runs", "export", "last", "--output", "csv", "--cache-dir", "disk", cwd=here)
        kept = len(exported.stdout.splitlines()) - 1
        assert 0 < kept <= spent
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = called(*run, cwd=here)
        assert again.returncode == 0, again.stderr
        assert len(server.chats) <= spent + 600 - kept
    assert not (disk / FILE_NAME).exists(), "the disk is gone again"


def test_a_file_that_may_not_grow(here: Path) -> None:
    """The same as a full disk, for everybody."""
    write(here / "big.jsonl", *range(400), notes=_make_noise(8_000))

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

    command = [sys.executable, "-m", "context_bench", "--system", "passthrough", "--dataset", "big.jsonl"]
    done = subprocess.run(
        [*command, "--cache-dir", "small"],
        cwd=here,
        env=environment(),
        preexec_fn=small,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert FILE_NAME in done.stderr.splitlines()[-1]
    assert "passthrough" in called("runs", "list", "--cache-dir", "small", cwd=here).stdout
