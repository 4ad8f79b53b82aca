"""Examples, rows and results of every kind that a part may be given."""

from __future__ import annotations

from typing import Any

from context_bench.metrics import default_metrics
from context_bench.results import EvalResult, EvalRow
from context_bench.summary import describe_metric, summarize
from context_bench.types import Example

__all__ = ["sample_examples", "sample_pairs", "sample_results", "sample_rows"]


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


def sample_pairs() -> list[tuple[Example, Example]]:
    """Return pairs of an example and what a system made of it, as an evaluator may be given them."""
    pairs = []
    for original in sample_examples():
        for response in ("Rome", "London", "", " \n ", "word " * 500, "東京 \u202e \x00", "\ud800"):
            pairs.append((original, {"response": response}))  # noqa: PERF401 - two lists in one
        pairs.append((original, {"response": original["context"], "context": original["context"]}))
    return [*pairs, ({"id": 1, "context": "text"}, {"response": "text", "context": "text"})]
