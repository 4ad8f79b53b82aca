"""Plans: how many examples a question needs, and a comparison that is fixed before its run.

The number of examples, their cost and their time are computed from a pilot or from an assumed spread. A plan is locked
in a small JSON file, to be committed with the run file. A run that gets this file reports deviations from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from context_bench.compare.pairing import compare_answers, gather_answers, read_dollars
from context_bench.compare.verdicts import are_unlike
from context_bench.errors import UsageError
from context_bench.numbers import choose_score_key
from context_bench.settings import RunSettings, read_settings
from context_bench.stats import (
    Difference,
    find_detectable,
    n_for_difference,
    n_for_equivalence,
    n_for_non_inferiority,
    pass_fail_spread,
)
from context_bench.text import read_small_file

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

DEFAULT_WORKERS = 8  # assumed for a system over the network if the pilot did not record it


@dataclass(frozen=True)
class Target:
    """The aim of a run: the difference that it should be able to show."""

    difference: float  # the true difference of scores to find
    margin: float  # the largest difference that does not matter
    power: float = 0.8  # the share of runs that should succeed
    alpha: float = 0.05  # the level of the tests
    n: int | None = None  # examples for which to compute the smallest detectable difference; None takes the pilot's


class _ExampleCosts(TypedDict):
    dollars: float | None
    tokens: float | None
    seconds: float | None


_UNKNOWN = _ExampleCosts(dollars=None, tokens=None, seconds=None)


@dataclass(frozen=True)
class Needs:
    """The number of examples needed to compare one system with the baseline."""

    system: str
    spread: float  # standard deviation of the difference on one example
    to_find: int | None  # examples that find the target's difference
    to_equate: int | None  # examples that show equivalence, if there truly is no difference
    to_clear: int | None  # examples that show "not worse", if there truly is no difference
    n: int | None = None  # the number of examples that `detectable` is for
    detectable: float | None = None  # the smallest difference that n examples find
    dollars: float | None = None  # per example; None if unknown
    tokens: float | None = None  # that the model reads per example; None if unknown
    seconds: float | None = None  # per example, with the pilot's workers; None if unknown
    comparisons: int = 1  # competing systems, for which differences are corrected

    def to_dict(self) -> dict[str, Any]:
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


def assume_needs(
    target: Target, *, spread: float | None = None, discordant: float | None = None, comparisons: int = 1
) -> Needs:
    """Compute the needs from an assumed spread, or from the share of examples that only one side passes."""
    if (spread is None) == (discordant is None):
        raise UsageError("pass either a spread or a share of discordant examples")
    if discordant is not None and discordant > 1:
        raise UsageError(f"the share of discordant examples must be at most 1 (got {discordant:g})")
    if discordant is not None and abs(target.difference) > discordant:
        raise UsageError(
            f"a difference of {target.difference:g} is impossible if only {discordant:g} of the examples are discordant"
        )
    same = spread if spread is not None else pass_fail_spread(discordant or 0.0)
    apart = spread if spread is not None else pass_fail_spread(discordant or 0.0, target.difference)
    needs = _count("any", same, target, comparisons, apart=apart)
    possible = discordant is None or needs.detectable is None or needs.detectable <= discordant
    return needs if possible else replace(needs, detectable=None)  # no difference exceeds that share


def find_needs(result: EvalResult, baseline: str, target: Target) -> list[Needs]:
    """Compute the needs of each system of a pilot; the baseline has only its costs.

    The second run of the baseline is left out, and so are systems that return contexts if the baseline answers.
    """
    field = result.settings.score_field
    judged = [name for name in result.systems if not are_unlike(result.config, name, baseline)]
    rows: dict[str, list[EvalRow]] = {name: [] for name in judged if name != result.settings.twin}
    for row in result.rows:
        if row.system in rows:
            rows[row.system].append(row)
    controls = set(result.settings.controls)
    others = [name for name in rows if name != baseline]
    comparisons = max(1, sum(name not in controls for name in others))
    scores = {name: gather_answers(own, field) for name, own in rows.items()}
    found = []
    for name, own in rows.items():
        costs = _measure(own, result.config)
        if name == baseline:
            found.append(Needs(name, math.nan, None, None, None, **costs))
            continue
        difference = compare_answers(scores[name], scores[baseline])
        if not difference.known:
            raise UsageError(f"too few examples of the pilot have a score for both {name} and {baseline}")
        found.append(_count(name, difference.spread, target, comparisons, seen=difference, costs=costs))
    return found


def _count(
    system: str,
    spread: float,
    target: Target,
    comparisons: int,
    *,
    apart: float | None = None,
    seen: Difference | None = None,
    costs: _ExampleCosts | None = None,
) -> Needs:
    """Compute the numbers of examples; as in a verdict, only differences are corrected for multiple comparisons.

    Clusters are counted instead of examples if there are any, and converted by the examples per cluster.
    """
    alpha, strict = target.alpha, target.alpha / comparisons
    share, scores = 1.0, spread <= 1
    if seen is not None:
        share, scores = (seen.independent or seen.n) / seen.n, seen.independent is not None
    root = math.sqrt(share)
    own, far = spread * root, (spread if apart is None else apart) * root
    n = target.n or (None if seen is None else seen.n)
    detectable = (
        math.inf if n is None else find_detectable(own, n * share, alpha=strict, power=target.power, scores=scores)
    )
    counts = (
        n_for_difference(far, target.difference, alpha=strict, power=target.power, scores=scores),
        n_for_equivalence(own, target.margin, alpha=alpha, power=target.power, scores=scores),
        n_for_non_inferiority(own, target.margin, alpha=alpha, power=target.power, scores=scores),
    )
    to_find, to_equate, to_clear = (None if each is None else math.ceil(each / share) for each in counts)
    return Needs(
        *(system, spread, to_find, to_equate, to_clear, n),
        detectable if math.isfinite(detectable) else None,
        **(costs or _UNKNOWN),
        comparisons=comparisons,
    )


def _measure(rows: Sequence[EvalRow], config: dict[str, Any]) -> _ExampleCosts:
    settings = read_settings(config)
    done = [row for row in rows if row.error is None]
    if not done:
        return _UNKNOWN
    dollars = [cost for cost in map(read_dollars, done) if cost is not None]
    # tokens that the model read: seen upstream, else of the returned context, else of the original prompt
    returned = [row.output_tokens if row.metadata.get("output") == "context" else row.input_tokens for row in done]
    read = [own if row.upstream_tokens is None else row.upstream_tokens for row, own in zip(done, returned)]
    elsewhere = done[0].system in settings.sends_elsewhere
    workers = settings.max_workers or (DEFAULT_WORKERS if elsewhere else 1)
    return {
        "dollars": sum(dollars) / len(dollars) if dollars else None,
        "tokens": sum(read) / len(done),
        "seconds": sum(row.latency for row in done) / len(done) / workers,
    }


# --- a plan that is fixed before its run

_FORM = 1
_NAMES = ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value))
_FORMS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "metric": ("a text", lambda value: isinstance(value, str)),
    "margin": ("a number between 0 and 1", lambda value: isinstance(value, int | float) and 0 < value < 1),
    "n": ("an integer of at least 1", lambda value: type(value) is int and value > 0),
    "systems": _NAMES,
    "datasets": _NAMES,
}
"""Required types of a plan's values; all others are texts."""


@dataclass(frozen=True)
class Lock:
    metric: str  # the key of the score, which depends on whether there are several datasets
    score_field: str
    margin: float
    baseline: str
    n: int  # examples in all
    systems: tuple[str, ...]
    datasets: tuple[str, ...]
    locked: str = ""  # a date

    def __post_init__(self) -> None:
        if self.baseline not in self.systems:
            raise UsageError(f"the baseline {self.baseline!r} must be one of the systems ({', '.join(self.systems)})")
        if len(self.systems) < 2:
            raise UsageError("a plan must have at least two systems: one is the baseline")
        if not self.datasets:
            raise UsageError("a plan must have at least one dataset")

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "systems": list(self.systems), "datasets": list(self.datasets)}


def write_lock(lock: Lock, path: Path) -> None:
    """Write a plan to a new file; a locked plan is never overwritten."""
    text = json.dumps({"context_bench_plan": _FORM, **lock.to_dict()}, indent=1, ensure_ascii=False) + "\n"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} already exists, and plans are never overwritten: choose another file name") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_lock(path: Path) -> Lock:
    try:
        values = json.loads(read_small_file(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a plan: invalid JSON: {error}") from None
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
    settings = read_settings(config)
    datasets = settings.datasets
    metric = choose_score_key(len(datasets))
    # a run with --stop-when-decided records how many examples it planned
    examples = int(settings.looks.get("planned") or sum(datasets.values()))
    found = [
        _compare("metric", metric, lock.metric),
        _compare("score", settings.score_field, lock.score_field),
        _compare("margin", settings.margin, lock.margin),
        _compare("baseline", settings.baseline, lock.baseline),
        _compare("number of examples", examples, lock.n),
        *_compare_names("system", _list_systems(settings), lock.systems),
        *_compare_names("dataset", list(datasets), lock.datasets),
        f"the run stopped early ({settings.stopped})" if settings.stopped else "",
        *(f"{name} was stopped" for name in settings.stopped_systems),
    ]
    return [clause for clause in found if clause]


def _list_systems(settings: RunSettings) -> list[str]:
    """List the systems of a run without the second run of the baseline."""
    return [name for name in settings.systems if name != settings.twin]


def _compare(what: str, there: Any, planned: Any) -> str:
    return "" if there == planned else f"the {what} is {there}, planned {planned}"


def _compare_names(what: str, there: Sequence[str], planned: Sequence[str]) -> list[str]:
    lost = [f"the {what} {name} is missing" for name in planned if name not in there]
    return lost + [f"the {what} {name} is not in the plan" for name in there if name not in planned]


def count_earlier(lock: Lock, configs: Iterable[Mapping[str, Any]]) -> int:
    """Count the earlier runs with the same systems and datasets."""
    systems, datasets = set(lock.systems), set(lock.datasets)
    recorded = map(read_settings, configs)
    return sum(set(_list_systems(each)) == systems and set(each.datasets) == datasets for each in recorded)


def describe_lock(config: Mapping[str, Any]) -> str:
    """Say whether a run kept to its plan, and how many runs of the same comparison came before; "" without a plan."""
    planned = read_settings(config).plan
    if not isinstance(planned, Mapping):
        return ""
    lock = _make_lock(planned["lock"], "the plan of this run")
    deviations = find_deviations(lock, config)
    where = f"{planned.get('file', 'the plan')}, locked {lock.locked}"
    said = f"not as planned ({where}): {'; '.join(deviations)}." if deviations else f"as planned ({where})."
    earlier = planned.get("earlier_runs")
    if earlier is None:
        return f"{said} No store was kept, so earlier runs of the same comparison are unknown."
    runs = {0: "no earlier run", 1: "1 earlier run"}.get(earlier, f"{earlier} earlier runs")
    return f"{said} The store has {runs} of the same comparison."
