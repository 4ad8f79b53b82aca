"""What usage says, in the forms of both APIs."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.wire.usage import read_anthropic_usage, read_openai_usage


def test_openais_usage() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 32},
    }
    assert read_openai_usage(usage) == {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "cached_tokens": 64,
        "reasoning_tokens": 32,
    }


@pytest.mark.parametrize("usage", [None, [], "x", 5, {}, {"prompt_tokens_details": [1]}])
def test_usage_that_says_nothing(usage: Any) -> None:
    assert read_openai_usage(usage) == {}
    assert read_anthropic_usage(usage) == {}


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
        numbers = read_openai_usage(told)
        assert numbers.pop("ignored_usage") == {name: shown}
        assert numbers == {key: number for key, number in told.items() if key != name}
    cached = read_openai_usage({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": value}})
    assert cached == {"prompt_tokens": 3, "ignored_usage": {"cached_tokens": shown}}
    assert read_anthropic_usage({"input_tokens": value, "output_tokens": 2}) == {
        "ignored_usage": {"input_tokens": shown}
    }
    unknown_reply = read_anthropic_usage({"input_tokens": 3, "output_tokens": value})
    assert "completion_tokens" not in unknown_reply
    assert "total_tokens" not in unknown_reply
    assert read_anthropic_usage({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": value}) == {
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "total_tokens": 5,
        "cached_tokens": 0,
        "cache_creation_tokens": 0,
        "ignored_usage": {"cache_read_input_tokens": shown},
    }


def test_anthropics_usage_adds_up_to_the_prompt() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300, "output_tokens": 4}
    assert read_anthropic_usage(usage) == {
        "prompt_tokens": 321,
        "completion_tokens": 4,
        "total_tokens": 325,
        "cached_tokens": 20,
        "cache_creation_tokens": 300,
    }
    assert read_anthropic_usage({"input_tokens": 5}) == {
        "prompt_tokens": 5,
        "completion_tokens": 0,
        "total_tokens": 5,
        "cached_tokens": 0,
        "cache_creation_tokens": 0,
    }
