"""A model's reply as the client reads it: both APIs give the same record, and what is not a reply is refused."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from context_bench.wire.form import ModelReply, NotAReply
from context_bench.wire.openai_chat import read_chat_completion

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"city":"Oslo"}'}}


def test_both_apis_give_the_same_record() -> None:
    openai = read_chat_completion(
        {
            "choices": [{"message": {"content": "Sunny.", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }
    )
    anthropic = ANTHROPIC_MESSAGES.read_reply(
        {
            "content": [
                {"type": "text", "text": "Sunny."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"city": "Oslo"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 7, "output_tokens": 3},
        }
    )
    assert openai == ModelReply(
        "Sunny.", [CALL], "tool_calls", {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    )
    assert (anthropic.text, anthropic.tool_calls) == (openai.text, openai.tool_calls)
    assert (anthropic.finish, openai.finish) == ("tool_use", "tool_calls")
    assert anthropic.usage == {**openai.usage, "cached_tokens": 0, "cache_creation_tokens": 0}


def test_an_answer_of_no_tokens_beside_a_text_cannot_be() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 0, "total_tokens": 7}
    for message in ({"content": "Sunny."}, {"content": None, "tool_calls": [CALL]}):
        read = read_chat_completion({"choices": [{"message": message}], "usage": usage})
        assert read.usage == {"prompt_tokens": 7, "total_tokens": 7, "ignored_usage": {"completion_tokens": "0"}}
    assert read_chat_completion({"choices": [{"message": {"content": ""}}], "usage": usage}).usage == usage
    block = {"type": "text", "text": "Sunny."}
    read = ANTHROPIC_MESSAGES.read_reply({"content": [block], "usage": {"input_tokens": 7, "output_tokens": 0}})
    assert "completion_tokens" not in read.usage


def test_a_part_whose_text_is_null_adds_nothing() -> None:
    parts = [{"type": "text", "text": None}, {"type": "text", "text": "Paris"}]
    assert read_chat_completion({"choices": [{"message": {"content": parts}}]}).text == "Paris"


@pytest.mark.parametrize("document", [None, [], "x", {}, {"choices": []}, {"choices": [{"message": "x"}]}, {"a": 1}])
def test_what_is_not_a_reply_of_either_api(document: Any) -> None:
    with pytest.raises(NotAReply, match=r"^JSON that is not a chat completion: "):
        read_chat_completion(document)
    with pytest.raises(NotAReply, match=r"^JSON that is not a message: "):
        ANTHROPIC_MESSAGES.read_reply(document)


def test_what_an_error_tells_of_usage_is_kept_and_its_form_is_right() -> None:
    with pytest.raises(NotAReply) as caught:
        read_chat_completion({"error": {"message": "no"}, "usage": {"prompt_tokens": 5}})
    assert (caught.value.usage, caught.value.wrong_form) == ({"prompt_tokens": 5}, False)
    with pytest.raises(NotAReply) as other:
        ANTHROPIC_MESSAGES.read_reply({"choices": []})
    assert other.value.wrong_form is True
