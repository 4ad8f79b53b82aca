"""`--start "... --level {level}" --sweep level=low|mid|high`: one proxy, started once for each setting of its knobs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from context_bench.errors import UsageError
from context_bench.text.masking import mask_command

__all__ = ["Knobs", "expand_start", "parse_sweeps"]

Knobs = dict[str, list[str]]
"""The values of each knob, by the name of its placeholder."""

_FILLED_IN = ("port", "host", "tap")
"""Placeholders of a --start that are not the user's to choose."""


def parse_sweeps(texts: Sequence[str], starts: Sequence[str]) -> Knobs:
    """Parse each `--sweep`, and refuse one that no --start has a place for."""
    knobs: Knobs = {}
    for text in texts:
        key, equals, values = text.partition("=")
        settings = [value for value in values.split("|") if value]
        if not equals or not key.isidentifier() or not settings:
            raise UsageError(f"--sweep must be KEY=VALUE|VALUE, such as level=low|high (got {text!r})")
        if key in _FILLED_IN:
            raise UsageError(f"--sweep {text!r}: {{{key}}} is filled in by the run: choose another name")
        if key in knobs:
            raise UsageError(f"--sweep gives {key!r} twice: put all values into one, as in {key}=a|b")
        if not any(f"{{{key}}}" in start for start in starts):
            raise UsageError(f"--sweep {text!r}: no --start has {{{key}}} in it: put it where the value belongs")
        if len(set(settings)) < len(settings):
            raise UsageError(f"--sweep {text!r} gives a value twice")
        knobs[key] = settings
    return knobs


def expand_start(start: str | None, url: str | None, knobs: Knobs) -> list[tuple[str, dict[str, str]]]:
    """Fill in the knobs that a command has a place for: a command for each setting, none without a knob."""
    used = {key: values for key, values in knobs.items() if start is not None and f"{{{key}}}" in start}
    if start is None or not used:
        return []
    if url is not None:
        raise UsageError(
            f"--start {mask_command(start)!r} is started once for each setting, and {url} is one address: leave out "
            "its --proxy, and put {port} into the command"
        )
    expanded = []
    for values in product(*used.values()):
        setting, command = dict(zip(used, values)), start
        for key, value in setting.items():
            command = command.replace(f"{{{key}}}", value)
        expanded.append((command, setting))
    return expanded
