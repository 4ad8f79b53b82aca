"""One file a command, named as the command; and no module name here that means something else elsewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import context_bench
from context_bench.cli.commands import COMMANDS, find_module

ROOT = Path(context_bench.__file__).parent


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_the_main_of_the_module_with_its_name(command: str) -> None:
    module = import_module(find_module(command))
    assert module.__name__ == f"context_bench.cli.{command.replace('-', '_')}"
    assert callable(module.main)
    assert str(module.__doc__).startswith(f"`context-bench {command}")
