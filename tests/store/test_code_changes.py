"""Every kind of change to a user's code gives another key, or none; what changes nothing keeps the key."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_changes import DIFFERENT, KINDS, UNKNOWN, Kind
from context_bench.store.fingerprints import fingerprint_of


def test_there_are_enough_kinds() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS) > 90


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules of one's own; nothing of it is left behind."""
    import textwrap

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the clock of compiled files is too coarse for this
    monkeypatch.setattr(textwrap, "dedent", textwrap.dedent)  # one kind replaces it
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    forget(tmp_path)


def forget(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", [])]
        if any(str(place).startswith(str(folder)) for place in places):
            del sys.modules[name]
    importlib.invalidate_caches()


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def load(folder: Path) -> Any:
    """Import `system` as a new process would."""
    forget(folder)
    return importlib.import_module("system")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_key_follows_the_code(folder: Path, kind: Kind) -> None:
    write(folder, kind.before)
    module = load(folder)
    exec(kind.patch_before, vars(module))
    before = fingerprint_of(module.system)
    assert fingerprint_of(module.system) == before, "the same when asked again"
    write(folder, kind.after)
    if not kind.patch:
        module = load(folder)
    exec(kind.patch, vars(module))
    after = fingerprint_of(module.system)
    if kind.expected == UNKNOWN:
        assert (before, after) == (None, None)
    else:
        assert before is not None
        assert (before != after) == (kind.expected == DIFFERENT)
