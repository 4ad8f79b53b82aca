"""Flags: the parser of every command, options as flags, and values from run files and the environment."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

from context_bench.config import STORE, RunOptions
from context_bench.options import (
    AMOUNT,
    ANYTHING,
    COUNT,
    FOLDER,
    NUMBER,
    PAGE,
    PORT,
    POSITIVE,
    SWITCH,
    TEXT,
    Kind,
    Option,
    Options,
)

LEAST_LIKENESS = 0.6  # least similarity (0 to 1) of a value and a suggested choice


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the help of a flag between words, never within `--one-of-its-flags`."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """Parser with one-sentence errors that name the help. Descriptions keep their line breaks."""

    on_help: ClassVar[Callable[[Parser], None] | None] = None
    """Called instead of printing help; completion reads the flags of every command this way."""

    commands: Collection[str] = ()  # possible first words, handled before the flags are parsed

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _HelpFormatter, **options})

    @property
    def flags(self) -> dict[str, argparse.Action]:
        """All flags except those for help, by long name."""
        flags = {name[2:]: action for name, action in self._option_string_actions.items() if name.startswith("--")}
        return {name: action for name, action in flags.items() if name not in ("help", "help-all", "version")}

    def print_help(self, file: Any = None) -> None:
        """Print the help, or pass the parser to completion."""
        hook = Parser.on_help
        if hook is None:
            super().print_help(file)
        else:
            hook(self)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from context_bench.errors import suggest

            meant = suggest(str(value), map(str, action.choices), LEAST_LIKENESS)
            said = f"must be {_list_choices(action.choices)} (got {value!r}){meant and f'; {meant}'}"
            raise argparse.ArgumentError(action, said)

    def error(self, message: str) -> NoReturn:
        from context_bench.cli.messages import say
        from context_bench.text.masking import mask_command

        message = re.sub(r"^argument (\S+): must ", r"\1 must ", message)
        message = re.sub(r"^argument (\S+): expected (?:one|at least one) argument$", r"\1 needs a value", message)
        say(f"{mask_command(message)}{self._suggest_word(message)} (see {self.prog} --help)")
        self.exit(2)

    def _suggest_word(self, message: str) -> str:
        """Suggest the flag or command that is most similar to a mistyped one."""
        from difflib import get_close_matches

        said, _, words = message.partition(": ")
        if said != "unrecognized arguments":
            return ""
        flags = [word.partition("=")[0] for word in words.split() if word.startswith("--")]
        word, known = (flags[0], self._option_string_actions) if flags else (words.split()[0], self.commands)
        if word in self.commands:
            return f"; {word} is a command: write it before all flags"
        near = get_close_matches(word, known, n=1)
        return f"; did you mean {near[0]}?" if near else ""


def _list_choices(choices: Iterable[Any]) -> str:
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last


def _make_type(kind: Kind) -> Callable[[str], Any]:
    """Return the `type` of a flag, which parses a text or explains in one sentence what it must be."""

    def parse(text: str) -> Any:
        try:
            return kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


amount, count, number, page, port_number, positive = map(_make_type, (AMOUNT, COUNT, NUMBER, PAGE, PORT, POSITIVE))


def add_flags(group: Any, *names: str, required: bool = False, **changes: Any) -> None:
    """Add options of a run as flags of another command; `changes` replace the help or default of an option."""
    for name in names:
        _add_flag(group, RunOptions.declared()[name].replace(**changes), **({"required": True} if required else {}))


def _add_flag(group: Any, option: Option, **more: Any) -> None:
    given: dict[str, Any] = {"dest": option.name, "help": option.text, "default": option.default, **more}
    if option.kind is SWITCH:
        given["action"] = "store_false" if option.default else "store_true"
    else:
        given |= {"metavar": option.metavar, "choices": option.choices or None}
        if option.kind not in (TEXT, ANYTHING, FOLDER):
            given["type"] = _make_type(option.kind)
        if option.repeatable:
            given["action"] = "append"
        if option.bare is not None:
            given |= {"nargs": "?", "const": option.bare}
    group.add_argument(*sorted(option.flags, key=lambda flag: flag.startswith("--")), **given)


def add_store(group: Any, flag: str = "--cache-dir") -> None:
    """Add `--cache-dir` to a command that reads the store; its environment variable is the same as for a run."""
    option = RunOptions.declared()["cache_dir"]
    option = option.replace(help=f"folder of the store (default: {STORE})", _flag=flag)
    _add_flag(group, option, default=os.environ.get(option.variable) or None)


def add_groups(parser: Parser, options: type[Options], groups: Mapping[str, Sequence[str]]) -> None:
    """Add every option of some groups. Options that the user does not pass are absent from the parsed namespace."""
    declared = options.declared()
    for title, names in groups.items():
        group = parser.add_argument_group(title)
        for name in names:
            _add_flag(group, declared[name], default=argparse.SUPPRESS)


class OptionValues(NamedTuple):
    """The options that a command line, its run file and the environment set."""

    given: dict[str, Any]  # their values
    arguments: list[str]  # the equivalent flags
    origins: dict[str, str]  # the source of each value that was not typed, by its run file key


def read_values(
    parser: Parser, options: type[Options], typed: Sequence[str], from_file: Mapping[str, Sequence[str]] | None = None
) -> OptionValues:
    """Read flags, run file and environment: a flag overrides the file, and the file overrides a variable."""
    from_file = from_file or {}
    given = vars(parser.parse_args(typed))
    known = {action.dest for action in parser.flags.values()}
    variables: list[str] = []
    origins: dict[str, str] = {}
    for name, option in options.declared().items():
        if name in from_file and (name not in given or option.repeatable):
            origins[option.key] = "run file and flag" if name in given else "run file"
        elif name in known - from_file.keys() - given.keys() and (flags := _read_variable(option)):
            variables += flags
            origins[option.key] = "environment"
    arguments = [*variables, *(flag for flags in from_file.values() for flag in flags), *typed]
    return OptionValues(vars(parser.parse_args(arguments)), arguments, origins)


def _read_variable(option: Option) -> list[str]:
    text = os.environ.get(option.variable, "")
    if not text or option.is_read_elsewhere:
        return []
    from context_bench.errors import ContextBenchError, UsageError

    if (switched := option.read_switch(text)) is not None:
        return [option.flags[0]] if switched else []
    values = [line for line in text.splitlines() if line.strip()] if option.repeatable else [text]
    try:
        parsed = [option.parse(value) for value in values]
    except ValueError as error:
        rule = f"must be 1 or 0, true or false (got {text!r})" if option.kind is SWITCH else error
        raise UsageError(f"{option.variable} {rule}") from None
    except ContextBenchError as error:
        raise UsageError(f"{option.variable}: {error}") from None
    for value in values if option.choices else ():
        if value not in option.choices:
            raise UsageError(f"{option.variable} must be {_list_choices(option.choices)} (got {value!r})")
    if option.kind is SWITCH:
        return [option.flags[0]] if parsed[0] else []
    return [f"{option.flags[0]}={value}" for value in values]
