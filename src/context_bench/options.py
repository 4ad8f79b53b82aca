"""Declarations of options: type, default, help and flag. `context_bench.config` has all options.

Nothing heavy is imported here: `context-bench --help` builds its flags from these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any

PREFIX = "CONTEXT_BENCH_"  # prefix of the environment variables of options

_SHOWN_CHARS = 80  # an error shows a longer value as its type

_SWITCH_WORDS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


class Kind:
    """The type of an option: how its text is parsed, and which Python values are allowed.

    Attributes:
        rule: Follows the option's name in an error: "must be an integer of at least 1".
    """

    def __init__(
        self, rule: str, parse: Callable[[str], Any] = str, allows: Callable[[Any], bool] | None = None
    ) -> None:
        self.rule, self._parse, self._allows = rule, parse, allows

    def parse(self, text: str) -> Any:
        """Parse the text of a flag or of an environment variable.

        Raises:
            ValueError: The text is invalid; the error says what is allowed.
        """
        try:
            return self._parse(text)
        except ValueError:
            raise ValueError(f"{self.rule} (got {text!r})") from None

    def check(self, name: str, value: Any) -> None:
        """Check a value passed in Python.

        Raises:
            UsageError: The value is invalid; the message has name, rule and value.
        """
        if self._allows is not None and not self._allows(value):
            from context_bench.errors import UsageError

            raise UsageError(f"{name} {self.rule} (got {_show(value)})")


def _show(value: Any) -> str:
    """Show a value, or its type if its text is long or fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of an object that we know nothing of
        text = ""
    return text if 0 < len(text) <= _SHOWN_CHARS else f"a {type(value).__name__}"


def _number(convert: Callable[[str], Any], least: float, most: float = 1e300) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        value = convert(text)
        if not least <= value <= most:
            raise ValueError
        return value

    return parse


def _is_integer(least: float) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def are_names(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(each, str) for each in value)


def _parse_words(text: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise ValueError
    return words


def _parse_resources(text: str) -> dict[str, float]:
    pairs = [item.partition("=") for item in text.split(",")]
    if not all(key.strip() and equals for key, equals, _ in pairs):
        raise ValueError
    return {key.strip(): _number(float, 0)(value) for key, _, value in pairs}


def _parse_error_limit(text: str) -> str:
    _number(float, 0)(text.removesuffix("%"))
    return text


def _parse_page(text: str) -> str:
    if not text.lower().endswith((".html", ".htm")):
        raise ValueError
    return text


def _parse_switch(text: str) -> bool:
    if text.lower() not in _SWITCH_WORDS:
        raise ValueError
    return _SWITCH_WORDS[text.lower()]


def _parse_condition(text: str) -> Any:
    return import_module("context_bench.compare.conditions").parse_condition(text)


_MONTHS = {"day": 365 / 12, "week": 365 / 84, "month": 1.0, "year": 1 / 12}  # number of each period in a month
_THOUSANDS = {"k": 1e3, "m": 1e6, "b": 1e9}


def _parse_volume(text: str) -> float:
    """Parse a number of requests per period, such as 2000000/month or 70k/day, into a number per month."""
    amount, _, period = text.lower().replace(",", "").replace("_", "").partition("/")
    unit = _THOUSANDS.get(amount[-1:], 1.0)
    count: float = _number(float, 1e-12)(amount if unit == 1.0 else amount[:-1])
    if period.strip() not in _MONTHS:
        raise ValueError
    return count * unit * _MONTHS[period.strip()]


ANYTHING = Kind("")
TEXT = Kind("must be a text", str, _is_text)
SWITCH = Kind("must be True or False", _parse_switch, lambda value: isinstance(value, int) and value in (0, 1))
INTEGER = Kind("must be an integer", _number(int, -1e300), _is_integer(-1e300))
COUNT = Kind("must be an integer of at least 0", _number(int, 0), _is_integer(0))
POSITIVE = Kind("must be an integer of at least 1", _number(int, 1), _is_integer(1))
PORT = Kind("must be a port from 0 to 65535", _number(int, 0, 65535))
NUMBER = Kind("must be a number", _number(float, -1e300), is_number)
AMOUNT = Kind("must be a number above 0", _number(float, 1e-12))
TEMPERATURE = Kind(
    "must be a number of at least 0, or none", lambda text: None if text.lower() == "none" else _number(float, 0)(text)
)
ERROR_LIMIT = Kind("must be a number of errors or a percentage", _parse_error_limit)
RESOURCES = Kind("must be NAME=N,... such as num_gpus=1,num_cpus=2", _parse_resources)
WORDS = Kind("must be words separated by commas", _parse_words)
NUMBERS = Kind(
    "must be integers of at least 1, separated by commas",
    lambda text: [_number(int, 1)(word) for word in _parse_words(text)],
)
VOLUME = Kind("must be a number of requests in a period, such as 2000000/month or 70k/day", _parse_volume)
PAGE = Kind("must end in .html, because it is an HTML page; `runs export` writes other forms", _parse_page)
CONDITION = Kind("must be a condition", _parse_condition)
NAMES = Kind("must be a list of field names", _parse_words, are_names)
FOLDER = Kind("must be the path of a folder", str, lambda value: isinstance(value, str | os.PathLike))
MAPPING = Kind("must be a dict", str, lambda value: isinstance(value, Mapping))
SYSTEM_NAME = Kind("must be the name of a system", str, _is_text)


def instance_of(place: str, what: str) -> Kind:
    """Return the kind of an option that takes an object of a class, given as `module:Class`."""

    def allows(value: Any) -> bool:
        module, _, name = place.partition(":")
        return isinstance(value, getattr(import_module(module), name))

    return Kind(f"must be {what}", str, allows)


class Option:
    """One option.

    Attributes:
        name: The parameter in Python, and the attribute of `Options`.
        kind: Its type.
        default: Its value if nothing sets it.
        help: The help of the flag; `%(default)s` stands for the default.
        flags: The flags, the long one first; none for an option that exists only in Python.
        metavar: The name of the value in the help.
        choices: The allowed texts; none for any.
        bare: Its value if the flag is given without one; None if the flag needs a value.
        repeatable: The flag may be given several times, and the value is a list.
        variable: The environment variable that sets it.
    """

    def __init__(
        self,
        help: str = "",
        kind: Kind = TEXT,
        default: Any = None,
        *,
        flag: str | None = None,
        metavar: str | None = None,
        choices: Collection[str] = (),
        bare: str | None = None,
        repeatable: bool = False,
        variable: str | None = None,
    ) -> None:
        self.help, self.kind, self.default = help, kind, default
        self.metavar, self.choices, self.bare, self.repeatable = metavar, choices, bare, repeatable
        self._flag, self._variable = flag, variable
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def flags(self) -> list[str]:
        if self._flag is None:
            return [f"--{self.name.replace('_', '-')}"]
        return self._flag.split()

    @property
    def key(self) -> str:
        """The key in a run file."""
        return self.flags[0].removeprefix("--")

    @property
    def variable(self) -> str:
        return self._variable or PREFIX + self.key.replace("-", "_").upper()

    @property
    def is_read_elsewhere(self) -> bool:
        """Whether its environment variable has another name; the package reads that one itself, also in Python."""
        return self._variable is not None

    @property
    def text(self) -> str:
        """The help with the default filled in."""
        shown = f"{self.default:g}" if isinstance(self.default, float) else str(self.default)
        return self.help.replace("%(default)s", shown)

    def read_switch(self, text: str) -> bool | None:
        """Parse a text that turns a flag without a value on or off; None if it is a value."""
        return None if self.bare is None else _SWITCH_WORDS.get(text.lower())

    def parse(self, text: str) -> Any:
        """Parse one value.

        Raises:
            ValueError: The text is invalid; the error says what is allowed.
        """
        return self.kind.parse(text)

    def replace(self, **changes: Any) -> Any:
        """Return a copy with some attributes replaced."""
        made = object.__new__(Option)
        vars(made).update(vars(self), **changes)
        return made


def option(help: str = "", kind: Kind = TEXT, default: Any = None, **more: Any) -> Any:
    """Declare an option as an attribute of a class of `Options`; see `Option` for the arguments."""
    return Option(help, kind, default, **more)


class Options:
    """The values of the options that a class and its parents declare, as typed attributes."""

    def __init__(self, **values: Any) -> None:
        declared = self.declared()
        if unknown := values.keys() - declared.keys():
            raise TypeError(f"unknown option: {', '.join(sorted(unknown))}")
        for name, each in declared.items():
            given = values.get(name, each.default)
            setattr(self, name, list(given) if given is each.default and isinstance(given, list) else given)

    @classmethod
    def declared(cls) -> dict[str, Option]:
        """Return every option by its name, those of parents first."""
        return {
            name: each
            for owner in reversed(cls.__mro__)
            for name, each in vars(owner).items()
            if isinstance(each, Option)
        }

    def check(self) -> None:
        """Check every value; None is allowed if it is the default, and for switches.

        Raises:
            UsageError: A value is invalid; the message has option, rule and value.
        """
        for name, each in self.declared().items():
            value = getattr(self, name)
            if value is not None or not (each.default is None or each.kind is SWITCH):
                each.kind.check(name, value)


def redeclare(parent: type[Options], name: str, **changes: Any) -> Any:
    """Declare an option of a parent again, with another help or default."""
    return parent.declared()[name].replace(**changes)
