"""From a name or a reference to metrics: what a user types after `--metric`, or gives to `evaluate(metrics=)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from context_bench.errors import UsageError
from context_bench.refs import Ref, call_with, check_plain, parse, resolve
from context_bench.traits import find_name
from context_bench.types import Metric

__all__ = ["adapt_metrics", "build_metrics"]


def build_metrics(text: str) -> Iterator[Metric]:
    """Build the metric that a reference names; several when it is a sweep.

    Raises:
        UsageError: Nothing has that name, or it is not a metric.
    """
    for ref in parse("metric", text):
        metric = _build(ref, resolve("metric", ref))
        find_name(metric)
        if not isinstance(metric, Metric):
            raise UsageError(f"{ref.text!r} is not a metric: it needs .name and .compute(rows)")
        check_plain(metric, "compute")
        yield metric


def _build(ref: Ref, found: Any) -> Any:
    if isinstance(found, type) or (callable(found) and not isinstance(found, Metric)):
        return call_with(found, ref)
    if ref.parameters or ref.argument:
        raise UsageError(f"{ref.text!r}: this metric is made already and takes no parameters")
    return found


def adapt_metrics(given: Any) -> list[Metric]:
    """Accept metrics as they are, or by name or reference; anything else is an error that says what is missing."""
    metrics: list[Metric] = []
    for each in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
        if isinstance(each, str):
            metrics += build_metrics(each)
        elif not isinstance(each, type) and find_name(each) is not None and isinstance(each, Metric):
            check_plain(each, "compute")
            metrics.append(each)
        else:
            kind = each.__name__ if isinstance(each, type) else type(each).__name__
            raise UsageError(f"{kind} is not a metric: pass an object with .name and .compute(rows), or a name")
    return metrics
