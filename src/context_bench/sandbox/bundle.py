"""Bundles what a fresh interpreter is sent: the modules of `inside`, compiled once, and a job.

Sent through standard input, so that the sandbox needs no view of this package and no compiled files
on disk, and nothing shows in a process list.
"""

from __future__ import annotations

import marshal
from functools import cache
from types import CodeType
from typing import Any

__all__ = ["BOOT", "bundle"]

_PACKAGE = "context_bench.sandbox.inside"
_CONVERSATION = ("confine", "standard", "encoding", "peer")
_USED_BY = {
    "confine": ("confine",),
    "candidate": (*_CONVERSATION, "program", "candidate"),
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
