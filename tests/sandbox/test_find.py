"""Where no sandbox is to be had, one sentence says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from context_bench.errors import UsageError
from context_bench.sandbox import find
from context_bench.sandbox.plain import Plain


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    find._bubblewrap.cache_clear()
    yield
    find._bubblewrap.cache_clear()


def test_no_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"install bubblewrap \(apt install bubblewrap.*sandbox='none'.*--unsafe-code"):
        find.find_isolation("auto")


def test_a_bubblewrap_that_does_not_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: Unknown option --size' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"0\.7 or newer.*Unknown option --size"):
        find.find_isolation("auto")


@pytest.mark.parametrize("platform", ["darwin", "freebsd14"])
def test_other_systems(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr("sys.platform", platform)
    with pytest.raises(UsageError, match="use Linux or a container"):
        find.find_isolation("auto")


def test_none_is_only_given_when_asked_for() -> None:
    assert isinstance(find.find_isolation("none"), Plain)
