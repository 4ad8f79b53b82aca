"""A check for each kind of part, which uses the part as a run would."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from context_bench.datasets.example_check import ExampleCheck
from context_bench.errors import ContextBenchError, describe
from context_bench.evaluators.adapt import adapt_evaluator
from context_bench.http.loop import run_sync
from context_bench.memory.members import find_broken_rules, read_members
from context_bench.output.files import adapt_reporter
from context_bench.refs import check_awaitable
from context_bench.results import EvalRow
from context_bench.runner import evaluate
from context_bench.store.fingerprints import may_read_gold
from context_bench.systems.adapt import adapt
from context_bench.tallies import check_metric_members
from context_bench.testing.contract import ContractRules, sample_examples, sample_pairs, sample_results, sample_rows
from context_bench.traits import can_start, find_columns, find_render_parts, find_score_fields, scores_asynchronously
from context_bench.types import Example, Metric

_GOLD = ("answer", "answers", "relevant_ids", "evidence")


def check_system(system: Any, examples: Iterable[Example] | None = None) -> None:
    """Check that a system, an object or a function of an example, keeps its contract; else raise ContractError.

    By default, it is tried on `sample_examples()`. Pass your own `examples` for a system that needs more.
    """
    rules = ContractRules("a system")
    adapted = rules.take(adapt, system, "System")
    rules.finish()
    tried = list(sample_examples() if examples is None else examples)
    before = copy.deepcopy(tried)
    result = rules.call("a run", lambda: evaluate(adapted, tried, evaluators=[], progress=False))
    if result is not None:
        rules.check(len(result.rows) == len(tried), "must give a row for every example")
        for row in result.rows:
            rules.check(row.error is None, f"must not fail on the example {row.example_id!r} ({row.error})")
    rules.check(tried == before, "must leave the caller's examples as they were")
    if result is not None and not rules.broken and not may_read_gold(adapted):
        blind = [{key: value for key, value in each.items() if key not in _GOLD} for each in tried]
        again = rules.call("a run without gold", lambda: evaluate(adapted, blind, evaluators=[], progress=False))
        same = again is not None and [row.response for row in again.rows] == [row.response for row in result.rows]
        rules.check(same, "must answer the same without the gold, because it declares `reads_gold = False`")
    rules.finish()


def check_dataset(dataset: Any, limit: int = 1000) -> None:
    """Check that a dataset keeps its contract, by its first `limit` examples; else raise ContractError.

    It may be an iterable of examples, or a loader that returns one and needs no arguments.
    """
    rules = ContractRules("a dataset")
    opened = rules.call("its loader", dataset) if callable(dataset) else dataset
    rules.check(isinstance(opened, Iterable), "must be an iterable of examples, or a loader that returns one")
    rules.check(not isinstance(opened, str | Mapping), "must yield examples one by one, like a list or a generator")
    if rules.broken:
        rules.finish()
    rules.check_members(opened, "Dataset")
    check, count = ExampleCheck(), 0
    examples = iter(opened)
    while count < limit:
        try:
            example = next(examples)
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001
            rules.check(False, f"must not raise (it raised {describe(error)} after {count} examples)")
            break
        count += 1
        try:
            check(example, f"example {count}")
        except ContextBenchError as error:
            rules.check(False, f"must yield usable examples ({error})")
            break
    rules.check(count > 0, "must yield at least one example")
    rules.finish()


def check_evaluator(evaluator: Any, examples: Iterable[tuple[Example, Example]] | None = None) -> None:
    """Check that an evaluator, an object or a function, keeps its contract; else raise ContractError.

    `examples` are pairs of an original and a system's output, by default of many shapes.
    """
    rules = ContractRules("an evaluator")
    adapted = rules.take(adapt_evaluator, evaluator, "Evaluator")
    methods = {"score()": adapted.score}
    if scores_asynchronously(adapted):
        methods["ascore()"] = partial(_score_asynchronously, adapted)
    for original, processed in sample_pairs() if examples is None else examples:
        given = [_check_scores(rules, adapted, what, method, original, processed) for what, method in methods.items()]
        alike = all(scores is None or scores == given[0] for scores in given)
        rules.check(alike, "must return the same scores from ascore() as from score()")
    rules.finish()


def _score_asynchronously(evaluator: Any, original: Example, processed: Example) -> Any:
    async def score() -> Any:
        return await check_awaitable(evaluator.ascore(original, processed), evaluator, "ascore")

    return run_sync(score())


def _check_scores(
    rules: ContractRules, evaluator: Any, what: str, method: Callable[..., Any], original: Example, processed: Example
) -> Any:
    """Check an evaluator's scores of one answer, and return them; None without scores."""
    scores = rules.call_twice(
        what,
        method,
        original,
        processed,
        left="must leave the examples as they were",
        same="must give the same scores for the same answer",
    )
    if scores is None:
        return None
    if not isinstance(scores, Mapping):
        rules.check(False, f"must return a dict of numbers (it returned {type(scores).__name__})")
        return None
    numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in scores.values())
    rules.check(numbers, f"must return finite numbers (it returned {dict(scores)!r})"[:300])
    rules.check(all(isinstance(key, str) for key in scores), "must return its scores by name")
    declared = find_score_fields(evaluator)
    if declared is not None:
        more = sorted(set(map(str, scores)) - set(declared))
        rules.check(not more, f"must declare every score in `score_fields` (missing: {', '.join(more)})")
    return scores


def check_memory_system(system: Any, timeout: float = 60.0) -> None:
    """Check that a memory system keeps its contract, on two small conversations; else raise ContractError.

    `timeout` is in seconds, for one call.
    """
    rules = ContractRules("a memory system")
    members = rules.call("being taken as a memory system", read_members, system)
    if members is None:
        rules.finish()
    for rule in find_broken_rules(members, timeout):
        rules.check(False, rule)
    rules.finish()


def check_metric(metric: Any, rows: Sequence[EvalRow] | None = None) -> None:
    """Check that a metric keeps its contract; else raise ContractError.

    It is tried on `rows` (`sample_rows()` by default), without rows, and with only failed ones.
    """
    rules = ContractRules("a metric")
    rules.check(isinstance(metric, Metric) and not isinstance(metric, type), "must have .name and .compute(rows)")
    if not rules.broken:
        rules.check(isinstance(metric.name, str) and bool(metric.name), "must have a text as its `name`")
        rules.check_members(metric, "Metric")
        try:
            check_metric_members(metric)
        except ContextBenchError as error:
            rules.check(False, f"must keep the contract of its optional members ({error})")
    if rules.broken:
        rules.finish()
    tried = list(sample_rows() if rows is None else rows)
    for what, given in {"rows": tried, "no rows": [], "failed rows": [row for row in tried if row.error]}.items():
        _check_numbers(rules, metric, what, given)
    rules.finish()


def _check_numbers(rules: ContractRules, metric: Any, what: str, rows: list[EvalRow]) -> None:
    values = rules.call_twice(
        f"compute() of {what}",
        metric.compute,
        rows,
        left="must leave the rows as they were",
        same="must return the same for the same rows",
    )
    if values is None:
        return
    if not isinstance(values, Mapping):
        rules.check(False, f"must return a dict of numbers (it returned {type(values).__name__})")
        return
    rules.check(all(isinstance(key, str) for key in values), "must return its numbers by name")
    rules.check(all(isinstance(each, int | float) for each in values.values()), "must return numbers")
    columns = find_columns(metric)
    if columns is not None and rows and what == "rows":
        rules.check(set(columns) <= set(values), "must return every number that it names in `columns`")
    if can_start(metric):
        tally = rules.call("start()", metric.start)
        rules.check_members(tally, "Tally")
        for row in rows:
            rules.call("add() of its tally", tally.add, row)
        given = rules.call("result() of its tally", tally.result)
        rules.check(given == values, "must return the same numbers from start() as from compute()")


def check_reporter(reporter: Any) -> None:
    """Check that a reporter keeps its contract, on `sample_results()`; else raise ContractError."""
    rules = ContractRules("a reporter")
    adapted = rules.take(adapt_reporter, reporter, "Reporter")
    for kind, result in sample_results().items():
        text = rules.call_twice(
            f"render() of a result with {kind}",
            adapted.render,
            result,
            left="must leave the result as it was",
            same="must return the same for the same result",
        )
        if text is None:
            continue
        if not isinstance(text, str):
            rules.check(False, f"must return a text (it returned {type(text).__name__})")
            continue
        rules.check(text.endswith("\n"), "must end its text with a line end")
        rules.check(_is_writable(text), "must return a text that can be written as UTF-8")
        if (render_parts := find_render_parts(adapted)) is not None:
            parts = rules.call("render_parts()", _join_parts, render_parts, result)
            rules.check(parts == text, "must return the same text from render_parts() as from render()")
    rules.finish()


def _join_parts(render_parts: Callable[[Any], Any], result: Any) -> str:
    return "".join(render_parts(result))


def _is_writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
