"""Which settings make answers differ, which cannot be, and what usage says."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.systems.sampling import anthropic_usage, check_settings, settings_fingerprint, usage_numbers


@pytest.mark.parametrize("value", [1, 0.5, None, 10**9])
def test_settings_that_can_be(value: float | None) -> None:
    check_settings(may_be_zero=False, timeout=value)


@pytest.mark.parametrize("value", [0, -1, "5", True, float("nan"), float("inf"), [1]])
def test_settings_that_cannot_be(value: Any) -> None:
    with pytest.raises(UsageError, match="timeout is a number above 0"):
        check_settings(may_be_zero=False, retries=1, timeout=value)


def test_zero_where_it_may_be() -> None:
    check_settings(may_be_zero=True, retries=0)
    with pytest.raises(UsageError, match="retries is a number from 0 on"):
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
    assert settings_fingerprint("k", lambda example: eval(example["context"])) is None


def test_openais_usage() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 32},
    }
    assert usage_numbers(usage) == {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "cached_tokens": 64,
        "reasoning_tokens": 32,
    }


@pytest.mark.parametrize("usage", [None, [], "x", 5, {}, {"prompt_tokens_details": [1]}])
def test_usage_that_says_nothing(usage: Any) -> None:
    assert usage_numbers(usage) == {}
    assert anthropic_usage(usage) == {}


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-5, "-5"),
        (2 * 10**18, "2000000000000000000"),
        (2e18, "2e+18"),
        (1.5, "1.5"),
        ("5", "'5'"),
        (True, "True"),
        ([[1]], "list"),
        ({"a": 1}, "dict"),
        ("x" * 100, "'" + 39 * "x"),
    ],
)
def test_usage_that_cannot_be_is_left_out_and_named(value: Any, shown: str) -> None:
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        told = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, name: value}
        numbers = usage_numbers(told)
        assert numbers.pop("ignored_usage") == {name: shown}
        assert numbers == {key: number for key, number in told.items() if key != name}
    cached = usage_numbers({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": value}})
    assert cached == {"prompt_tokens": 3, "ignored_usage": {"cached_tokens": shown}}
    assert anthropic_usage({"input_tokens": value, "output_tokens": 2}) == {"ignored_usage": {"input_tokens": shown}}
    unknown_reply = anthropic_usage({"input_tokens": 3, "output_tokens": value})
    assert "completion_tokens" not in unknown_reply
    assert "total_tokens" not in unknown_reply
    assert anthropic_usage({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": value}) == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "cached_tokens": 0,
        "cache_creation_tokens": 0,
        "ignored_usage": {"cache_read_input_tokens": shown},
    }


def test_anthropics_usage_adds_up_to_the_prompt() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300, "output_tokens": 4}
    assert anthropic_usage(usage) == {
        "prompt_tokens": 321,
        "completion_tokens": 4,
        "total_tokens": 325,
        "cached_tokens": 20,
        "cache_creation_tokens": 300,
    }
    assert anthropic_usage({"input_tokens": 5}) == {
        "prompt_tokens": 5,
        "completion_tokens": 0,
        "total_tokens": 5,
        "cached_tokens": 0,
        "cache_creation_tokens": 0,
    }
