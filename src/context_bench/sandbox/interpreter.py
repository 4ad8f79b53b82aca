"""A fresh Python for code that is not trusted: its command, its environment, its limits, its input.

It has the standard library and nothing else, so that a verdict does not depend on what happens to be
installed; the fixed hash seed makes it repeatable.
"""

from __future__ import annotations

import marshal
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from types import CodeType
from typing import IO, Any, Protocol

_PACKAGE = "context_bench.sandbox.inside"
_CONVERSATION = ("confine", "encoding", "peer")
_USED_BY = {
    "confine": ("confine",),
    "candidate": (*_CONVERSATION, "candidate"),
    "tester": (*_CONVERSATION, "tester"),
}
"""Modules in the order in which they import each other, for each that has a `main`."""

BOOT = """\
import marshal, sys
modules, job = marshal.loads(sys.stdin.buffer.read())
for name, code in marshal.loads(modules):
    module = sys.modules[name] = type(sys)(name)
    exec(code, module.__dict__)
module.main(job)
"""
"""The command of the interpreter (`python -c`): set the modules up, and run `main` of the last."""


def bundle(main: str, job: dict[str, Any]) -> bytes:
    """Return the bytes that BOOT reads; `main` names the module that gets the job."""
    return marshal.dumps((_compile_modules(main), job))


@cache
def _compile_modules(main: str) -> bytes:
    return marshal.dumps([(f"{_PACKAGE}.{name}", _compile_module(name)) for name in _USED_BY[main]])


def _compile_module(name: str) -> CodeType:
    from importlib import resources

    file = resources.files(_PACKAGE).joinpath(f"{name}.py")
    return compile(file.read_text("utf-8"), f"<{name}>", "exec", dont_inherit=True, optimize=2)


MEMORY = 1 << 30
LIMITS = {"RLIMIT_FSIZE": 16 << 20, "RLIMIT_NOFILE": 64, "RLIMIT_CORE": 0}


class Child(Protocol):
    """A running interpreter."""

    def follow(self) -> None:
        """Get a handle on it, once it has had time to start; needed before it may end by itself."""

    def end(self) -> None:
        """Kill it and all that it started, and wait until they are gone."""


class Isolation(Protocol):
    """A way to start interpreters."""

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        """Start module `main` of `inside` with a job, some open files and so many seconds of CPU time."""


def build_command() -> list[str]:
    """Build the command of a Python that has no site packages, user directory or compiled files, and reads its job."""
    found = getattr(sys, "_base_executable", None) or sys.executable
    return [os.path.realpath(found), "-s", "-S", "-B", "-X", "utf8", "-c", BOOT]


def list_library_folders() -> list[str]:
    """List where this Python keeps its standard library, and shared libraries that came with it."""
    return [os.path.join(sys.base_prefix, name) for name in ("lib", "lib64")]


@cache
def find_zone_folder() -> str | None:
    """Find the data of time zones: the system's, else that of the package tzdata; None without either."""
    from importlib.util import find_spec
    from zoneinfo import TZPATH

    package = find_spec("tzdata")
    folders = [
        *TZPATH,
        *(os.path.join(path, "zoneinfo") for path in (package and package.submodule_search_locations) or ()),
    ]
    return next((folder for folder in folders if os.path.isdir(folder)), None)


def build_environment(home: str) -> dict[str, str]:
    """Build the whole environment that a program sees.

    Of its own accord the C library reserves so much address space for each thread that few would fit.
    """
    zones = find_zone_folder()
    return {
        "HOME": home,
        "LD_LIBRARY_PATH": list_library_folders()[0],
        "MALLOC_ARENA_MAX": "1",
        "PYTHONHASHSEED": "0",
        **({"PYTHONTZPATH": zones} if zones else {}),
    }


def open_job_file(main: str, job: dict[str, Any]) -> IO[bytes]:
    """Open an anonymous file with the job: unlike a pipe it takes any length without a reader."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(bundle(main, job))
    file.seek(0)
    return file
