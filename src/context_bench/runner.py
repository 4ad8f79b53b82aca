"""`evaluate()` and `aevaluate()` plan a run and execute it with or without a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from context_bench.config import EvaluateOptions
from context_bench.core.judge import Scorer
from context_bench.core.record import open_cache
from context_bench.core.run import Run
from context_bench.core.run_settings import plan_run
from context_bench.core.schedule import Engine
from context_bench.core.threads import Threads
from context_bench.errors import UsageError, find_namesake, remember_caller, warn
from context_bench.http.loop import open_event_loop
from context_bench.monitors.limits import Limits
from context_bench.pricing import Prices
from context_bench.ray.ray_engine import find_engine
from context_bench.registry import import_object
from context_bench.results import EvalResult
from context_bench.store import StoreBackend
from context_bench.types import System
from context_bench.utils.tokens import Tokenizer

__all__ = ["aevaluate", "evaluate", "run_to_end"]

P = ParamSpec("P")
R = TypeVar("R")

_NO_EXAMPLES = (
    "the dataset gave no examples, so nothing was measured; an iterator can be read only once: create it again, or "
    "pass a list"
)


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
    store: StoreBackend | None = None,
    reuse: bool = True,
    cache_tag: str | None = None,
    limits: Limits | None = None,
    prices: Prices | None = None,
    config: Mapping[str, Any] | None = None,
    score_field: str | None = None,
    threshold: float | None = None,
    keep_reasoning: bool = False,
    preflight: bool = True,
    debug: bool = False,
    baseline: str | None = None,
    margin: float | None = None,
    aa: bool = False,
    stop_when_decided: bool = False,
    fixed_groups: bool = False,
    seed: int = 0,
    engine: str | Engine = "local",
) -> EvalResult:
    """Run every system on every example, score the outputs, and summarise.

    Works in a script and inside a running event loop (a notebook). In a loop, `await aevaluate(...)` does not block it.

    Args:
        systems: One system or several. A plain function `f(example)` is a system, and so is a reference such as
            `"bm25:ratio=0.3"`. Memory systems are passed to `evaluate_memory`; their dataset consists of conversations.
        dataset: Any iterable of examples, read lazily, once; a reference such as `"needle:n=20"` or a file; a data
            frame of pandas or polars; a list of datasets, or a mapping from tags to datasets.
        evaluators: Applied to all examples; None chooses them by each example's dataset. A plain function `f(original,
            processed)` that returns a number or a dict of numbers is an evaluator, and so is a reference.
        metrics: None computes mean score, pass rate, compression ratio, cost of pass and latency, and
            for several systems the Pareto rank. A metric may be a name, a reference such as
            `"mean-score:score_field=f1"`, or a function `f(rows)` that returns a number or a dict of numbers.
        max_examples: Stop after this number of examples.
        progress: Show the progress on stderr: one changing line on a terminal or in a notebook, elsewhere a plain
            line every 30 seconds or 10%, after the first 10 seconds.
        text_fields: The fields counted as the prompt, before and after the system.
        max_workers: Examples in flight at once for each system (1 by default).
        cache_dir: A folder in which answers and scores are cached; they are reused if nothing that they depend on has
            changed.
        tokenizer: An encoding name or a callable; cl100k_base by default.
        repeats: How often each example is run.
        keep_rows: False keeps rows only in the store, so that memory stays constant.
        store: An open store, instead of `cache_dir`.
        reuse: False repeats all requests, and stores the new answers.
        cache_tag: A label for cached answers; change it if the server behind a URL has changed.
        limits: Stop at this many errors, tokens or dollars; the reason is then in `config["stopped"]`.
        prices: Prices of models, for the cost of requests; None takes the dated table of the package.
        config: Recorded in the result's `config`.
        score_field: The primary score: the `score` of each row and of the default metrics. None takes the score that
            the dataset reports, or the one that fits the fields of an example.
        threshold: The lowest score that passes, in the default metrics; None takes `config.DEFAULT_THRESHOLD`.
        keep_reasoning: Score whole replies. By default, `<think>` blocks and the like are not part of an answer.
        preflight: Send the first request of each endpoint alone, and stop its system if all others would fail too; the
            reason is then in `config["stopped_systems"]`. False disables this.
        baseline: The system that the others are compared with; by default `direct`, else `passthrough`, else the first.
        margin: The largest difference of scores that does not matter; None takes `config.DEFAULT_MARGIN`.
        aa: Run the baseline twice, interleaved, to measure the noise that a difference must exceed.
        stop_when_decided: Stop each system as soon as its verdict is settled, by five interim looks at the examples in
            random order. All examples are read before the run. `config["looks"]` lists the examples that were not run.
        fixed_groups: Judge only the documents or conversations of this run: "equivalent" and "not worse" then count
            examples, and say nothing about other documents.
        seed: The seed of the random order.
        engine: Where to run: `"local"`, in this process; `"ray"`, on a Ray cluster; or a `RayEngine(...)`.
        debug: Stop at the first exception of a system's own code, keep the finished part, and open the debugger there.

    Raises:
        UsageError: An argument is wrong; nothing was sent.
        DataError: An example cannot be used. The error's `result` has the finished part.
        StoreError: The store cannot be used, or can no longer be used. `result` has the finished part, if any.
        ScoreClash: Two evaluators emitted the same score. `result` has the finished part.
        Interrupted: The user pressed Ctrl-C; `result` has the finished part.
    """
    given = dict(locals())
    return run_to_end(lambda: aevaluate(**given))


def run_to_end(start: Callable[[], Coroutine[Any, Any, EvalResult]]) -> EvalResult:
    """Run on our own event loop, in a separate thread if a loop is already running here."""
    remember_caller()
    if asyncio._get_running_loop() is not None:
        thread = Threads(1, "context-bench")
        try:
            result: EvalResult = thread.submit(run_to_end, start).result()
            return result
        finally:
            thread.shutdown()
    with open_event_loop() as loop:
        return loop.run_until_complete(start())


def _with_parameters(of: Callable[P, Any]) -> Callable[[Callable[..., R]], Callable[P, R]]:
    """Copy the parameters of another function, for type checkers and readers of the signature."""

    def give(function: Any) -> Any:
        function.__signature__ = signature(of)
        return function

    return give


@_with_parameters(evaluate)
async def aevaluate(*given: Any, **named: Any) -> EvalResult:
    """Run `evaluate` asynchronously: arguments, result and errors are the same."""
    settings = EvaluateOptions(**signature(evaluate).bind(*given, **named).arguments)
    remember_caller()
    if namesake := find_namesake():
        warn(namesake)
    settings.check()
    if _are_memories(settings.systems):
        find_engine(settings.engine).check(settings.systems, debug=settings.debug)
        # imported here: it calls this module with systems that ask the memories
        run = import_object("context_bench.memory.evaluation:aevaluate_memory")
        return await run(**vars(settings))  # type: ignore[no-any-return]
    plan, record, source = plan_run(settings)
    where = settings.store
    if where is None and settings.cache_dir is not None:
        where = Path(settings.cache_dir)
    if where is None:
        result = await Run(plan).execute(source, record)
    else:
        with open_cache(plan, record, where, reuse=settings.reuse, tag=settings.cache_tag) as (cache, recorded):
            result = recorded.finish(await Run(plan, cache).execute(source, record))
    if not result.settings.datasets and settings.max_examples != 0:
        warn(_NO_EXAMPLES)
    return result


def _are_memories(given: Any) -> bool:
    """Whether the systems are memory systems, which cannot run together with others."""
    listed = given if isinstance(given, list | tuple) else [given]
    methods = ("reset", "ingest", "query")
    kinds = {
        not isinstance(each, type | System) and all(callable(getattr(each, method, None)) for method in methods)
        for each in listed
    }
    if len(kinds) > 1:
        raise UsageError("memory systems and other systems need different data: run each kind separately")
    return kinds == {True}
