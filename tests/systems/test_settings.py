"""Which settings cannot be used, and which make answers differ."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.systems.adapt import check_settings, settings_fingerprint


@pytest.mark.parametrize("value", [1, 0.5, None, 10**9])
def test_settings_that_can_be(value: float | None) -> None:
    check_settings(may_be_zero=False, timeout=value)


@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan"), float("inf"), [1]])
def test_settings_that_cannot_be(value: Any) -> None:
    with pytest.raises(UsageError, match="timeout must be a number above 0"):
        check_settings(may_be_zero=False, retries=1, timeout=value)


def test_zero_where_it_may_be() -> None:
    check_settings(may_be_zero=True, retries=0)
    with pytest.raises(UsageError, match="retries must be a number of at least 0"):
        check_settings(may_be_zero=True, retries=-1)


def test_a_fingerprint_depends_on_every_setting_and_not_on_their_order() -> None:
    base = settings_fingerprint("kind/1", None, model="m", temperature=0)
    assert base == settings_fingerprint("kind/1", None, temperature=0, model="m")
    others = [
        settings_fingerprint("kind/2", None, model="m", temperature=0),
        settings_fingerprint("kind/1", None, model="n", temperature=0),
        settings_fingerprint("kind/1", None, model="m", temperature=None),
        settings_fingerprint("kind/1", None, model="m"),
        settings_fingerprint("kind/1", None, model="m", temperature=0, stream=True),
        settings_fingerprint("kind/1", None, model="m", temperature=0, extra={"a": [1, {"b": 2}]}),
        settings_fingerprint("kind/1", None, model="m", temperature=0, extra={"a": [1, {"b": 3}]}),
    ]
    assert len({base, *others}) == 1 + len(others)
    assert base is not None
    assert base.startswith("kind/1 ")


def test_a_fingerprint_shows_no_setting() -> None:
    assert "hunter2" not in str(settings_fingerprint("kind/1", None, model="hunter2"))


def _one(example: dict[str, Any]) -> list[Any]:
    return [1, example]


def _two(example: dict[str, Any]) -> list[Any]:
    return [2, example]


def test_functions_differ_by_their_code_and_what_it_names() -> None:
    assert settings_fingerprint("k", _one) != settings_fingerprint("k", _two)
    assert settings_fingerprint("k", _one) == settings_fingerprint("k", _one)


def closing_over(value: Any) -> Any:
    return lambda example: [value]


def helper(example: dict[str, Any]) -> list[Any]:
    return [3, example]


def test_a_function_of_messages_is_followed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_fingerprint("k", closing_over("a")) != settings_fingerprint("k", closing_over("b"))

    def calls(example: dict[str, Any]) -> list[Any]:
        return helper(example)

    before = settings_fingerprint("k", calls)
    monkeypatch.setitem(globals(), "helper", _one)
    assert settings_fingerprint("k", calls) not in (None, before)


def test_what_cannot_be_told_apart_has_no_fingerprint() -> None:
    assert settings_fingerprint("k", closing_over(object())) is None
