"""The argparse parser of every command: a mistake is answered with one sentence, and the nearest flag."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar, NoReturn

__all__ = ["Parser"]

_MISSPELLED = 0.6
"""How alike a value and a choice are, from 0 to 1, before it is asked whether that one was meant."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps the help of a flag between words, never within `--one-of-its-flags`."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, and where to read on. Descriptions keep their lines."""

    on_help: ClassVar[Callable[[Parser], None] | None] = None
    """Called instead of printing help, so that completion learns the flags of every command from the command itself."""

    commands: Collection[str] = ()
    """Words that may stand first, and are looked for before the flags are read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _HelpFormatter, **options})

    @property
    def flags(self) -> dict[str, argparse.Action]:
        """Every flag but those that ask for help, by its long name."""
        flags = {name[2:]: action for name, action in self._option_string_actions.items() if name.startswith("--")}
        return {name: action for name, action in flags.items() if name not in ("help", "help-all", "version")}

    def print_help(self, file: Any = None) -> None:
        """Print the help, or hand the parser to whoever wants to know its flags."""
        hook = Parser.on_help
        if hook is None:
            super().print_help(file)
        else:
            hook(self)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of the choices, in our form."""
        if action.choices is not None and value not in action.choices:
            from context_bench.errors import suggest

            meant = suggest(str(value), map(str, action.choices), _MISSPELLED)
            said = f"must be {_list_choices(action.choices)} (got {value!r}){meant and f'; {meant}'}"
            raise argparse.ArgumentError(action, said)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one sentence, and exit with 2."""
        from context_bench.cli.messages import say
        from context_bench.text.masking import mask_command

        message = re.sub(r"^argument (\S+): must ", r"\1 must ", message)
        message = re.sub(r"^argument (\S+): expected (?:one|at least one) argument$", r"\1 needs a value", message)
        say(f"{mask_command(message)}{self._suggest_word(message)} (see {self.prog} --help)")
        self.exit(2)

    def _suggest_word(self, message: str) -> str:
        """Name the flag or the command that a mistyped one is most like."""
        from difflib import get_close_matches

        said, _, words = message.partition(": ")
        if said != "unrecognized arguments":
            return ""
        flags = [word.partition("=")[0] for word in words.split() if word.startswith("--")]
        word, known = (flags[0], self._option_string_actions) if flags else (words.split()[0], self.commands)
        if word in self.commands:
            return f"; {word} is a command, and stands before all flags"
        near = get_close_matches(word, known, n=1)
        return f"; did you mean {near[0]}?" if near else ""


def _list_choices(choices: Iterable[Any]) -> str:
    *others, last = map(str, choices)
    return f"{', '.join(others)} or {last}" if others else last
