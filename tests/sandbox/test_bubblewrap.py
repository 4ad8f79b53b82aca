"""The options of the sandbox, and what it says when it cannot be set up."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

from context_bench.sandbox.isolation import Bubblewrap, _build_options, _list_folders_above, _list_visible_paths
from timing import depends_on_time


def test_little_is_visible() -> None:
    shown = _list_visible_paths()
    home = str(Path.home())
    assert home not in shown
    assert "/" not in shown
    assert "/etc" not in shown
    assert os.path.realpath(getattr(sys, "_base_executable", sys.executable)) in shown or any(
        sys.executable.startswith(path) for path in shown
    )
    assert all(not one.startswith(f"{other}/") for one in shown for other in shown)


def test_everything_is_kept_apart() -> None:
    options = _build_options()
    for needed in ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--die-with-parent"):
        assert needed in options
    for needed in ("--new-session", "--clearenv", "--remount-ro"):
        assert needed in options
    assert options[options.index("--cap-drop") + 1] == "ALL"
    assert "--bind" not in options
    assert "--proc" not in options


def test_what_can_be_written_to_has_a_size() -> None:
    options = _build_options()
    places = [at for at, option in enumerate(options) if option == "--tmpfs"]
    assert [options[at + 1] for at in places] == ["/tmp", "/dev/shm"]
    assert [options[at - 2 : at] for at in places] == [["--size", str(32 << 20)]] * 2


def test_folders_above() -> None:
    assert _list_folders_above(["/a/b/c", "/a/d", "/e"]) == ["/a", "/a/b"]


def test_a_complaint(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert Bubblewrap(str(broken)).complaint() == "bwrap: No permissions to create new namespace"
    assert "No such file" in str(Bubblewrap(str(tmp_path / "none")).complaint())


def test_a_sandbox_that_fails_later_gives_no_verdict(tmp_path: Path) -> None:
    from context_bench.sandbox import read_task, run

    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    task = read_task({"test_list": ["assert f() == 1"]})
    assert task is not None
    verdict = run(task, ["def f():\n    return 1\n"], Bubblewrap(str(broken)), 5.0)
    assert (verdict.passed, verdict.reason) == (None, "the sandbox did not start")


@depends_on_time("while this process waits for a processor, the others may start")
@pytest.mark.parametrize("seconds", [0.001])
def test_no_time_to_start_is_no_verdict(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from context_bench.sandbox import find_isolation, read_task, run

    task = read_task({"test_list": ["assert f() == 1"]})
    assert task is not None
    monkeypatch.setattr(import_module("context_bench.sandbox.verdict"), "_MIN_START_SECONDS", seconds)
    verdict = run(task, ["def f():\n    return 1\n"], find_isolation("none"), seconds)
    assert verdict.passed is None
