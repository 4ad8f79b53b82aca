"""Finds the sweeps of a run: systems that differ in one parameter are one system with a knob.

Sweeps are found by names alone: `bm25:ratio=0.1` and `bm25:ratio=0.3`, or `headroom[level=low]` and
`headroom[level=high]`. So runs read from files have curves too, and so have settings that were named one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_UNTOLD = ("seed", "n", "name")  # parameters that a short name leaves out
_SIZES = ("length", "budget", "tokens", "max_tokens", "size")
_NOT_KNOBS = ("seed", "name")  # parameters that do not trade quality for tokens
MAX_LISTED_SETTINGS = 5  # settings to list in the common name of a sweep


@dataclass(frozen=True)
class Sweep:
    name: str  # the system with its fixed parameters
    knob: str  # the varied parameter
    settings: dict[str, str]  # the knob's value, by the name of the system


@dataclass(frozen=True)
class ParsedName:
    name: str
    stem: str
    bracketed: bool
    parameters: dict[str, str]

    def name_without(self, parameter: str) -> str:
        return _name_rest(self, {key: value for key, value in self.parameters.items() if key != parameter})


def name_setting(name: str, parameters: dict[str, str]) -> str:
    """Name one setting of a started proxy: `headroom[level=low]`."""
    return f"{name}[{','.join(f'{key}={value}' for key, value in parameters.items())}]"


def find_sweeps(names: Iterable[str]) -> list[Sweep]:
    """Find systems that differ in one parameter; each belongs to the sweep with the most settings."""
    groups: dict[tuple[object, ...], tuple[str, str, dict[str, str]]] = {}
    order: dict[str, int] = {}
    for parsed in filter(None, map(parse_name, names)):
        order[parsed.name] = len(order)
        for knob, value in parsed.parameters.items():
            if knob in _NOT_KNOBS:
                continue
            others = {key: each for key, each in parsed.parameters.items() if key != knob}
            key = (parsed.stem, parsed.bracketed, knob, tuple(sorted(others.items())))
            groups.setdefault(key, (_name_rest(parsed, others), knob, {}))[2][parsed.name] = value
    taken: set[str] = set()
    found = []
    for name, knob, settings in sorted(groups.values(), key=lambda group: (-len(group[2]), not _is_numeric(group[2]))):
        if len(settings) > 1 and taken.isdisjoint(settings):
            taken |= settings.keys()
            found.append(Sweep(name, knob, settings))
    return sorted(found, key=lambda sweep: min(order[name] for name in sweep.settings))


def join_settings(names: Sequence[str]) -> list[str]:
    """Join the names of each sweep into one, as users type it: `bm25:ratio=0.1|0.3`."""
    joined = {name: sweep for sweep in find_sweeps(names) for name in sweep.settings}
    shown = [_name_sweep(joined[name]) if name in joined else name for name in names]
    return list(dict.fromkeys(shown))


def name_family(name: str) -> str:
    """Return the name without parameters, which systems of the same family share."""
    parsed = parse_name(name)
    return name if parsed is None else parsed.stem


def name_briefly(names: Iterable[str]) -> dict[str, str]:
    """Shorten references, such as `bm25 30%` or `needle 4k`; ambiguous short names stay whole."""
    short = {name: _shorten(name) for name in names}
    common = Counter(short.values())
    return {name: brief if common[brief] == 1 else name for name, brief in short.items()}


def write_briefly(text: str, names: Iterable[str]) -> str:
    """Shorten the references in a sentence, including joined names of sweeps."""
    brief = name_briefly(names)
    stems = {parsed.stem for parsed in map(parse_name, brief) if parsed is not None}
    own = {name for name in (*brief, *stems) if _OWN.match(name) and _shorten(name) not in brief}
    if not stems and not own:
        return text
    stem = "|".join(map(re.escape, sorted(stems, key=len, reverse=True))) or "(?!)"
    alone = "|".join(map(re.escape, sorted(own, key=len, reverse=True))) or "(?!)"
    settings = r"[:\[][\w.=|…,-]*[\w\]](?: \([\d,]+ settings\))?"
    reference = rf"(?<![\w:/])(?:(?:{stem}){settings}|(?:{alone})(?![\w:\[]))"
    return re.sub(reference, lambda found: brief.get(found[0]) or _shorten(found[0]), text)


_OWN = re.compile(r"[^:|]+\.py:(?=\w)")
"""The file before the user's own object: `my_file.py:` in `my_file.py:mine:ratio=0.3`."""


def _shorten(name: str) -> str:
    parsed = parse_name(name)
    if parsed is None:
        return _OWN.sub("", name, count=1)
    known = {key: value for key, value in parsed.parameters.items() if key not in _UNTOLD}
    stem = _OWN.sub("", parsed.stem, count=1).rpartition("/")[2]
    return " ".join([stem, *(_tell_parameter(*each) for each in known.items())])


def _tell_parameter(key: str, value: str) -> str:
    if "|" in value:
        settings, bracket, many = value.partition(" (")
        told = [_tell_parameter(key, each).removeprefix(f"{key} ") for each in settings.split("|")]
        return ("" if key == "ratio" or key in _SIZES else f"{key} ") + "|".join(told) + bracket + many
    try:
        number = float(value)
    except ValueError:
        return value
    if key == "ratio":
        return f"{100 * number:g}%"
    if key in _SIZES:
        return f"{number / 1000:g}k" if number >= 1000 else f"{number:g}"
    return f"{key} {value}"


def _name_sweep(sweep: Sweep) -> str:
    values = sorted(set(sweep.settings.values()), key=float) if _is_numeric(sweep.settings) else None
    values = values or list(dict.fromkeys(sweep.settings.values()))
    many = f" ({len(values):,} settings)" if len(values) > MAX_LISTED_SETTINGS else ""
    told = [values[0], "…", values[-1]] if many else values
    name, value = next(iter(sweep.settings.items()))
    one, all_of_them = f"{sweep.knob}={value}", f"{sweep.knob}={'|'.join(told)}"
    return re.sub(rf"(?<=[:,\[]){re.escape(one)}(?=[,\]]|$)", lambda _: all_of_them, name) + many


def parse_name(name: str) -> ParsedName | None:
    """Split a name into stem and parameters; None if it has no parameters."""
    bracketed = name.endswith("]")
    stem, mark, text = name[:-1].rpartition("[") if bracketed else name.rpartition(":")
    items = text.split(",")
    if not bracketed and "=" not in items[0]:  # an argument, as in mmlu:anatomy
        stem, items = f"{stem}:{items[0]}", items[1:]
    parameters = dict(item.split("=", 1) for item in items if "=" in item)
    known = len(parameters) == len(items) and all(key.isidentifier() for key in parameters)
    return ParsedName(name, stem, bracketed, parameters) if mark and stem and parameters and known else None


def _name_rest(parsed: ParsedName, others: dict[str, str]) -> str:
    if not others:
        return parsed.stem
    if parsed.bracketed:
        return name_setting(parsed.stem, others)
    return f"{parsed.stem}:{','.join(f'{key}={value}' for key, value in others.items())}"


def _is_numeric(settings: dict[str, str]) -> bool:
    try:
        return all(float(value) == float(value) for value in settings.values())
    except ValueError:
        return False
