"""What usage says, in the forms of both APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench.wire.anthropic_messages import read_anthropic_usage
from context_bench.wire.forms import read_bill
from context_bench.wire.openai_chat import read_openai_usage


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


def test_a_prompt_of_no_tokens_cannot_be() -> None:
    """A server that reports 0 for everything must not switch limits off: nobody answers a prompt of no tokens."""
    nothing = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert read_openai_usage(nothing) == {"ignored_usage": dict.fromkeys(nothing, "0")}
    assert read_openai_usage({**nothing, "completion_tokens": 7}) == {
        "completion_tokens": 7,
        "ignored_usage": {"prompt_tokens": "0", "total_tokens": "0"},
    }
    assert read_anthropic_usage({"input_tokens": 0, "output_tokens": 0}) == {
        "ignored_usage": {"input_tokens": "0", "output_tokens": "0"}
    }
    assert read_anthropic_usage({"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 1}) == {
        "prompt_tokens": 9,
        "completion_tokens": 1,
        "total_tokens": 10,
        "cached_tokens": 9,
        "cache_creation_tokens": 0,
    }
    assert read_bill(json.dumps({"usage": nothing})) == {}
    # A model may well have said nothing.
    assert read_openai_usage({"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3})["completion_tokens"] == 0


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


# --- bills: what each reply says of its tokens, plain or streamed, in both forms


def _events(*documents: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents)


def test_a_bill_has_all_that_a_price_depends_on() -> None:
    openai = {
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    anthropic = {
        "input_tokens": 5,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 3},
        "output_tokens": 7,
    }
    assert read_bill(json.dumps({"usage": openai})) == {
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "cached_tokens": 4,
    }
    assert read_bill(json.dumps({"usage": anthropic})) == {
        "prompt_tokens": 34,
        "completion_tokens": 7,
        "cached_tokens": 20,
        "cache_creation_tokens": 9,
        "cache_creation_1h_tokens": 3,
    }


def test_a_stream_tells_its_bill_in_parts() -> None:
    start = {"input_tokens": 7, "cache_read_input_tokens": 30, "output_tokens": 1}
    reply = _events(
        {"type": "message_start", "message": {"usage": start}},
        {"type": "message_delta", "usage": {"output_tokens": 9}},
    )
    assert read_bill(reply) == {
        "prompt_tokens": 37,
        "completion_tokens": 9,
        "cached_tokens": 30,
        "cache_creation_tokens": 0,
    }


@pytest.mark.parametrize("reply", ["", "{}", "nonsense", '{"usage": null}', '{"usage": {"prompt_tokens": -3}}'])
def test_a_reply_without_a_bill(reply: str) -> None:
    assert read_bill(reply) == {}
