"""Where no sandbox is to be had, one sentence says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from context_bench.errors import UsageError
from context_bench.sandbox import isolation
from context_bench.sandbox.isolation import Plain


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    isolation._bubblewrap.cache_clear()
    yield
    isolation._bubblewrap.cache_clear()


def _install(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a `bwrap` of that text on the path, and nothing else."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"install bubblewrap \(apt install bubblewrap.*sandbox='none'.*--unsafe-code"):
        isolation.find_isolation("auto")


def test_a_bubblewrap_that_does_not_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _install(tmp_path, monkeypatch, "echo 'bwrap: Unknown option --size' >&2\nexit 1")
    with pytest.raises(UsageError, match=r"0\.7 or newer.*Unknown option --size"):
        isolation.find_isolation("auto")


@pytest.mark.parametrize("machine", ["riscv64", "ppc64le"])
def test_a_machine_whose_system_calls_are_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, machine: str
) -> None:
    _install(tmp_path, monkeypatch, "exit 0")
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine=machine, release="6.1.0"))
    with pytest.raises(UsageError, match=f"filtered on x86_64 and aarch64 and this is {machine}.*--unsafe-code"):
        isolation.find_isolation("auto")


@pytest.mark.parametrize(
    ("user", "script", "disables"),
    [
        (1000, "", True),
        (
            1000,
            'case "$*" in *--disable-userns*) echo "bwrap: Unknown option --disable-userns" >&2; exit 1;; esac',
            False,
        ),
        (0, "", False),  # it would take the limit on processes away
    ],
)
def test_user_namespaces_are_shut_off_where_that_can_be_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, script: str, disables: bool
) -> None:
    said = tmp_path / "said"
    _install(tmp_path, monkeypatch, f'{script}\necho "$*" >{said}')
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(machine="x86_64", release="6.1.0"))
    isolation.find_isolation("auto")
    assert ("--disable-userns" in said.read_text()) is disables


@pytest.mark.parametrize("platform", ["darwin", "freebsd14"])
def test_other_systems(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr("sys.platform", platform)
    with pytest.raises(UsageError, match="use Linux or a container"):
        isolation.find_isolation("auto")


def test_none_is_only_given_when_asked_for() -> None:
    assert isinstance(isolation.find_isolation("none"), Plain)
