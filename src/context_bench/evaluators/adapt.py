"""Make evaluators from a user's objects, functions and references."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from context_bench.errors import UsageError
from context_bench.refs import call_with, check_arguments, check_plain, parse, resolve
from context_bench.traits import SystemTraits, find_name, scores_asynchronously
from context_bench.types import Evaluator, Example


class FunctionEvaluator:
    """A plain function as an evaluator; it returns a dict of scores, or a number as the score of that name."""

    def __init__(self, function: Callable[[Example, Example], Any]) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))

    def __context_bench_traits__(self) -> SystemTraits:
        return SystemTraits(parts=[self.function])

    def score(self, original: Example, processed: Example) -> dict[str, float]:
        value = self.function(original, processed)
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return value  # type: ignore[return-value]  # as an evaluator's own dict it is checked where it is used
        return {self.name: value}


def build_evaluators(text: str) -> Iterator[Evaluator]:
    """Build the evaluator that a reference names, or several evaluators if the reference is a sweep."""
    for ref in parse("evaluator", text):
        found = resolve("evaluator", ref)
        if isinstance(found, type):
            yield adapt_evaluator(call_with(found, ref))
        elif ref.parameters or ref.argument:
            raise UsageError(f"{ref.text!r}: this evaluator is already an instance and takes no parameters")
        else:
            yield adapt_evaluator(found)


def adapt_evaluator(evaluator: Any) -> Evaluator:
    """Return an evaluator unchanged, or wrap a function `f(original, processed)`; for anything else, raise an error
    that says what is missing."""
    if isinstance(evaluator, type):
        raise UsageError(f"{evaluator.__name__} is a class: pass an evaluator made from it, {evaluator.__name__}(...)")
    find_name(evaluator)  # a property that raises is reported as its author's mistake
    if isinstance(evaluator, Evaluator):
        if not scores_asynchronously(evaluator):
            check_plain(evaluator, "score", "ascore")
        return evaluator
    if callable(evaluator):
        check_plain(evaluator, "__call__")
        check_arguments(evaluator, 2, "an evaluator must take two arguments, the original and the processed example")
        return FunctionEvaluator(evaluator)
    kind = type(evaluator).__name__
    raise UsageError(f"{kind} is not an evaluator: pass an object with .name and .score(original, processed)")
