"""A quality gate for a test suite: `assert_not_worse`, as a function and as a fixture.

# conftest.py
pytest_plugins = ["context_bench.pytest"]

# test_quality.py
def test_compression_keeps_quality(assert_not_worse):
    assert_not_worse(my_compressor, "passthrough", "data.jsonl", margin=0.05)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from context_bench.compare.verdicts import check_margin
from context_bench.config import DEFAULT_MARGIN
from context_bench.results import EvalResult
from context_bench.runner import evaluate

__all__ = ["assert_not_worse"]


def assert_not_worse(
    system: Any,
    baseline: Any,
    dataset: Any,
    margin: float = DEFAULT_MARGIN,
    *,
    allow_undecided: bool = False,
    accept_blind: bool = False,
    **options: Any,
) -> EvalResult:
    """Run a system and its baseline, and fail unless the system is shown not worse within the margin.

    Args:
        system: One system, as `evaluate()` takes it.
        baseline: The system to compare it with.
        dataset: As `evaluate()` takes it. Too few examples leave the verdict open.
        margin: The largest loss of score that does not matter.
        allow_undecided: Pass if there are too few examples to decide; then only a shown loss fails.
        accept_blind: Pass even if a naive cut to the same size, such as truncation, is not worse either, so the
            examples could not have shown a loss.
        options: Further arguments of `evaluate()`, such as `cache_dir` and `evaluators`.

    Returns:
        The result, for further checks.
    Raises:
        AssertionError: The system is worse, or the examples cannot decide: they are too few, or could not have shown a
            loss. The message has the difference, its interval and the number of examples that would decide.
    """
    __tracebackhide__ = True
    result = evaluate([baseline, system], dataset, margin=check_margin(margin), **{"progress": False, **options})
    if len(result.systems) != 2:
        raise ValueError(f"assert_not_worse compares one system with one baseline, not {', '.join(result.systems)}")
    name = result.systems[1]
    found = result.compare(result.systems[0], margin=margin)
    verdict = None if found is None else found.of(name)
    if verdict is None:
        raise AssertionError(f"{name} cannot be compared with {result.systems[0]}: they share no scored example")
    blind = "" if found is None or accept_blind else found.explain_blindness(name)
    if blind and not allow_undecided:
        raise AssertionError(f"{name} is {blind} (accept_blind=True accepts this)")
    if verdict.not_worse or (allow_undecided and verdict.word == "undecided"):
        return result
    limits = f"95% interval {verdict.interval.low:+.3f} to {verdict.interval.high:+.3f}"
    parts = [f"{verdict.word} than" if verdict.word == "worse" else f"{verdict.word} against", result.systems[0]]
    text = f"{name} is {' '.join(parts)}: score {verdict.difference:+.3f}, {limits}, margin {margin:g}, n={verdict.n}"
    if verdict.word == "undecided":
        text += f"; {verdict.reason}" if verdict.reason else ""
    raise AssertionError(text)


@pytest.fixture(name="assert_not_worse", scope="session")
def _assert_not_worse() -> Callable[..., EvalResult]:
    """The function `context_bench.pytest.assert_not_worse`."""
    return assert_not_worse
