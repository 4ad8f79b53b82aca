"""Banks of cases: one test goes through hundreds of them, and lists all that fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

SHOWN_FAILURES = 20

Names = Iterable[str] | Callable[[Any], object] | None


def each_case(
    names: str | Sequence[str], cases: Iterable[Any], ids: Names = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each case, as `pytest.mark.parametrize` does, but as one test: it costs a hundredth.

    For tests that take nothing else than their cases. The first failure is shown whole, the others by a line each.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    bank = list(_name_cases(cases, ids, len(arguments)))

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def go_through(**others: Any) -> None:
            failures: list[tuple[str, BaseException]] = []
            skipped: list[str] = []
            for name, values in bank:
                try:
                    test(**dict(zip(arguments, values, strict=True)), **others)
                except pytest.skip.Exception as skip:
                    skipped.append(str(skip))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each is listed
                    failures.append((name, error))
            if failures:
                raise AssertionError(_list_failures(failures, len(bank))) from failures[0][1]
            if len(skipped) == len(bank):
                pytest.skip(skipped[0] if skipped else "no case")

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        go_through.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return go_through

    return decorate


def _name_cases(cases: Iterable[Any], ids: Names, count: int) -> Iterator[tuple[str, Sequence[Any]]]:
    names = None if ids is None or callable(ids) else list(ids)
    for place, case in enumerate(cases):
        name = None
        if isinstance(case, type(pytest.param())):
            assert not case.marks, "a case with a mark is a test of its own"
            values, name = case.values, case.id
        else:
            values = (case,) if count == 1 else case
        if callable(ids):
            name = "-".join(str(ids(value)) for value in values)
        elif names:
            name = names[place]
        yield str(name or f"case {place + 1}: {values!r:.200}"), values


def _list_failures(failures: list[tuple[str, BaseException]], count: int) -> str:
    lines = [f"{len(failures)} of {count} cases fail; the first is shown above"]
    for name, error in failures[:SHOWN_FAILURES]:
        lines.append(f"- {name}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}")
    if len(failures) > SHOWN_FAILURES:
        lines.append(f"- and {len(failures) - SHOWN_FAILURES} more")
    return "\n".join(lines)
