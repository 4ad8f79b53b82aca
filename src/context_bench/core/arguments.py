"""The types of what `evaluate()` is given: a wrong one is refused in one sentence, before anything is opened or sent.

Systems, datasets, evaluators, metrics and tokenizers are checked where they are built.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from context_bench.errors import UsageError
from context_bench.monitors.limits import Limits
from context_bench.pricing import Prices
from context_bench.store import Store

__all__ = ["check_run_arguments"]


def _is_integer(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_switch(value: Any) -> bool:
    return isinstance(value, int) and value in (0, 1)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(each, str) for each in value)


Rule = tuple[str, Callable[[Any], bool]]

_AT_LEAST_0: Rule = "an integer of at least 0", _is_integer(0)
_AT_LEAST_1: Rule = "an integer of at least 1", _is_integer(1)
_TEXT: Rule = "a text", _is_text
_NUMBER: Rule = "a number", _is_number
_SWITCH: Rule = "True or False", _is_switch

_RULES: dict[str, Rule] = {
    "max_examples": _AT_LEAST_0,
    "progress": _SWITCH,
    "text_fields": ("a list of field names", _are_names),
    "max_workers": _AT_LEAST_1,
    "cache_dir": ("the path of a folder", lambda value: isinstance(value, str | os.PathLike)),
    "repeats": _AT_LEAST_1,
    "keep_rows": _SWITCH,
    "store": ("an open Store (for a folder, use cache_dir)", lambda value: isinstance(value, Store)),
    "reuse": _SWITCH,
    "cache_tag": _TEXT,
    "limits": ("Limits, such as Limits(max_errors='5')", lambda value: isinstance(value, Limits)),
    "prices": ("Prices, such as Prices.from_file('prices.json')", lambda value: isinstance(value, Prices)),
    "config": ("a dict", lambda value: isinstance(value, Mapping)),
    "score_field": _TEXT,
    "threshold": _NUMBER,
    "keep_reasoning": _SWITCH,
    "preflight": _SWITCH,
    "debug": _SWITCH,
    "baseline": ("the name of a system", _is_text),
    "margin": _NUMBER,
    "aa": _SWITCH,
    "stop_when_decided": _SWITCH,
    "fixed_groups": _SWITCH,
    "seed": ("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
}
_NEVER_NONE = ("repeats",)
"""Parameters that are not switches, and for which None does not stand for the default."""


def check_run_arguments(given: Mapping[str, Any]) -> None:
    """Check the types of the arguments of `evaluate()`, by name.

    Raises:
        UsageError: With the argument, what it must be, and what was given.
    """
    for name, (what, holds) in _RULES.items():
        value = given[name]
        if value is None and name not in _NEVER_NONE:
            continue
        if not holds(value):
            raise UsageError(f"{name} must be {what} (got {_show(value)})")


def _show(value: Any) -> str:
    """Show a value, or its type where its own text is long or fails."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of an object that we know nothing of
        text = ""
    return text if 0 < len(text) <= 80 else f"a {type(value).__name__}"
