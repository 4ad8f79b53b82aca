"""The error tree: what is caught as what, and the sentences that users read."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import warnings
from pathlib import Path

import pytest

from context_bench import errors, evaluate
from context_bench.errors import (
    BadOutput,
    ConnectionFailed,
    ContextBenchError,
    DataError,
    MissingExtra,
    RequestFailed,
    ScoreClash,
    StartFailed,
    SystemFailure,
    TimedOut,
    UnknownName,
    UsageError,
    describe,
)

PARENTS = {
    UsageError: ContextBenchError,
    UnknownName: UsageError,
    MissingExtra: UsageError,
    DataError: UsageError,
    StartFailed: UsageError,
    ScoreClash: ContextBenchError,
    SystemFailure: ContextBenchError,
    BadOutput: SystemFailure,
    RequestFailed: SystemFailure,
    ConnectionFailed: RequestFailed,
    TimedOut: RequestFailed,
}


@pytest.mark.parametrize(("child", "parent"), PARENTS.items())
def test_the_tree(child: type, parent: type) -> None:
    assert child.__mro__[1] is parent


def test_the_tree_is_drawn_in_full_in_the_docstring() -> None:
    own = inspect.getmembers(errors, lambda value: inspect.isclass(value) and value.__module__ == errors.__name__)
    classes = {name for name, _ in own}
    assert {each.__name__ for each in PARENTS} < classes
    assert classes < set(errors.__all__)
    drawn = {word for line in (errors.__doc__ or "").splitlines() for word in line.replace("─", " ").split()}
    assert classes <= drawn


def test_an_unknown_name_is_a_key_error_with_the_nearest_names() -> None:
    error = UnknownName("system", "truncat", ["truncate", "oracle", "minify"])
    assert isinstance(error, KeyError)
    assert str(error) == "unknown system 'truncat': did you mean truncate?"
    assert (error.kind, error.name) == ("system", "truncat")


def test_an_unknown_name_like_no_other_lists_what_there_is() -> None:
    assert str(UnknownName("metric", "zzz", ["b", "a"])) == "unknown metric 'zzz': choose from a, b"
    assert str(UnknownName("metric", "zzz", [])) == "unknown metric 'zzz': none is registered"


def test_a_missing_extra_says_what_to_type() -> None:
    assert str(MissingExtra("to_dataframe()", "dataframe")) == (
        "to_dataframe() needs an optional dependency: "
        "pip install 'ctxbench[dataframe]' (in a checkout: pip install '.[dataframe]')"
    )


@pytest.mark.parametrize(
    "error",
    [
        UsageError("text"),
        UnknownName("system", "truncat", ["truncate"]),
        MissingExtra("x", "y"),
        SystemFailure("text", {"attempts": 2}),
        RequestFailed("text", status=503, metadata={"attempts": 4}),
        TimedOut("text"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_whole_out_of_another_process(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_failure_carries_what_the_row_keeps() -> None:
    assert SystemFailure("no").metadata == {}
    failure = RequestFailed("no", status=500, metadata={"waited": 1.5})
    assert (failure.status, failure.metadata) == (500, {"waited": 1.5})


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no  good\n at all"), "ValueError: no good at all"),
        (ValueError(), "ValueError"),
        (ValueError("red \x1b[31m\x07 bell"), "ValueError: red [31m bell"),
        (ValueError("right-to-left \u202e and \ud800"), "ValueError: right-to-left and"),
        (TimedOut("after 30 s"), "TimedOut: after 30 s"),
        (KeyError("id"), "KeyError: 'id'"),
    ],
)
def test_one_line_for_a_row(error: Exception, text: str) -> None:
    assert describe(error) == text


def test_a_warning_points_at_the_line_of_the_caller() -> None:
    """Whichever thread it comes from: only that line is the user's to change."""

    def fail(rows: object) -> float:
        raise ValueError("no")

    async def inside_a_loop() -> None:
        evaluate("passthrough", "needle:n=1,length=200", metrics=[fail], progress=False)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate("passthrough", [], progress=False)
        asyncio.run(inside_a_loop())
    lines = [Path(__file__).read_text().splitlines()[each.lineno - 1].strip() for each in caught]
    assert {each.filename for each in caught} == {__file__}
    assert lines[0].startswith('evaluate("passthrough", [],')
    assert lines[-1].startswith('evaluate("passthrough", "needle')
