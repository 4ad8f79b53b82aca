"""`evaluate()`: datasets through systems, evaluators and metrics to a result. It wires the stages, nothing else."""

from __future__ import annotations

import asyncio
import platform
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from context_bench._version import __version__
from context_bench.datasets.catalog import card_for
from context_bench.datasets.examples import ExampleCheck
from context_bench.engine.call import Outcome, call_system, is_endpoint
from context_bench.engine.progress import Progress
from context_bench.engine.scheduler import Feed, Item, Job, Lane, run_lanes
from context_bench.engine.scoring import Judgement, Scorer
from context_bench.errors import ContextBenchError, DataError, UsageError
from context_bench.http.loop import new_event_loop
from context_bench.http.transport import close_shared_transport
from context_bench.metrics import default_metrics
from context_bench.results import EvalResult, EvalRow
from context_bench.summary import describe_metric, summarize
from context_bench.systems.adapt import adapt
from context_bench.systems.prompts import merge
from context_bench.types import Evaluator, Example, Metric, System
from context_bench.utils.tokens import Tokenizer, count_prompt, get_tokenizer

__all__ = ["aevaluate", "evaluate"]


def evaluate(
    systems: Any,
    dataset: Iterable[Example],
    evaluators: Sequence[Evaluator] | Scorer | None = None,
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
    repeats: int = 1,
    config: Mapping[str, Any] | None = None,
) -> EvalResult:
    """Run every system on every example, score what comes back, and summarise.

    Works from a script and from inside a running event loop (a notebook); there, `await aevaluate(...)`
    leaves the loop free meanwhile.

    Args:
        systems: One system or several; a plain function `f(example)` is one too.
        dataset: Any iterable of examples, read lazily, once.
        evaluators: Applied to all examples; None wires them by each example's dataset.
        metrics: None computes mean score, pass rate, compression ratio, cost of pass and latency, and
            for several systems the Pareto rank.
        max_examples: Stop after so many.
        progress: Show a progress line when stderr is a terminal.
        text_fields: The fields that count as the prompt, on both sides.
        max_workers: Examples in flight at once (1 by default).
        cache_dir: Where answers are kept and reused.
        tokenizer: An encoding name or a callable; cl100k_base by default.
        repeats: How often each example is run.
        config: Recorded in the result's `config`.

    Raises:
        UsageError: Something cannot be right, before anything was sent.
        DataError: An example cannot be used. What was finished before it is in the error's `result`.
    """
    arguments = {name: value for name, value in locals().items() if name not in ("systems", "dataset")}
    return _run(lambda: aevaluate(systems, dataset, **arguments))


def _run(start: Callable[[], Any]) -> EvalResult:
    """Run to the end on an event loop of our own; in a thread of its own when one is running here already."""

    def run() -> EvalResult:
        loop = new_event_loop()
        try:
            result: EvalResult = loop.run_until_complete(start())
            return result
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    outcome: list[EvalResult | BaseException] = []

    def guarded() -> None:
        try:
            outcome.append(run())
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, which raises it
            outcome.append(error)

    thread = threading.Thread(target=guarded, name="context-bench")
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


async def aevaluate(
    systems: Any,
    dataset: Iterable[Example],
    evaluators: Sequence[Evaluator] | Scorer | None = None,
    metrics: Sequence[Metric] | None = None,
    max_examples: int | None = None,
    progress: bool = True,
    text_fields: Sequence[str] | None = None,
    max_workers: int | None = None,
    cache_dir: str | Path | None = None,
    tokenizer: str | Tokenizer | None = None,
    repeats: int = 1,
    config: Mapping[str, Any] | None = None,
) -> EvalResult:
    """The same as `evaluate`, to be awaited."""
    if cache_dir is not None:
        raise UsageError("cache_dir is not supported yet: answers are not kept between runs")
    _at_least(1, repeats=repeats, max_workers=max_workers)
    _at_least(0, max_examples=max_examples)
    members = _systems(systems)
    if metrics is None:
        metrics = default_metrics(systems=len(members))
    check = getattr(dataset, "check", None)
    if callable(check):
        check()
    scorer = evaluators if isinstance(evaluators, Scorer) else Scorer(evaluators)
    run = _Run(members, scorer, get_tokenizer(tokenizer), text_fields, repeats)
    total = _length(dataset, max_examples)
    run.progress = Progress(None if total is None else total * len(members) * repeats, progress)
    await run.execute(_checked(dataset, max_examples), max_workers)
    recorded = {
        "version": __version__,
        "python": platform.python_version(),
        "systems": {system.name: getattr(system, "fingerprint", None) for system in members},
        "evaluators": sorted({each.name for tag in run.tags for each in run.scorer.evaluators_for(tag)}),
        "metrics": [describe_metric(metric) for metric in metrics],
        "score_field": _score_field(metrics),
        "datasets": dict(run.tags),
        "max_examples": max_examples,
        "max_workers": max_workers,
        "repeats": repeats,
        "tokenizer": tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "__name__", "cl100k_base"),
        "text_fields": list(text_fields) if text_fields is not None else None,
        "returns": run.returns,
        **(config or {}),
    }
    result = run.result(list(metrics), recorded)
    if run.error is not None:
        raise _with_result(run.error, result)
    return result


class _Run:
    """The rows of one run while they come in."""

    def __init__(
        self,
        systems: list[System],
        scorer: Scorer,
        count: Tokenizer,
        text_fields: Sequence[str] | None,
        repeats: int,
    ) -> None:
        self.systems, self.scorer, self.count = systems, scorer, count
        self.text_fields, self.repeats = text_fields, repeats
        self.rows: dict[int, EvalRow] = {}
        self.tags: dict[str, int] = {}
        self.returns: dict[str, str] = {}
        self.spans: dict[str, tuple[float, float]] = {}
        self.error: Exception | None = None
        self.progress = Progress(None, False)

    async def execute(self, examples: Iterator[Example], max_workers: int | None) -> None:
        lanes = _lanes(self.systems, max_workers)
        slots = max(lane.slots for lane in lanes)
        feed = Feed(examples, lanes, len(self.systems) * self.repeats, self.repeats, ahead=2 * slots + 2)
        threads = ThreadPoolExecutor(max(1, slots), thread_name_prefix="context-bench-system")
        try:
            await asyncio.gather(*(system.prepare() for system in self.systems if hasattr(system, "prepare")))
            await run_lanes(feed, lanes, lambda job: self._work(job, threads))
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            await close_shared_transport()
            self.progress.close()
        self.error = feed.error

    async def _work(self, job: Job, threads: ThreadPoolExecutor) -> None:
        example, tag = job.item.example, job.item.tag
        outcome = await call_system(job.system, example, threads)
        judgement = Judgement()
        if outcome.error is None:
            judgement = await self.scorer.judge(example, outcome.processed, tag)
        row = self._row(job, outcome, judgement)
        self.rows[job.order] = row
        if job.order % (len(self.systems) * self.repeats) == 0:
            self.tags[tag] = self.tags.get(tag, 0) + 1
        first, last = self.spans.get(row.system, (outcome.started, outcome.ended))
        self.spans[row.system] = (min(first, outcome.started), max(last, outcome.ended))
        self.progress.add(row)

    def _row(self, job: Job, outcome: Outcome, judgement: Judgement) -> EvalRow:
        example, processed = job.item.example, outcome.processed
        metadata = {**outcome.metadata, **judgement.details}
        output_tokens = response_tokens = 0
        if outcome.error is None:
            response_tokens = self.count(processed["response"])
            output_tokens = response_tokens
            metadata["output"] = outcome.returns
            if outcome.returns == "context":
                output_tokens = count_prompt(merge(example, processed), self.count, self.text_fields)
            self.returns[job.system.name] = outcome.returns
        metadata["response_tokens"] = response_tokens
        return EvalRow(
            system=job.system.name,
            example_id=example["id"],
            scores=judgement.scores,
            input_tokens=self._prompt_tokens(job.item),
            output_tokens=output_tokens,
            metadata=metadata,
            latency=outcome.latency,
            dataset=job.item.tag,
            response=processed.get("response", ""),
            error=outcome.error,
            repeat=job.repeat,
            unscored=judgement.unscored,
            upstream_tokens=metadata.pop("upstream_tokens", None),
        )

    def _prompt_tokens(self, item: Item) -> int:
        if item.tokens is None:
            item.tokens = count_prompt(item.example, self.count, self.text_fields)
        return item.tokens

    def result(self, metrics: list[Metric], config: dict[str, Any]) -> EvalResult:
        names = [system.name for system in self.systems]
        rows = [self.rows[order] for order in sorted(self.rows)]
        summary = summarize(rows, names, metrics, config["score_field"])
        timing = {name: last - first for name, (first, last) in self.spans.items()}
        return EvalResult(rows, summary, {name: timing.get(name, 0.0) for name in names}, config, metrics)


def _systems(given: Any) -> list[System]:
    members = [adapt(each) for each in (given if isinstance(given, list | tuple) else [given])]
    if not members:
        raise UsageError("no system to measure: pass at least one")
    seen: set[str] = set()
    for system in members:
        if system.name in seen:
            raise UsageError(f"two systems are called {system.name!r}: give each a name of its own")
        seen.add(system.name)
    return members


def _lanes(systems: list[System], max_workers: int | None) -> list[Lane]:
    """One lane for each endpoint, and one for all systems in this process."""
    lanes: list[Lane] = []
    here = Lane(max_workers or 1)
    for place, system in enumerate(systems):
        if is_endpoint(system):
            lanes.append(Lane(max_workers or getattr(system, "max_workers", None) or 1, [(place, system)]))
        else:
            here.systems.append((place, system))
    return [*lanes, here] if here.systems else lanes


def _checked(dataset: Iterable[Example], max_examples: int | None) -> Iterator[Example]:
    """Each example once it is known to be usable, with the instruction of its dataset."""
    check = ExampleCheck()
    for number, example in enumerate(islice(dataset, max_examples), 1):
        check(example, f"example {number}")
        card = card_for(str(example.get("dataset") or ""))
        yield {"instruction": card.instruction, **example} if card and card.instruction else example


def _length(dataset: Iterable[Example], max_examples: int | None) -> int | None:
    try:
        total = len(dataset)  # type: ignore[arg-type]
    except TypeError:
        return max_examples
    return total if max_examples is None else min(total, max_examples)


def _score_field(metrics: Sequence[Metric]) -> str:
    return next((each.score_field for each in metrics if hasattr(each, "score_field")), "score")


def _at_least(least: int, **values: int | None) -> None:
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise UsageError(f"{name} is a whole number from {least} on, not {value!r}")


def _with_result(error: Exception, result: EvalResult) -> ContextBenchError:
    """The error that ended the input, carrying what was finished before it."""
    known = (
        error
        if isinstance(error, ContextBenchError)
        else DataError(f"reading the dataset failed after {len(result.rows)} rows: {type(error).__name__}: {error}")
    )
    known.result = result  # type: ignore[attr-defined]
    return known
