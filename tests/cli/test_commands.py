"""One file a command, named as the command; and no module name here that means something else elsewhere."""

from __future__ import annotations

from collections import defaultdict
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


@pytest.mark.parametrize("package", ["cli", "sandbox", "conformance", "metrics"])
def test_a_module_name_means_one_thing(package: str) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        places[path.stem].append(path.relative_to(ROOT).as_posix())
    commands = {command.replace("-", "_") for command in COMMANDS} | {"__init__"}
    own = {path.stem for path in (ROOT / package).rglob("*.py")} - (commands if package == "cli" else {"__init__"})
    assert {name: places[name] for name in own if len(places[name]) > 1} == {}
