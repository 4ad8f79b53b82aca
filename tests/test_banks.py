"""A bank of cases is one test that hides no case."""

from __future__ import annotations

import pytest

from banks import each_case


def test_every_case_runs_and_all_that_fail_are_listed() -> None:
    seen: list[tuple[int, int, str]] = []

    @each_case("one", [1, 2])
    @each_case(("two", "name"), [(10, "a"), pytest.param(20, "b", id="twenty")])
    def sums_are_odd(one: int, two: int, name: str) -> None:
        seen.append((one, two, name))
        assert (one + two) % 2, f"{one} and {two}"

    with pytest.raises(AssertionError) as failed:
        sums_are_odd()
    assert sorted(seen) == [(1, 10, "a"), (1, 20, "b"), (2, 10, "a"), (2, 20, "b")]
    assert "1 of 2 cases fail" in str(failed.value)
    assert "2 of 2 cases fail" in str(failed.value)
    assert "- twenty: AssertionError: 2 and 20" in str(failed.value.__cause__)


@each_case("value", [0, 1], ids=["zero", "one"])
def test_other_arguments_are_fixtures(value: int, request: pytest.FixtureRequest) -> None:
    assert request.node.name == "test_other_arguments_are_fixtures"


def test_a_case_that_skips_hides_no_failure() -> None:
    @each_case("value", ["skip", "fail", "pass"])
    def mixed(value: str) -> None:
        if value == "skip":
            pytest.skip("not here")
        assert value == "pass"

    with pytest.raises(AssertionError, match="1 of 3 cases fail"):
        mixed()
    with pytest.raises(pytest.skip.Exception, match="not here"):
        each_case("value", ["skip"])(mixed.__wrapped__)()  # type: ignore[attr-defined]


def test_a_bank_of_nothing_is_skipped_and_marks_are_refused() -> None:
    with pytest.raises(pytest.skip.Exception):
        each_case("value", [])(lambda value: None)()
    with pytest.raises(AssertionError, match="a test of its own"):
        each_case("value", [pytest.param(1, marks=pytest.mark.xfail)])
