"""Every command has a module; and no module name here that means something else elsewhere."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import context_bench
from context_bench.cli.commands import COMMANDS, find_module

ROOT = Path(context_bench.__file__).parent


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_the_main_of_its_module(command: str) -> None:
    module = import_module(find_module(command))
    assert callable(module.main)
    assert command in str(module.__doc__).partition("\n")[0]
