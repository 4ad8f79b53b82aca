"""The plan of a run: `plan_run` checks the arguments of `evaluate()` and builds all parts."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from context_bench._version import __version__
from context_bench.compare.verdicts import check_margin, choose_baseline
from context_bench.config import DEFAULT_MARGIN, EvaluateOptions, RecordedOptions
from context_bench.core.examples import Item, check_threshold, read_items
from context_bench.core.judge import Scorer
from context_bench.core.run import Plan
from context_bench.core.schedule import count_workers
from context_bench.datasets.joined import count_fields, name_sample
from context_bench.datasets.open import gather_datasets
from context_bench.errors import UsageError
from context_bench.metrics import adapt_metrics, choose_metrics
from context_bench.monitors.limits import Limits
from context_bench.monitors.looks import LookOrder, order_for_looks
from context_bench.monitors.progress import Progress, StatusLine, choose_stream
from context_bench.numbers import COST_OF_PASS, UPSTREAM_COST_OF_PASS
from context_bench.pricing import check_prices, describe_prices
from context_bench.ray.ray_engine import find_engine
from context_bench.stats import least_n
from context_bench.store.fingerprints import fingerprint_of
from context_bench.summary import describe_metric
from context_bench.systems.adapt import adapt, add_twin, build_systems
from context_bench.systems.reference import reads_no_context
from context_bench.tallies import check_metric_members
from context_bench.text import count_things
from context_bench.traits import (
    can_start,
    dataset_traits,
    find_score_field,
    find_threshold,
    never_wins,
    sends_elsewhere,
    system_traits,
)
from context_bench.types import Example, Metric, System
from context_bench.utils.tokens import Tokenizer, current_tokenizer, get_tokenizer


def plan_run(settings: EvaluateOptions) -> tuple[Plan, dict[str, Any], Iterator[Item]]:
    """Check the settings; return the plan, its description for the record, and the examples.

    Raises:
        UsageError: A setting is wrong.
        DataError: A dataset that checks itself found an unusable example.
    """
    engine = find_engine(settings.engine)
    engine.check(settings.systems, debug=settings.debug)
    systems = _build_systems(settings.systems)
    examples, datasets = gather_datasets(settings.dataset, settings.max_examples)
    scorer = settings.evaluators
    if not isinstance(scorer, Scorer):
        scorer = Scorer(scorer, score_field=settings.score_field or "score", keep_reasoning=settings.keep_reasoning)
    choose_baseline([each.name for each in systems], settings.baseline)
    if settings.threshold is not None:
        check_threshold(settings.threshold, scorer, settings.score_field or "score")
    metrics = settings.metrics
    if metrics is None:
        metrics = _default_metrics(systems, scorer, datasets, settings.threshold, settings.repeats)
    metrics = _check_metrics(metrics, keep_rows=settings.keep_rows)
    plan = _make_plan(settings, systems, scorer, metrics, examples)
    if settings.progress:
        _warn_too_few(plan)
    plan.engine = engine
    scorer.settle(count_fields(examples))
    source = read_items(examples, settings.max_examples, scorer)
    if settings.stop_when_decided:
        plan.order = _draw_order(plan, source, settings.seed)
        source = iter(plan.order.items)
    return plan, _describe_run(settings, plan), source


def _warn_too_few(plan: Plan) -> None:
    """Warn before anything is sent if the run is too small to show equivalence with the baseline."""
    count, margin = plan.expected, plan.margin
    baseline, competing = plan.list_competing()
    if not count or margin is None or baseline is None or not competing:
        return
    examples, least = count // plan.repeats, least_n(margin)
    if examples < least:
        choose_stream().write(
            f"context-bench: {count_things(examples, 'example')} cannot show equivalence within ±{margin:g}: at "
            f"least {least:,} are needed\n"
        )


def _draw_order(plan: Plan, source: Iterator[Item], seed: int) -> LookOrder:
    """Put all examples in the order of the looks, if systems can be compared."""
    baseline, competing = plan.list_competing()
    if baseline is None or not competing:
        raise UsageError(
            "--stop-when-decided (stop_when_decided) must have a baseline and a system that is compared with it, "
            "other than controls: add a --system"
        )
    return order_for_looks(source, seed)


def _tell_doing(systems: Iterable[System]) -> str:
    """Return the progress texts of systems that take long for a row; equal texts appear once."""
    told = (system_traits(each).status_text for each in systems)
    return ", ".join(dict.fromkeys(doing for tell in told if tell is not None and (doing := tell())))


def _make_plan(
    settings: EvaluateOptions, systems: list[System], scorer: Scorer, metrics: Sequence[Metric], examples: Any
) -> Plan:
    """Build the plan, with a second run of the baseline if requested."""
    systems, twin = add_twin(systems, settings.baseline) if settings.aa else (systems, None)
    limits: Limits = settings.limits or Limits()
    prices = check_prices([*systems, *scorer.chosen], settings.prices, needed=limits.max_cost is not None)
    expected = count_examples(examples, settings.max_examples, settings.progress)
    rows = None if expected is None else expected * settings.repeats
    return Plan(
        systems=systems,
        scorer=scorer,
        metrics=metrics,
        score_field=settings.score_field or next(filter(None, map(find_score_field, metrics)), "score"),
        count=get_tokenizer(settings.tokenizer),
        text_fields=settings.text_fields,
        repeats=settings.repeats,
        max_workers=settings.max_workers,
        keep_rows=settings.keep_rows,
        limits=limits,
        prices=prices,
        progress=Progress(
            None if rows is None else rows * len(systems), settings.progress, doing=lambda: _tell_doing(systems)
        ),
        expected=rows,
        preflight=settings.preflight,
        debug=settings.debug,
        name_samples=lambda counts: _name_samples(examples, settings.max_examples, counts),
        baseline=settings.baseline,
        margin=check_margin(DEFAULT_MARGIN if settings.margin is None else settings.margin),
        fixed_groups=settings.fixed_groups,
        controls=[each.name for each in systems if never_wins(each)],
        twin=None if twin is None else twin.name,
    )


def _describe_run(settings: EvaluateOptions, plan: Plan) -> dict[str, Any]:
    """Describe a run for its record: facts, options, and the caller's additions."""
    given = {name: getattr(settings, name) for name in RecordedOptions.declared()}
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "systems": {system.name: fingerprint_of(system) for system in plan.systems},
        "sends_elsewhere": [each.name for each in plan.systems if sends_elsewhere(each)],
        "metrics": [describe_metric(metric) for metric in plan.metrics],
        "score_field": plan.score_field,
        "engine": plan.engine.name,
        "max_workers": plan.max_workers,
        "workers": {system.name: count_workers(system, plan.max_workers) for system in plan.systems},
        "repeats": plan.repeats,
        "baseline": plan.list_competing()[0],
        "twin": plan.twin,
        "margin": plan.margin,
        "fixed_groups": plan.fixed_groups,
        "controls": list(plan.controls),
        "floors": [each.name for each in plan.systems if reads_no_context(each)],
        "text_fields": list(plan.text_fields) if plan.text_fields is not None else None,
        **({"prices": describe_prices(plan.prices, (*plan.systems, *plan.scorer.chosen))} if plan.prices else {}),
        "max_examples": settings.max_examples,
        "tokenizer": _name_tokenizer(settings.tokenizer),
        "cache_tag": settings.cache_tag,
        "threshold": next((found for each in plan.metrics if (found := find_threshold(each)) is not None), None),
        "threshold_given": settings.threshold is not None,
        "keep_reasoning": plan.scorer.keep_reasoning,
    }
    return {**facts, **{name: given[name] for name in given if name not in facts}, **(settings.config or {})}


def _name_samples(examples: Any, max_examples: int | None, counts: Mapping[str, int]) -> dict[str, str]:
    """Return how the examples of each dataset were chosen: `all`, `first`, `random` or `stratified`."""
    cut = name_sample("first", sum(counts.values()), max_examples)
    name = dataset_traits(examples).name_samples
    told = {} if name is None else name(counts)
    return {tag: cut if (how := told.get(tag, "all")) == "all" else how for tag in counts}


def _build_systems(given: Any) -> list[System]:
    """Make systems from the caller's arguments, with unique names."""
    listed = given if isinstance(given, list | tuple) else [given]
    members = [
        system for each in listed for system in (build_systems(each) if isinstance(each, str) else [adapt(each)])
    ]
    if not members:
        raise UsageError("no system to measure: pass at least one")
    seen: set[str] = set()
    for system in members:
        if system.name in seen:
            raise UsageError(f"two systems are called {system.name!r}: give each a unique name")
        seen.add(system.name)
    return members


def _default_metrics(
    systems: Sequence[System], scorer: Scorer, datasets: int, threshold: float | None, repeats: int
) -> Sequence[Metric]:
    """Choose the metrics of a run if the caller chose none."""
    traits = [system_traits(each) for each in systems]
    known = [each.sees_upstream for each in traits]
    return choose_metrics(
        scorer.score_field,
        threshold,
        datasets=datasets,
        systems=len(systems),
        tapped=any(known),
        controls=[system.name for system, own in zip(systems, traits) if not own.competes],
        cost_field=UPSTREAM_COST_OF_PASS if all(known) else COST_OF_PASS,
        judged=scorer.has_judge,
        repeats=repeats,
    )


def _check_metrics(given: Any, *, keep_rows: bool) -> list[Metric]:
    """Build named metrics; refuse objects that are not metrics or cannot work in this run."""
    metrics = adapt_metrics(given)
    for metric in metrics:
        check_metric_members(metric)
        if not keep_rows and not can_start(metric):
            raise UsageError(f"metric {metric.name!r} needs all rows at once: use keep_rows=True, or add start() to it")
    return metrics


def _name_tokenizer(tokenizer: str | Tokenizer | None) -> str | None:
    """Name what token counts depend on: an encoding, or the source of a callable; None if unknown."""
    if tokenizer is None:
        tokenizer = current_tokenizer()
    return tokenizer if isinstance(tokenizer, str) else fingerprint_of(tokenizer)


# -- examples, counted in advance if possible


def count_examples(dataset: Iterable[Example], max_examples: int | None, progress: bool) -> int | None:
    """Count the examples in advance, if possible; a dataset that can check itself does so first."""
    traits = dataset_traits(dataset)
    if traits.check is not None:
        with StatusLine(lambda _: f"checking the data: {traits.count_checked():,} examples so far", enabled=progress):
            traits.check()
    try:
        total = len(dataset)  # type: ignore[arg-type]
    except TypeError:
        return max_examples
    return total if max_examples is None else min(total, max_examples)
