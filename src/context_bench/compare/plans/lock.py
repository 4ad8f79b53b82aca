"""A plan that was fixed before the run: metric, margin, number of examples, systems, datasets.

A run that is given the file says whether it kept to it. The file is small JSON, to be committed beside the run file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from context_bench.config import RunSettings, read_settings
from context_bench.errors import UsageError
from context_bench.numbers import choose_score_key
from context_bench.text import read_small_file

__all__ = ["Lock", "count_earlier", "describe_lock", "find_deviations", "read_lock", "write_lock"]

_FORM = 1
_NAMES = ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
_FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "metric": ("a text", lambda value: isinstance(value, str)),
    "margin": ("a number between 0 and 1", lambda value: isinstance(value, int | float) and 0 < value < 1),
    "n": ("an integer of at least 1", lambda value: type(value) is int and value > 0),
    "systems": _NAMES,
    "datasets": _NAMES,
}
"""The kinds that the values of a plan must have; those that are not named are texts."""


@dataclass(frozen=True)
class Lock:
    """A comparison that was fixed before its run.

    Attributes:
        metric: `mean_score`, or `macro_score` with several datasets.
        score_field: The score that counts.
        margin: A difference within it does not matter.
        baseline: What the others are held against.
        n: Examples in all.
        systems: Names, in order.
        datasets: Tags, in order.
        locked: The date.
    """

    metric: str
    score_field: str
    margin: float
    baseline: str
    n: int
    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    locked: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot be a plan."""
        if self.baseline not in self.systems:
            raise UsageError(f"the baseline {self.baseline!r} must be one of the systems ({', '.join(self.systems)})")
        if len(self.systems) < 2:
            raise UsageError("a plan must have at least two systems: one is the baseline")
        if not self.datasets:
            raise UsageError("a plan must have at least one dataset")

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        return {**asdict(self), "systems": list(self.systems), "datasets": list(self.datasets)}


def write_lock(lock: Lock, path: Path) -> None:
    """Write a plan to a file that is not there yet: what was fixed is not overwritten."""
    text = json.dumps({"context_bench_plan": _FORM, **lock.to_dict()}, indent=1, ensure_ascii=False) + "\n"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} is there already: a plan is not overwritten; name another file") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_lock(path: Path) -> Lock:
    """Read a plan."""
    try:
        values = json.loads(read_small_file(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a plan: broken JSON: {error}") from None
    if not isinstance(values, dict) or values.pop("context_bench_plan", None) != _FORM:
        raise UsageError(f"{path} is not a plan: context-bench plan --lock FILE writes one")
    return _make_lock(values, f"{path}")


def _make_lock(values: Mapping[str, Any], where: str) -> Lock:
    known = {each.name for each in fields(Lock)}
    for key, value in values.items():
        if key not in known:
            raise UsageError(f"{where}: {key!r} is not part of a plan")
        what, fits = _FORMS.get(key, _FORMS["metric"])
        if not fits(value):
            raise UsageError(f"{where}: {key} must be {what} (got {value!r})")
    missing = known - values.keys() - {"locked"}
    if missing:
        raise UsageError(f"{where}: {sorted(missing)[0]!r} is missing")
    lists = {key: tuple(values[key]) for key in ("systems", "datasets")}
    return Lock(**{**values, **lists})


def find_deviations(lock: Lock, config: Mapping[str, Any]) -> list[str]:
    """Find in what a run differs from its plan, a clause for each."""
    settings = read_settings(config)
    datasets = settings.datasets
    metric = choose_score_key(len(datasets))
    found = [
        _compare("metric", metric, lock.metric),
        _compare("score", settings.score_field, lock.score_field),
        _compare("margin", settings.margin, lock.margin),
        _compare("baseline", settings.baseline, lock.baseline),
        _compare("number of examples", _count_examples(settings), lock.n),
        *_compare_names("system", _list_systems(settings), lock.systems),
        *_compare_names("dataset", list(datasets), lock.datasets),
        f"the run stopped early ({settings.stopped})" if settings.stopped else "",
        *(f"{name} was stopped" for name in settings.stopped_systems),
    ]
    return [clause for clause in found if clause]


def _count_examples(settings: RunSettings) -> int:
    """Count the examples of a run; where systems stopped when they were decided, those that were there for that."""
    return int(settings.looks.get("planned") or sum(settings.datasets.values()))


def _list_systems(settings: RunSettings) -> list[str]:
    """List the systems of a run without the second run of the baseline, which is not judged."""
    return [name for name in settings.systems if name != settings.twin]


def _compare(what: str, there: Any, planned: Any) -> str:
    return "" if there == planned else f"the {what} is {there}, planned {planned}"


def _compare_names(what: str, there: Sequence[str], planned: Sequence[str]) -> list[str]:
    lost = [f"the {what} {name} is missing" for name in planned if name not in there]
    return lost + [f"the {what} {name} is not in the plan" for name in there if name not in planned]


def count_earlier(lock: Lock, configs: Iterable[Mapping[str, Any]]) -> int:
    """Count the runs of the same comparison among those that a store holds: same systems, same datasets."""
    systems, datasets = set(lock.systems), set(lock.datasets)
    recorded = map(read_settings, configs)
    return sum(set(_list_systems(each)) == systems and set(each.datasets) == datasets for each in recorded)


def describe_lock(config: Mapping[str, Any]) -> str:
    """Say whether a run kept to its plan, and how often the same was tried before; nothing without a plan."""
    planned = read_settings(config).plan
    if not isinstance(planned, Mapping):
        return ""
    lock = _make_lock(planned["lock"], "the plan of this run")
    deviations = find_deviations(lock, config)
    where = f"{planned.get('file', 'the plan')}, locked {lock.locked}"
    said = f"not as planned ({where}): {'; '.join(deviations)}." if deviations else f"as planned ({where})."
    earlier = planned.get("earlier_runs")
    if earlier is None:
        return f"{said} No store was kept, so earlier runs of the same comparison are not known."
    runs = {0: "no earlier run", 1: "1 earlier run"}.get(earlier, f"{earlier} earlier runs")
    return f"{said} The store holds {runs} of the same comparison."
