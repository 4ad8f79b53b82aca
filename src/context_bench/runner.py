"""`evaluate()`: datasets through systems, evaluators and metrics to a result. It wires the stages, nothing else."""

from __future__ import annotations

import asyncio
import platform
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from context_bench._version import __version__
from context_bench.comparison import check_margin, choose_baseline
from context_bench.datasets.open import gather_datasets
from context_bench.datasets.sample import name_sample
from context_bench.distribution import find_namesake
from context_bench.engine.examples import count_examples, read_examples
from context_bench.engine.execute import Plan
from context_bench.engine.limits import Limits
from context_bench.engine.look_order import LookOrder, order_for_looks
from context_bench.engine.progress import Progress
from context_bench.engine.record import execute_plan, run_with_store
from context_bench.engine.scoring import Scorer, check_threshold
from context_bench.errors import UsageError
from context_bench.http.loop import new_event_loop
from context_bench.metrics import DEFAULT_THRESHOLD, BilledRatio, CardPassRate, DollarCost, default_metrics
from context_bench.metrics.load import adapt_metrics
from context_bench.pricing import Prices, check_prices, describe_prices
from context_bench.results import EvalResult
from context_bench.stats import DEFAULT_MARGIN
from context_bench.store import Store
from context_bench.store.fingerprints import fingerprint_of
from context_bench.summary import describe_metric
from context_bench.systems.adapt import adapt
from context_bench.systems.again import add_twin
from context_bench.systems.load import build_systems
from context_bench.tallies import check_metric_members
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

__all__ = ["aevaluate", "evaluate"]


def evaluate(
    systems: Any,
    dataset: Any,
    evaluators: Sequence[Any] | Scorer | None = None,
    metrics: Sequence[Any] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
    repeats: int = 1,
    keep_rows: bool = True,
    store: Store | None = None,
    reuse: bool = True,
    cache_tag: str | None = None,
    limits: Limits | None = None,
    prices: Prices | None = None,
    config: Mapping[str, Any] | None = None,
    score_field: str | None = None,
    threshold: float | None = None,
    preflight: bool = True,
    debug: bool = False,
    baseline: str | None = None,
    margin: float | None = None,
    aa: bool = False,
    stop_when_decided: bool = False,
    seed: int = 0,
) -> EvalResult:
    """Run every system on every example, score what comes back, and summarise.

    Works from a script and from inside a running event loop (a notebook); there, `await aevaluate(...)`
    leaves the loop free meanwhile.

    Args:
        systems: One system or several; a plain function `f(example)` is one too, and so is a reference such as
            `"bm25:ratio=0.3"`.
        dataset: Any iterable of examples, read lazily, once; a reference such as `"needle:n=20"` or a file; a list of
            datasets, or a mapping from tags to datasets.
        evaluators: Applied to all examples; None wires them by each example's dataset. A plain function
            `f(original, processed)` that returns a number or a dict of numbers is one too, and so is a reference.
        metrics: None computes mean score, pass rate, compression ratio, cost of pass and latency, and
            for several systems the Pareto rank. A name or a reference such as `"mean-score:score_field=f1"` is one too.
        max_examples: Stop after so many.
        progress: Show how far the run is on stderr: a line in place on a terminal or in a notebook, elsewhere a plain
            line every 30 seconds or 10%, after the first 10 seconds.
        text_fields: The fields that count as the prompt, on both sides.
        max_workers: Examples in flight at once for each system (1 by default).
        cache_dir: A folder in which answers and scores are cached; they are reused when nothing that they depend on
            changed.
        tokenizer: An encoding name or a callable; cl100k_base by default.
        repeats: How often each example is run.
        keep_rows: False keeps rows in the store only, so that memory stays flat.
        store: An open store, instead of `cache_dir`.
        reuse: False asks everything again, and keeps the new answers.
        cache_tag: A label for cached answers; change it when a server changed behind the same URL.
        limits: Stop at so many errors, tokens or dollars; the reason is then in `config["stopped"]`.
        prices: For the cost of requests; None takes the dated table that ships with the package.
        config: Recorded in the result's `config`.
        score_field: The score that counts, as `score` of each row and in the default metrics; None takes the one that
            the dataset reports, or that fits the fields of an example.
        threshold: A score from here on passes, in the default metrics; 0.7 by default.
        preflight: The first request of each endpoint goes alone, and stops that system where every other one would
            fail too; the reason is then in `config["stopped_systems"]`. False sends on.
        baseline: The system that the others are held against: `direct`, else `passthrough`, else the first by default.
        margin: A difference of scores within it does not matter; 0.02 by default.
        aa: Run the baseline twice, interleaved: what the two differ by is the noise that a difference must exceed.
        stop_when_decided: End each system as soon as its verdict is settled, by five looks at the examples in a random
            order: all of them are read before the run. `config["looks"]` says what was not run.
        seed: For that order.
        debug: Stop at the first exception of a system's own code, keep what is done, and open the debugger there.

    Raises:
        UsageError: Something cannot be right, before anything was sent.
        DataError: An example cannot be used. What was finished before it is in the error's `result`.
        StoreError: The store cannot be used, or not any more. What was finished is in `result`, if anything was.
        ScoreClash: Two evaluators emitted the same score. What was finished before is in `result`.
        Interrupted: Ctrl-C; what was finished is in `result`.
    """
    return _run_to_end(
        lambda: aevaluate(
            systems,
            dataset,
            evaluators=evaluators,
            metrics=metrics,
            max_examples=max_examples,
            progress=progress,
            text_fields=text_fields,
            max_workers=max_workers,
            cache_dir=cache_dir,
            tokenizer=tokenizer,
            repeats=repeats,
            keep_rows=keep_rows,
            store=store,
            reuse=reuse,
            cache_tag=cache_tag,
            limits=limits,
            prices=prices,
            config=config,
            score_field=score_field,
            threshold=threshold,
            preflight=preflight,
            debug=debug,
            baseline=baseline,
            margin=margin,
            aa=aa,
            stop_when_decided=stop_when_decided,
            seed=seed,
        )
    )


def _run_to_end(start: Callable[[], Coroutine[Any, Any, EvalResult]]) -> EvalResult:
    """Run on an event loop of our own; in a thread of its own when one is running here already."""

    def run() -> EvalResult:
        loop = new_event_loop()
        try:
            return loop.run_until_complete(start())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    outcome: list[EvalResult | BaseException] = []

    def run_guarded() -> None:
        try:
            outcome.append(run())
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, which raises it
            outcome.append(error)

    thread = threading.Thread(target=run_guarded, name="context-bench")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def aevaluate(
    systems: Any,
    dataset: Any,
    evaluators: Sequence[Any] | Scorer | None = None,
    metrics: Sequence[Any] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
    repeats: int = 1,
    keep_rows: bool = True,
    store: Store | None = None,
    reuse: bool = True,
    cache_tag: str | None = None,
    limits: Limits | None = None,
    prices: Prices | None = None,
    config: Mapping[str, Any] | None = None,
    score_field: str | None = None,
    threshold: float | None = None,
    preflight: bool = True,
    debug: bool = False,
    baseline: str | None = None,
    margin: float | None = None,
    aa: bool = False,
    stop_when_decided: bool = False,
    seed: int = 0,
) -> EvalResult:
    """Do what `evaluate` does, to be awaited: the arguments, the result and the errors are the same."""
    if namesake := find_namesake():
        warnings.warn(namesake, stacklevel=2)
    _check_integers(1, repeats=repeats, max_workers=max_workers)
    _check_integers(0, max_examples=max_examples)
    if isinstance(text_fields, str):
        raise UsageError(f"text_fields must be a list of field names: write [{text_fields!r}]")
    members = _build_systems(systems)
    examples, datasets = gather_datasets(dataset, max_examples)
    scorer = evaluators if isinstance(evaluators, Scorer) else Scorer(evaluators, score_field=score_field or "score")
    choose_baseline([each.name for each in members], baseline)
    if threshold is not None:
        check_threshold(threshold, scorer, score_field or "score")
    if metrics is None:
        metrics = _default_metrics(members, scorer, datasets, threshold, repeats)
    metrics = _check_metrics(metrics, keep_rows=keep_rows)
    members, twin = add_twin(members, baseline) if aa else (members, None)
    prices = check_prices(members, prices, needed=limits is not None and limits.max_cost is not None)
    expected = count_examples(examples, max_examples, progress)
    plan = Plan(
        systems=members,
        scorer=scorer,
        metrics=metrics,
        score_field=score_field or next(filter(None, map(find_score_field, metrics)), "score"),
        count=get_tokenizer(tokenizer),
        text_fields=text_fields,
        repeats=repeats,
        max_workers=max_workers,
        keep_rows=keep_rows,
        limits=(limits or Limits()).fresh(),
        prices=prices,
        progress=Progress(None if expected is None else expected * len(members) * repeats, progress),
        expected=None if expected is None else expected * repeats,
        preflight=preflight,
        debug=debug,
        name_samples=lambda counts: _name_samples(examples, max_examples, counts),
        baseline=baseline,
        margin=check_margin(DEFAULT_MARGIN if margin is None else margin),
        controls=[each.name for each in members if never_wins(each)],
        twin=None if twin is None else twin.name,
    )
    record = {
        **_describe_plan(plan),
        "max_examples": max_examples,
        "tokenizer": _name_tokenizer(tokenizer),
        "cache_tag": cache_tag,
        "threshold": next((found for each in metrics if (found := find_threshold(each)) is not None), None),
        "threshold_given": threshold is not None,
        **(config or {}),
    }
    source = read_examples(examples, max_examples)
    if stop_when_decided:
        plan.order = _draw_order(plan, source, seed)
        source = iter(plan.order.examples)
    where = store if store is not None or cache_dir is None else Path(cache_dir)
    if where is None:
        return await execute_plan(plan, source, record, None)
    return await run_with_store(plan, source, record, where, reuse=reuse, tag=cache_tag)


def _draw_order(plan: Plan, source: Iterator[Example], seed: int) -> LookOrder:
    """Put all examples in the order of the looks, if there is anything to decide."""
    baseline, competing = plan.list_competing()
    if baseline is None or not competing:
        raise UsageError(
            "--stop-when-decided (stop_when_decided) must have a baseline and a system that is held against it, "
            "other than controls: add a --system"
        )
    return order_for_looks(source, seed, plan.scorer.find_cluster_field)


def _describe_plan(plan: Plan) -> dict[str, Any]:
    """Describe a run for its record."""
    return {
        "version": __version__,
        "python": platform.python_version(),
        "systems": {system.name: fingerprint_of(system) for system in plan.systems},
        "sends_elsewhere": [each.name for each in plan.systems if sends_elsewhere(each)],
        "metrics": [describe_metric(metric) for metric in plan.metrics],
        "score_field": plan.score_field,
        "max_workers": plan.max_workers,
        "repeats": plan.repeats,
        "baseline": plan.list_competing()[0],
        "twin": plan.twin,
        "margin": plan.margin,
        "controls": list(plan.controls),
        "text_fields": list(plan.text_fields) if plan.text_fields is not None else None,
        **({"prices": describe_prices(plan.prices, (*plan.systems, *plan.scorer.chosen))} if plan.prices else {}),
    }


def _name_samples(examples: Any, max_examples: int | None, counts: Mapping[str, int]) -> dict[str, str]:
    """Say how the examples of each dataset were chosen: `all`, `first`, `random` or `stratified`."""
    cut = name_sample("first", sum(counts.values()), max_examples)
    name = dataset_traits(examples).name_samples
    told = {} if name is None else name(counts)
    return {tag: cut if (how := told.get(tag, "all")) == "all" else how for tag in counts}


def _build_systems(given: Any) -> list[System]:
    """Make systems of what the caller gave, each with a name of its own."""
    listed = given if isinstance(given, list | tuple) else [given]
    members = [
        system for each in listed for system in (build_systems(each) if isinstance(each, str) else [adapt(each)])
    ]
    if not members:
        raise UsageError("no system to measure: pass at least one")
    seen: set[str] = set()
    for system in members:
        if system.name in seen:
            raise UsageError(f"two systems are called {system.name!r}: give each a name of its own")
        seen.add(system.name)
    return members


def _default_metrics(
    systems: Sequence[System], scorer: Scorer, datasets: int, threshold: float | None, repeats: int
) -> Sequence[Metric]:
    """Choose the metrics of a run whose caller chose none."""
    traits = [system_traits(each) for each in systems]
    known = [each.sees_upstream for each in traits]
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    metrics = default_metrics(
        scorer.score_field,
        threshold,
        datasets=datasets,
        systems=len(systems),
        tapped=any(known),
        controls=[system.name for system, own in zip(systems, traits) if not own.competes],
        cost_field="upstream_cost_of_pass" if all(known) else "cost_of_pass",
        judged=scorer.has_judge,
        repeats=repeats,
    )
    # These say nothing where no card recommends a threshold, and where nothing is known of tokens that are paid for.
    return [*metrics, CardPassRate(scorer.score_field), DollarCost(threshold, scorer.score_field), BilledRatio()]


def _check_metrics(given: Any, *, keep_rows: bool) -> list[Metric]:
    """Build those that are named; refuse what is not a metric, or cannot work in this run."""
    metrics = adapt_metrics(given)
    for metric in metrics:
        check_metric_members(metric)
        if not keep_rows and not can_start(metric):
            raise UsageError(f"metric {metric.name!r} needs all rows at once: use keep_rows=True, or give it start()")
    return metrics


def _name_tokenizer(tokenizer: str | Tokenizer | None) -> str | None:
    """Name what token counts depend on: an encoding, or a callable by its source; None when that cannot be told."""
    if tokenizer is None:
        tokenizer = current_tokenizer()
    return tokenizer if isinstance(tokenizer, str) else fingerprint_of(tokenizer)


def _check_integers(least: int, **values: int | None) -> None:
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise UsageError(f"{name} must be an integer of at least {least} (got {value!r})")
