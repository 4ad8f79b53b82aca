"""`context-bench completion bash|zsh|fish`: a script that completes commands, flags, choices, names and files.

The script holds everything that it offers, so that a press of TAB starts no Python. Each command is asked for its
help, and its own parser tells the flags: a flag that is added anywhere is completed.
"""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Sequence
from importlib import import_module

from context_bench.cli.commands import COMMANDS, find_module
from context_bench.cli.completion_scripts import WRITERS, FlagCommand, FlagValues
from context_bench.cli.flags import add_import
from context_bench.cli.parser import Parser
from context_bench.cli.run_flags import run_parser

__all__ = ["FlagCommand", "FlagValues", "collect", "main"]

SHELLS = ("bash", "zsh", "fish")

_EXAMPLE = """\
examples:
  bash, in ~/.bashrc:
    eval "$(context-bench completion bash)"
  zsh, in ~/.zshrc after compinit:
    eval "$(context-bench completion zsh)"
  fish, once:
  context-bench completion fish > ~/.config/fish/completions/context-bench.fish
"""

_SUBCOMMANDS = {
    "datasets": {"show": "one dataset up close", "fetch": "its records, for later", "import": "own traffic"}
}
"""Second words that a command looks at before its parser does."""

_SAFE = re.compile(r"[\w.+/@-]+")
"""A shell expands the words that it is given: names of plugins that would do something there are not offered."""

_REGISTERED = {
    "system": "system",
    "dataset": "dataset",
    "datasets": "dataset",
    "evaluator": "evaluator",
    "metric": "metric",
    "output": "reporter",
}
"""Flags and arguments that take a component by name, and the registry's word for its kind."""


def main(arguments: Sequence[str]) -> int:
    """Print the script for a shell."""
    parser = Parser(
        prog="context-bench completion",
        description=f"{_EXAMPLE}\n{COMMANDS['completion']}",
    )
    parser.add_argument("shell", choices=SHELLS, help="your shell")
    add_import(parser)
    options = parser.parse_args(arguments[1:])

    from context_bench.refs import import_code

    for code in options.imports:
        import_code(code)
    print(WRITERS[options.shell](collect()), end="")
    return 0


def collect() -> dict[str, FlagCommand]:
    """Collect what can be typed after each command; the empty name is a run."""
    run = _read_parser(run_parser())
    run.commands, run.texts = tuple(COMMANDS), {**run.texts, **COMMANDS}
    found = {"": run}
    for name in COMMANDS:
        parser = _find_parser(name)
        own = found[name] = _read_parser(parser)
        actions = {**_SUBCOMMANDS.get(name, {}), **_read_actions(parser)}
        own.commands, own.texts = tuple(actions), {**own.texts, **actions}
        for action in actions:
            found[f"{name} {action}"] = _read_parser(_find_parser(name, action))
    found["run"].flags, found["run"].texts = run.flags, run.texts  # flags of a run may follow the file
    return found


def _find_parser(*words: str) -> Parser:
    """Find the parser of a command, by asking the command for its help."""
    found: list[Parser] = []
    before, Parser.on_help = Parser.on_help, found.append
    try:
        with contextlib.suppress(SystemExit):
            import_module(find_module(words[0])).main([*words, "--help"])
    finally:
        Parser.on_help = before
    return found[0]


def _read_actions(parser: Parser) -> dict[str, str]:
    """Read the actions of a command that has some, with what they do."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {each.dest: each.help or "" for each in action._choices_actions}
    return {}


def _read_parser(parser: Parser) -> FlagCommand:
    command = FlagCommand()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            continue
        if not action.option_strings:
            values = _read_values(action)
            words = (*command.arguments.words, *values.words)
            command.arguments = FlagValues(words, command.arguments.files or values.files)
        for flag in action.option_strings:
            command.flags[flag] = None if action.nargs == 0 else _read_values(action)
            command.texts[flag] = parser._get_formatter()._expand_help(action)
    return command


def _read_values(action: argparse.Action) -> FlagValues:
    """Read what the value of a flag can be, from its choices, its name and its place in the help."""
    shown = action.metavar if isinstance(action.metavar, str) else ""
    if action.choices is not None:
        return FlagValues(tuple(map(str, action.choices)))
    files = "folder" if shown == "DIR" else "file" if "FILE" in shown or shown == "SCRIPT" else ""
    if action.dest in _REGISTERED:
        from context_bench.registry import registry

        names = filter(_SAFE.fullmatch, registry.list(_REGISTERED[action.dest]))
        return FlagValues(tuple(names), "file" if shown == "REF" else "")
    if action.dest == "vendor":
        from context_bench.tap.vendors import VENDORS

        return FlagValues(VENDORS)
    return FlagValues(_WORDS.get(shown, ()), files)


_WORDS = {"RUN": ("last",), "local|FILE": ("local",), "SCRIPT": ("extract", "echo", "text:")}
"""Words that stand for something, by how the help calls the value."""
