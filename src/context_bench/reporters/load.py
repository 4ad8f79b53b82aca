"""From what a user types after `--output` to a reporter: a name, or one's own class, object or function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from context_bench.errors import UsageError
from context_bench.refs import Ref, call_with, check_arguments, check_plain, parse, resolve
from context_bench.results import EvalResult
from context_bench.types import Reporter

__all__ = ["FunctionReporter", "adapt_reporter", "build_reporter"]


class FunctionReporter:
    """A plain function as a reporter: it gets the result and returns the text."""

    def __init__(self, function: Callable[[EvalResult], str]) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))

    def render(self, result: EvalResult) -> str:
        """Call the function."""
        return self.function(result)


def build_reporter(text: str, width: int | None = None, store: str | None = None, *, color: bool = False) -> Reporter:
    """Build the reporter that a reference names.

    One that takes a `width` gets that of the terminal, one that takes `color` whether it shows colours, and one that
    takes a `store` the folder of the run's store.

    Raises:
        UsageError: Nothing has that name, or it is not a reporter.
    """
    refs = parse("reporter", text)
    if len(refs) > 1:
        raise UsageError(f"{text!r} stands for {len(refs)} reporters: a report is written by one")
    found = resolve("reporter", refs[0])
    if isinstance(found, type):
        return adapt_reporter(
            call_with(found, _add_known(found, refs[0], {"width": width, "store": store, "color": color}))
        )
    if refs[0].parameters or refs[0].argument:
        raise UsageError(f"{text!r}: this reporter is made already and takes no parameters")
    return adapt_reporter(found)


def _add_known(kind: type, ref: Ref, known: Mapping[str, Any]) -> Ref:
    """Add what is known of where the report goes and comes from, as far as the constructor takes it."""
    try:
        takes = set(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        takes = set()
    given = {name: value for name, value in known.items() if name in takes}
    return Ref(ref.text, ref.target, ref.argument, {**given, **ref.parameters})


def adapt_reporter(reporter: Any) -> Reporter:
    """Accept a reporter as it is, or a function of a result; anything else is an error that says what is missing."""
    if isinstance(reporter, Reporter) and not isinstance(reporter, type):
        check_plain(reporter, "render")
        return reporter
    if callable(reporter):
        check_plain(reporter, "__call__")
        check_arguments(reporter, 1, "a reporter must take one argument, the result")
        return FunctionReporter(reporter)
    raise UsageError(f"{type(reporter).__name__} is not a reporter: pass an object with .name and .render(result)")
