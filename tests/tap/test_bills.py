"""Bills: what each reply says of its tokens, plain or streamed, in both forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from context_bench.tap.bills import read_bills


def call(reply: str, **more: Any) -> dict[str, Any]:
    return {"path": "/v1/chat/completions", "status": 200, "reply": reply, **more}


def plain(**usage: Any) -> str:
    return json.dumps({"usage": usage})


def events(*documents: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(document)}\n\n" for document in documents)


def test_all_that_a_price_depends_on() -> None:
    openai = plain(prompt_tokens=11, completion_tokens=2, total_tokens=13, prompt_tokens_details={"cached_tokens": 4})
    anthropic = plain(
        input_tokens=5,
        cache_read_input_tokens=20,
        cache_creation_input_tokens=9,
        cache_creation={"ephemeral_5m_input_tokens": 6, "ephemeral_1h_input_tokens": 3},
        output_tokens=7,
    )
    assert read_bills([call(openai), call(anthropic)]) == [
        {"prompt_tokens": 11, "completion_tokens": 2, "cached_tokens": 4},
        {
            "prompt_tokens": 34,
            "completion_tokens": 7,
            "cached_tokens": 20,
            "cache_creation_tokens": 9,
            "cache_creation_1h_tokens": 3,
        },
    ]


def test_a_stream_tells_its_usage_in_parts() -> None:
    start = {"input_tokens": 7, "cache_read_input_tokens": 30, "output_tokens": 1}
    reply = events(
        {"type": "message_start", "message": {"usage": start}},
        {"type": "message_delta", "usage": {"output_tokens": 9}},
    )
    assert read_bills([call(reply)]) == [
        {"prompt_tokens": 37, "completion_tokens": 9, "cached_tokens": 30, "cache_creation_tokens": 0}
    ]


@pytest.mark.parametrize("reply", ["{}", "nonsense", plain(completion_tokens=3), plain(prompt_tokens=-3)])
def test_one_call_without_a_bill_makes_the_sum_unknown(reply: str) -> None:
    assert read_bills([call(plain(prompt_tokens=1, completion_tokens=1)), call(reply)]) is None


def test_what_was_refused_or_asks_no_model_is_not_billed() -> None:
    refused, counting = call("{}", status=500), call("{}", path="/v1/messages/count_tokens")
    assert read_bills([refused, counting]) == []
