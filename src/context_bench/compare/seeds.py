"""Merges systems that differ only in their seed: one system, with the seeds as repeated answers to each example."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.compare.sweeps import parse_name
from context_bench.results import EvalResult, EvalRow
from context_bench.summary import describe_metric, rebuild_metrics, summarize

_KEPT_FIELDS = ("command", "origins", "run_file", "metrics", "sources", "prices")  # a record of the input: not renamed


def find_seeds(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Find systems that differ only in `seed=`; return the seed of each, by common name."""
    listed = list(names)
    groups: dict[str, dict[str, str]] = {}
    for parsed in filter(None, map(parse_name, listed)):
        if "seed" in parsed.parameters:
            groups.setdefault(parsed.name_without("seed"), {})[parsed.name] = parsed.parameters["seed"]
    return {name: seeds for name, seeds in groups.items() if len(seeds) > 1 and name not in listed}


def merge_seeds(result: EvalResult) -> EvalResult:
    """Merge the seeds of each system; return the result unchanged if it has no rows or no such systems."""
    found = find_seeds(result.summary)
    if not found or not result.rows:
        return result
    settings = result.settings
    merged = {system: name for name, seeds in found.items() for system in seeds}
    listed = {name: list(seeds.values()) for name, seeds in found.items()}
    rows = [merge_row(row, listed, settings.repeats) for row in result.rows]
    metrics = list(rebuild_metrics(settings.metrics) if result.metrics is None else result.metrics)
    metrics += rebuild_metrics([{"name": "seed-spread", "params": {"score_field": settings.score_field}}])
    config = {key: value if key in _KEPT_FIELDS else _rename(value, merged) for key, value in result.config.items()}
    config.pop("looks", None)  # there were looks for each seed
    config |= {
        "repeats": settings.repeats * max(map(len, found.values())),
        "seeds": listed,
        "metrics": [describe_metric(metric) for metric in metrics],
    }
    timing: dict[str, float] = {}
    for name, seconds in result.timing.items():
        timing[merged.get(name, name)] = timing.get(merged.get(name, name), 0.0) + seconds
    names = list(dict.fromkeys(merged.get(name, name) for name in result.summary))
    return EvalResult.from_summary(rows, summarize(rows, names, metrics, config), config, metrics, timing)


def merge_row(row: EvalRow, seeds: Mapping[str, Sequence[str]], repeats: int) -> EvalRow:
    """Return a seed's row as a repeat of the merged system; return other rows unchanged."""
    parsed = parse_name(row.system)
    if parsed is None or "seed" not in parsed.parameters or (name := parsed.name_without("seed")) not in seeds:
        return row
    changed, seed = copy.copy(row), parsed.parameters["seed"]
    changed.meta, changed.system = row.meta, name
    changed.repeat = seeds[name].index(seed) * repeats + row.repeat
    # answers to the same example are not independent: as for repeats, each example is a cluster
    changed.metadata = {"cluster": ["example", row.example_id], **row.metadata, "seed": seed}
    return changed


def _rename(value: Any, merged: Mapping[str, str]) -> Any:
    """Rename systems in a recorded value: a name, a list of names, or a mapping, of which the first value is kept."""
    if isinstance(value, str):
        return merged.get(value, value)
    if isinstance(value, list | tuple):
        texts = all(isinstance(each, str) for each in value)
        return list(dict.fromkeys(merged.get(each, each) for each in value)) if texts else value
    if isinstance(value, Mapping) and not merged.keys().isdisjoint(value):
        renamed: dict[str, Any] = {}
        for key, each in value.items():
            renamed.setdefault(merged.get(key, key), each)
        return renamed
    return value
