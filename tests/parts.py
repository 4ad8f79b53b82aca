"""The registered parts that the contract tests can make: those that need no arguments, no server and no program."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from context_bench.errors import MissingExtra
from context_bench.registry import registry

ELSEWHERE = {"openai-proxy", "anthropic-proxy", "claude-cli", "command"}
"""Systems that need a server or a program; their own tests start one."""


def list_makeable(kind: str) -> list[str]:
    """List the names of the parts of a kind that can be made without arguments."""
    names = [name for name in registry.list(kind) if name not in ELSEWHERE]
    return [name for name in names if _needs_nothing(registry.get(kind, name))]


def make_part(kind: str, name: str) -> Any:
    """Make a part; the test is skipped where a library that it needs is not installed."""
    try:
        return registry.get(kind, name)()
    except MissingExtra as missing:
        pytest.skip(str(missing))


def _needs_nothing(component: Any) -> bool:
    parameters = inspect.signature(component).parameters.values()
    return all(
        each.default is not each.empty or each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters
    )
