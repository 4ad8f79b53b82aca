"""Contract checks for authors of parts: call one in a test of your own.

    from context_bench.testing import check_system

    def test_my_system():
        check_system(MySystem())

Each check uses the part as a run would, and raises `ContractError` (an AssertionError) with one sentence for each rule
that the part breaks. The parts that ship with the package are held to the same checks.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from context_bench.datasets.example_check import ExampleCheck
from context_bench.errors import ContextBenchError, MissingExtra, describe
from context_bench.evaluators.adapt import adapt_evaluator
from context_bench.memory.contract import find_broken_rules
from context_bench.memory.members import read_members
from context_bench.metrics import default_metrics
from context_bench.reporters.load import adapt_reporter
from context_bench.results import EvalResult, EvalRow
from context_bench.runner import evaluate
from context_bench.store.fingerprints import may_read_gold
from context_bench.summary import describe_metric, summarize
from context_bench.systems.adapt import adapt
from context_bench.tallies import check_metric_members
from context_bench.traits import can_start, find_columns, find_fingerprint, find_score_fields
from context_bench.types import Example, Metric

__all__ = [
    "ContractError",
    "check_dataset",
    "check_evaluator",
    "check_memory_system",
    "check_metric",
    "check_reporter",
    "check_system",
    "sample_examples",
    "sample_results",
    "sample_rows",
]

_GOLD = ("answer", "answers", "relevant_ids", "evidence")


class ContractError(AssertionError):
    """A part breaks its contract; `broken` has a sentence for each rule."""

    def __init__(self, broken: Sequence[str]) -> None:
        super().__init__("\n".join(broken))
        self.broken = list(broken)


class _Rules:
    """Collects the rules that a part breaks."""

    def __init__(self, part: str) -> None:
        self._part = part
        self.broken: list[str] = []

    def check(self, kept: bool, rule: str) -> None:
        sentence = f"{self._part} {rule}"
        if not kept and sentence not in self.broken:
            self.broken.append(sentence)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call what a run would call; an exception breaks a rule."""
        try:
            return function(*arguments)
        except (MissingExtra, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises breaks the rule
            self.check(False, f"must not raise in {what} (it raised {describe(error)})")
            return None

    def finish(self) -> None:
        if self.broken:
            raise ContractError(self.broken)


# -- what parts are tried on


def sample_examples() -> list[Example]:
    """Return examples of every shape that a system may be given: prose, JSON, empty, documents, turns."""
    shapes: dict[str, Example] = {
        "prose": {"context": "Alice lives in Paris. Bob lives in Rome. Carol lives in Oslo.", "question": "Bob?"},
        "json": {"context": '[{"name": "Bob", "city": "Rome"}]\n' * 20, "question": "Where is Bob?"},
        "code": {"context": "def f(x):\n    if x:\n        return  1\n    return 2\n" * 10},
        "empty": {"context": ""},
        "blank": {"context": " \n\t\n "},
        "one long word": {"context": "x" * 5000},
        "scripts": {"context": "東京は首都です。नमस्ते 🍕 e\u0301 \u200b\u202e <|endoftext|>", "question": "東京?"},
        "surrogate": {"context": "half \ud800 a pair. And more."},
        "documents": {
            "context": "Paris\n\nRome",
            "question": "Rome?",
            "documents": [{"id": "a", "text": "Paris", "title": "A"}, {"id": "b", "text": "Rome", "title": None}],
        },
        "conversation": {
            "context": "user: Where is Bob?",
            "turns": [{"role": "system", "content": "Bob is in Rome."}, {"role": "user", "content": "Where is Bob?"}],
        },
    }
    gold = {"answer": "Rome", "answers": ["Rome"], "relevant_ids": ["b"], "evidence": ["Bob lives in Rome."]}
    return [{"id": name, "dataset": "samples", **gold, **shape} for name, shape in shapes.items()]


def sample_rows() -> list[EvalRow]:
    """Return rows of every kind that a metric may be given: scored, unscored and failed, of two datasets."""

    def row(number: int, score: float | None, error: str | None = None, **facts: Any) -> EvalRow:
        scores = {} if score is None else {"f1": score, "score": score}
        given: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, **facts}
        return EvalRow(system="sample", example_id=number, scores=scores, error=error, **given)

    return [
        row(1, 0.8, input_tokens=100, output_tokens=40, latency=0.5, dataset="a"),
        row(2, 0.2, input_tokens=50, output_tokens=60, latency=1.5, dataset="b"),
        row(3, None, input_tokens=10, output_tokens=10, latency=0.1),
        row(4, None, "TimedOut: no answer", input_tokens=7, latency=30.0, dataset="a"),
    ]


def sample_results() -> dict[str, EvalResult]:
    """Return results of every kind that a reporter may be given, by what is special about them."""
    hostile = "a|b\n<script>\x1b[31m\u202e\ud800"
    mixed, failed = sample_rows(), [row for row in sample_rows() if row.error]
    strange = EvalRow(hostile, hostile, {"score": 1.0}, 10, 5, dataset=hostile, response=hostile)
    two = [*mixed, EvalRow("other", 1, {"score": 0.0}, 10, 5, dataset="a")]
    kinds = {"no rows": [], "one system": mixed, "two systems": two, "only errors": failed, "strange names": [strange]}
    return {kind: _make_result(rows) for kind, rows in kinds.items()}


def _make_result(rows: list[EvalRow]) -> EvalResult:
    names = list(dict.fromkeys(row.system for row in rows))
    metrics = default_metrics(datasets=2, systems=len(names))
    config = {"metrics": [describe_metric(metric) for metric in metrics], "score_field": "score"}
    summary = summarize(rows, names, metrics)
    return EvalResult.from_summary(rows, summary, config, metrics, dict.fromkeys(names, 1.0))


# -- the checks


def check_system(system: Any, examples: Iterable[Example] | None = None) -> None:
    """Check that a system keeps its contract.

    Args:
        system: An object, or a function of an example.
        examples: What it is tried on; `sample_examples()` by default. Give your own to a system that needs more.

    Raises:
        ContractError: With a sentence for each rule that it breaks.
    """
    rules = _Rules("a system")
    adapted = rules.call("being taken as a system", adapt, system)
    if adapted is None:
        rules.finish()
    fingerprint = find_fingerprint(adapted)
    rules.check(fingerprint in ((), None) or isinstance(fingerprint, str), "must have a text as its `fingerprint`")
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
        rules.check(same, "must answer the same without the gold, as it declares `reads_gold = False`")
    rules.finish()


def check_dataset(dataset: Any, limit: int = 1000) -> None:
    """Check that a dataset keeps its contract.

    Args:
        dataset: An iterable of examples, or a loader that returns one and needs no arguments.
        limit: How many of its examples are looked at.

    Raises:
        ContractError: With a sentence for each rule that it breaks.
    """
    rules = _Rules("a dataset")
    opened = rules.call("its loader", dataset) if callable(dataset) else dataset
    rules.check(isinstance(opened, Iterable), "must be an iterable of examples, or a loader that returns one")
    rules.check(not isinstance(opened, str | Mapping), "must give examples one by one, as a list or a generator does")
    if rules.broken:
        rules.finish()
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
            rules.check(False, f"must give usable examples ({error})")
            break
    rules.check(count > 0, "must give at least one example")
    rules.finish()


def check_evaluator(evaluator: Any, examples: Iterable[tuple[Example, Example]] | None = None) -> None:
    """Check that an evaluator keeps its contract.

    Args:
        evaluator: An object, or a function of the original and the processed example.
        examples: Pairs of an original and what a system made of it; many shapes of both by default.

    Raises:
        ContractError: With a sentence for each rule that it breaks.
    """
    rules = _Rules("an evaluator")
    adapted = rules.call("being taken as an evaluator", adapt_evaluator, evaluator)
    if adapted is None:
        rules.finish()
    rules.check(isinstance(adapted.name, str) and bool(adapted.name), "must have a text as its `name`")
    declared = find_score_fields(adapted)
    for original, processed in _sample_pairs() if examples is None else examples:
        before = copy.deepcopy((original, processed))
        scores = rules.call("score()", adapted.score, original, processed)
        rules.check((original, processed) == before, "must leave the examples as they were")
        if scores is None:
            continue
        if not isinstance(scores, Mapping):
            rules.check(False, f"must return a dict of numbers (it returned {type(scores).__name__})")
            continue
        numbers = all(isinstance(each, int | float) and math.isfinite(each) for each in scores.values())
        rules.check(numbers, f"must return finite numbers (it returned {dict(scores)!r})"[:300])
        rules.check(all(isinstance(key, str) for key in scores), "must return its scores by name")
        if declared is not None:
            more = sorted(set(map(str, scores)) - set(declared))
            rules.check(not more, f"must declare every score in `score_fields` (missing: {', '.join(more)})")
        again = rules.call("score() for the second time", adapted.score, original, processed)
        rules.check(again == scores, "must give the same scores for the same answer")
    rules.finish()


def _sample_pairs() -> list[tuple[Example, Example]]:
    pairs = []
    for original in sample_examples():
        for response in ("Rome", "London", "", " \n ", "word " * 500, "東京 \u202e \x00", "\ud800"):
            pairs.append((original, {"response": response}))  # noqa: PERF401 - two lists in one
        pairs.append((original, {"response": original["context"], "context": original["context"]}))
    return [*pairs, ({"id": 1, "context": "text"}, {"response": "text", "context": "text"})]


def check_memory_system(system: Any, timeout: float = 60.0) -> None:
    """Check that a memory system keeps its contract, on two small conversations.

    Args:
        system: An object with `name`, `reset()`, `ingest(turns)` and `query(question)`.
        timeout: Seconds for one call.

    Raises:
        ContractError: With a sentence for each rule that it breaks.
    """
    rules = _Rules("a memory system")
    members = rules.call("being taken as a memory system", read_members, system)
    if members is None:
        rules.finish()
    for rule in find_broken_rules(members, timeout):
        rules.check(False, rule)
    rules.finish()


def check_metric(metric: Any, rows: Sequence[EvalRow] | None = None) -> None:
    """Check that a metric keeps its contract.

    Args:
        metric: An object with `name` and `compute(rows)`.
        rows: What it is tried on, with no rows and with failed ones alone; `sample_rows()` by default.

    Raises:
        ContractError: With a sentence for each rule that it breaks.
    """
    rules = _Rules("a metric")
    rules.check(isinstance(metric, Metric) and not isinstance(metric, type), "must have .name and .compute(rows)")
    if not rules.broken:
        rules.check(isinstance(metric.name, str) and bool(metric.name), "must have a text as its `name`")
        try:
            check_metric_members(metric)
        except ContextBenchError as error:
            rules.check(False, f"must have optional members that work ({error})")
    if rules.broken:
        rules.finish()
    tried = list(sample_rows() if rows is None else rows)
    for what, given in {"rows": tried, "no rows": [], "failed rows": [row for row in tried if row.error]}.items():
        _check_numbers(rules, metric, what, given)
    rules.finish()


def _check_numbers(rules: _Rules, metric: Any, what: str, rows: list[EvalRow]) -> None:
    before = copy.deepcopy(rows)
    values = rules.call(f"compute() of {what}", metric.compute, rows)
    rules.check(rows == before, "must leave the rows as they were")
    if values is None:
        return
    if not isinstance(values, Mapping):
        rules.check(False, f"must return a dict of numbers (it returned {type(values).__name__})")
        return
    rules.check(all(isinstance(key, str) for key in values), "must return its numbers by name")
    rules.check(all(isinstance(each, int | float) for each in values.values()), "must return numbers")
    again = rules.call("compute()", metric.compute, list(rows))
    rules.check(repr(again) == repr(values), "must give the same for the same rows")  # also where a number is NaN
    columns = find_columns(metric)
    if columns is not None and rows and what == "rows":
        rules.check(set(columns) <= set(values), "must return every number that it names in `columns`")
    if can_start(metric):
        tally = rules.call("start()", metric.start)
        for row in rows:
            rules.call("add() of its tally", tally.add, row)
        given = rules.call("result() of its tally", tally.result)
        rules.check(given == values, "must give by start() what compute() gives of the same rows")


def check_reporter(reporter: Any) -> None:
    """Check that a reporter keeps its contract, on `sample_results()`.

    Args:
        reporter: An object with `name` and `render(result)`, or a function of a result.

    Raises:
        ContractError: With a sentence for each rule that it breaks.
    """
    rules = _Rules("a reporter")
    adapted = rules.call("being taken as a reporter", adapt_reporter, reporter)
    if adapted is None:
        rules.finish()
    rules.check(isinstance(adapted.name, str) and bool(adapted.name), "must have a text as its `name`")
    for kind, result in sample_results().items():
        before = copy.deepcopy(result)
        text = rules.call(f"render() of a result with {kind}", adapted.render, result)
        rules.check(result == before, "must leave the result as it was")
        if text is None:
            continue
        if not isinstance(text, str):
            rules.check(False, f"must return a text (it returned {type(text).__name__})")
            continue
        rules.check(text.endswith("\n"), "must end its text with a line end")
        rules.check(_is_writable(text), "must return a text that can be written as UTF-8")
        rules.check(rules.call("render()", adapted.render, result) == text, "must give the same for the same result")
    rules.finish()


def _is_writable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
