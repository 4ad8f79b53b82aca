"""OpenAI's Responses API: requests and items, usage, streams event by event, and conversations that are stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench.traffic.calls import Call, link_calls
from context_bench.utils.tokens import count_tokens, get_tokenizer
from context_bench.wire.form import NotAReply, Recorded
from context_bench.wire.forms import (
    expand_request,
    read_bill,
    read_completion,
    read_edits,
    read_prompt,
    read_settings,
    read_stream,
)
from context_bench.wire.openai_chat import OPENAI_CHAT
from context_bench.wire.openai_responses import OPENAI_RESPONSES

CALL = {"id": "call_9", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
TOOL = {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": {"type": "object"}}}
CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": "Use tools."},
    {"role": "user", "content": [{"type": "text", "text": "Look at this."}]},
    {"role": "assistant", "content": "I will.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_9", "content": "print(1)"},
    {"role": "user", "content": "Well?"},
]
ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look at this."}]},
    {"type": "message", "role": "assistant", "content": "I will."},
    {"type": "function_call", "call_id": "call_9", "name": "read", "arguments": '{"path": "a.py"}'},
    {"type": "function_call_output", "call_id": "call_9", "output": "print(1)"},
    {"type": "message", "role": "user", "content": "Well?"},
]


def test_a_chat_becomes_instructions_and_items() -> None:
    body = OPENAI_RESPONSES.build_request("m", CHAT, tools=[TOOL], temperature=0.0, max_tokens=9, stream=True)
    flat = {
        "type": "function",
        "strict": False,
        "name": "read",
        "description": "Read.",
        "parameters": {"type": "object"},
    }
    assert body == {
        "model": "m",
        "instructions": "Be brief.\n\nUse tools.",
        "input": ITEMS,
        "tools": [flat],
        "temperature": 0.0,
        "max_output_tokens": 9,
        "store": False,
        "stream": True,
    }


def test_items_read_as_the_chat_that_they_were() -> None:
    body = OPENAI_RESPONSES.build_request("m", CHAT)
    prompt, chat = read_prompt(body), read_prompt({"messages": CHAT})
    assert prompt is not None
    assert chat is not None
    assert prompt.as_read().messages == chat.as_read().messages[2:]
    assert prompt.tokens(get_tokenizer()) == pytest.approx(chat.tokens(get_tokenizer()), abs=1)  # two texts joined
    assert OPENAI_RESPONSES.read_tool_ids(prompt.messages) == (["call_9"], ["call_9"])


CODEX: dict[str, Any] = {
    "model": "gpt-5.3-codex",
    "instructions": "You are Codex.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "sandbox: read-only"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix the bug"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB", "content": None},
        {"type": "function_call", "id": "fc_1", "name": "shell", "arguments": '{"cmd":"ls"}', "call_id": "c1"},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c2"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Done!"}]},
        {
            "type": "local_shell_call",
            "call_id": "c3",
            "status": "completed",
            "action": {"type": "exec", "cmd": ["pwd"]},
        },
        {"type": "local_shell_call_output", "call_id": "c3", "output": "/tmp"},
    ],
    "tools": [
        {"type": "function", "name": "shell", "strict": False, "parameters": {"type": "object"}},
        {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "high", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0198-abc",
    "text": {"verbosity": "medium"},
}


def test_a_request_of_codex() -> None:
    prompt = read_prompt(CODEX)
    assert prompt is not None
    assert prompt.texts() == [
        "You are Codex.",
        "sandbox: read-only",
        "fix the bug",
        '{"id":"c1","type":"function","function":{"name":"shell","arguments":"{\\"cmd\\":\\"ls\\"}"}}',
        '{"id":"c2","type":"custom","custom":{"name":"apply_patch","input":"*** Begin"}}',
        "a.py",
        "Done!",
        '{"call_id":"c3","action":{"type":"exec","cmd":["pwd"]}}',
        '{"call_id":"c3","output":"/tmp"}',
    ]
    assert [message["role"] for message in prompt.messages] == [
        *("developer", "user", "assistant", "assistant", "tool", "tool", "assistant", "tool")
    ]
    assert (prompt.count_opaque(), prompt.tool_names()) == (1, ["shell", "apply_patch"])
    # What only routes, stores or caches is no setting.
    assert read_settings(CODEX) == {
        "model": "gpt-5.3-codex",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "high", "summary": "auto"},
        "text": {"verbosity": "medium"},
        "tool_choice": "auto",
    }


def test_equal_conversations_in_two_spellings() -> None:
    said = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant"}
    part = {"type": "output_text", "text": "Hi.", "annotations": [], "logprobs": []}
    one = read_prompt({"input": [{"role": "user", "content": "Hello"}, {**said, "content": [part]}]})
    other = read_prompt({"input": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]})
    assert one is not None
    assert other is not None
    assert one.as_read() == other.as_read()
    assert read_prompt({"input": "Hello"}) == read_prompt({"input": [{"role": "user", "content": "Hello"}]})


@pytest.mark.parametrize(
    "document",
    [
        {"input": ["a", "b"]},
        {"input": [1, 2]},
        {"input": "a text", "encoding_format": "base64"},
        {"input": 7},
        {"model": "m"},
        {"instructions": "x"},
    ],
)
def test_what_holds_no_prompt(document: dict[str, Any]) -> None:
    assert read_prompt(document) is None


# --- usage

USAGE = {
    "input_tokens": 2006,
    "input_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 50},
    "output_tokens": 300,
    "output_tokens_details": {"reasoning_tokens": 256},
    "total_tokens": 2306,
}


def test_usage_with_cached_and_reasoning_tokens() -> None:
    assert OPENAI_RESPONSES.read_usage(USAGE) == {
        "prompt_tokens": 2006,
        "completion_tokens": 300,
        "total_tokens": 2306,
        "cached_tokens": 1920,
        "cache_creation_tokens": 50,
        "reasoning_tokens": 256,
    }
    assert OPENAI_RESPONSES.read_usage({"input_tokens": 5, "output_tokens": 7, "output_tokens_details": {}}) == {}
    refused = OPENAI_RESPONSES.read_usage({"input_tokens": -1, "output_tokens": 2, "total_tokens": 2})
    assert refused == {"completion_tokens": 2, "total_tokens": 2, "ignored_usage": {"input_tokens": "-1"}}
    bill = {"prompt_tokens": 2006, "completion_tokens": 300, "cached_tokens": 1920, "cache_creation_tokens": 50}
    assert read_bill(json.dumps({"object": "response", "output": [], "usage": USAGE})) == bill
    assert read_bill(write_stream({"type": "response.completed", "response": {"id": "r", "usage": USAGE}})) == bill


# --- replies and streams

OUTPUT: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Thinking."}]},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Let me look."}, {"type": "refusal", "refusal": "No."}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "read", "arguments": '{"path":"a.py"}'},
]
REPLY = {"id": "resp_1", "object": "response", "status": "completed", "output": OUTPUT, "usage": USAGE}


def test_a_reply() -> None:
    reply = OPENAI_RESPONSES.read_reply(REPLY)
    assert (reply.text, reply.finish, reply.usage["reasoning_tokens"]) == ("Let me look.", "function_call", 256)
    function = {"name": "read", "arguments": '{"path":"a.py"}'}
    assert reply.tool_calls == [{"id": "call_9", "type": "function", "function": function}]
    completion = read_completion(json.dumps(REPLY))
    assert completion is not None
    assert (completion.id, completion.texts) == ("resp_1", ["Let me look."])
    assert completion.calls == [("read", '{"path":"a.py"}')]
    cut = {**REPLY, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    assert OPENAI_RESPONSES.read_reply(cut).finish == "max_output_tokens"
    for wrong in ({**REPLY, "status": "failed"}, {**REPLY, "status": "queued"}, {"choices": []}, [], None):
        with pytest.raises(NotAReply, match="finished response"):
            OPENAI_RESPONSES.read_reply(wrong)


def write_stream(*events: dict[str, Any]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Body:
    def __init__(self, text: str) -> None:
        self.body = text.encode()
        self.chunks = [(float(place), piece) for place, piece in enumerate(self.body.splitlines(keepends=True))]


AT = {"item_id": "i", "output_index": 1, "content_index": 0}
BEGIN: dict[str, Any] = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}
END: dict[str, Any] = {"type": "response.completed", "response": REPLY}
CALLED: dict[str, Any] = {**OUTPUT[2], "arguments": ""}
ARGUMENTS: list[dict[str, Any]] = [
    {"type": "response.output_item.added", "output_index": 2, "item": CALLED},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": '{"path":'},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 2, "delta": '"a.py"}'},
    {"type": "response.output_item.done", "output_index": 2, "item": OUTPUT[2]},
]
EVENTS: list[dict[str, Any]] = [
    BEGIN,
    {"type": "response.in_progress", "response": BEGIN["response"]},
    {"type": "response.output_item.added", "output_index": 0, "item": {**OUTPUT[0], "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "delta": "Thinking."},
    {"type": "response.output_item.added", "output_index": 1, "item": {**OUTPUT[1], "content": []}},
    {"type": "response.output_text.delta", **AT, "delta": "Let me "},
    {"type": "response.output_text.delta", **AT, "delta": "look."},
    {"type": "response.output_text.done", **AT, "text": "Let me look."},
    *ARGUMENTS,
    END,
]


@pytest.mark.parametrize(
    "events",
    [
        EVENTS,
        [BEGIN, *EVENTS[4:7], ARGUMENTS[0], ARGUMENTS[-1], END],  # arguments in one piece
        [BEGIN, *EVENTS[4:7], ARGUMENTS[-1], END],
    ],
)
def test_a_stream(events: list[dict[str, Any]]) -> None:
    document = read_stream(OPENAI_RESPONSES, Body(write_stream(*events)))
    reply = OPENAI_RESPONSES.read_reply(document)
    assert (reply.text, reply.finish, reply.usage["cached_tokens"]) == ("Let me look.", "function_call", 1920)
    assert reply.tool_calls[0]["function"] == {"name": "read", "arguments": '{"path":"a.py"}'}
    assert reply.tool_calls[0]["id"] == "call_9"
    assert [item["type"] for item in document["output"]] == ["reasoning", "message", "function_call"]
    # The first token is that of the text, not of the reasoning before it. Each event takes three lines.
    first = next(place for place, event in enumerate(events) if event["type"] == "response.output_text.delta")
    assert reply.timings["time_to_first_token"] == 3.0 * first + 1


def test_streams_that_end_otherwise() -> None:
    def read(*events: dict[str, Any]) -> Any:
        return OPENAI_RESPONSES.read_reply(read_stream(OPENAI_RESPONSES, Body(write_stream(*events))))

    cut = {"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []}
    assert read(*EVENTS[:6], {"type": "response.incomplete", "response": cut}).finish == "max_output_tokens"
    assert read(BEGIN, {**END, "response": {**REPLY, "output": OUTPUT[:2]}}).text == "Let me look."
    failed = {"id": "resp_1", "status": "failed", "error": {"code": "server_error", "message": "out of luck"}}
    with pytest.raises(ValueError, match="reports an error: out of luck"):
        read(BEGIN, {"type": "response.failed", "response": failed})
    with pytest.raises(ValueError, match="reports an error: rate_limit: slow down"):
        read(BEGIN, {"type": "error", "code": "rate_limit", "message": "slow down", "sequence_number": 1})
    with pytest.raises(ValueError, match="ends before the reply does"):
        read(*EVENTS[:6])
    with pytest.raises(ValueError, match="not a chunk"):
        read(BEGIN, {"type": "response.output_text.delta", "delta": 7})


# --- conversations that the server stores


def recorded(number: int, said: str, answer: dict[str, Any], **more: Any) -> Call:
    body = {"model": "m", "input": [{"role": "user", "content": said}], **more}
    reply = {"id": f"resp_{number}", "object": "response", "output": [answer]}
    return Call("/v1/responses", json.dumps(body), status=200, reply=json.dumps(reply))


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_a_chain_counts_all_that_the_model_reads() -> None:
    streamed = {"id": "resp_2", "output": [message("two two")]}
    first = recorded(1, "alpha", message("one"), instructions="Obey.")
    second = recorded(2, "beta", message(""), previous_response_id="resp_1", instructions="Obey again.")
    second.reply = write_stream({"type": "response.completed", "response": streamed})
    third = recorded(3, "gamma", message("three"), previous_response_id="resp_2")
    lost = recorded(4, "delta", message("four"), previous_response_id="resp_unknown")
    link_calls([first, second, third, lost])
    assert third.prompt is not None
    # The instructions of earlier requests are not carried over.
    assert third.prompt.texts() == ["alpha", "one", "beta", "two two", "gamma"]
    assert third.prompt.tokens(count_tokens) == sum(map(count_tokens, third.prompt.texts()))
    assert lost.prompt is None  # it is not known what the model read: nothing is counted as if it were all


def test_a_chain_begins_at_its_last_compaction() -> None:
    compacted = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    first = recorded(1, "alpha", message("one"))
    second = recorded(2, "beta", compacted, previous_response_id="resp_1")
    third = recorded(3, "gamma", message("three"), previous_response_id="resp_2")
    link_calls([first, second, third])
    assert third.prompt is not None
    assert (third.prompt.texts(), third.prompt.count_opaque()) == (["gamma"], 1)
    assert second.edits == [{"type": "compaction"}]


def test_a_long_chain_and_one_that_bites_its_tail() -> None:
    calls = [recorded(0, "turn 0", message("yes"))]
    calls += [recorded(n, f"turn {n}", message("yes"), previous_response_id=f"resp_{n - 1}") for n in range(1, 1500)]
    link_calls(calls)
    assert calls[-1].prompt is not None
    assert len(calls[-1].prompt.messages) == 2 * 1500 - 1
    ring = recorded(7, "x", message("y"), previous_response_id="resp_7")
    link_calls([ring])
    assert ring.prompt is None


@pytest.mark.parametrize(
    "more",
    [
        {"conversation": "conv_1"},
        {"prompt": {"id": "pmpt_1"}},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"previous_response_id": "resp_0"},
    ],
)
def test_what_only_the_server_knows(more: dict[str, Any]) -> None:
    assert expand_request({"input": "x", **more}, lambda _: None) is None


def test_other_apis_hold_all_of_their_conversations() -> None:
    chat = {"messages": CHAT, "prompt": {"id": "no template"}, "conversation": "c"}
    assert expand_request(chat, lambda _: Recorded({}, {})) is chat
    assert OPENAI_CHAT.expand(chat, lambda _: None) is chat


# --- what the APIs themselves do to a conversation


def test_edits_of_anthropics_context_management() -> None:
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000}
    summary = {"type": "compaction", "content": "They spoke of cats."}
    message = {
        "content": [summary, {"type": "text", "text": "Go on."}],
        "context_management": {"applied_edits": [edit]},
    }
    assert read_edits(json.dumps(message)) == [edit, {"type": "compaction"}]
    stream = write_stream(
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "They spoke."}},
        {"type": "message_delta", "delta": {}, "context_management": {"applied_edits": [edit]}},
    )
    assert read_edits(stream) == [{"type": "compaction"}, edit]
    assert read_edits(json.dumps({"choices": [], "usage": {}})) == []


def test_anthropic_drops_what_stands_before_a_compaction() -> None:
    summary = {"type": "compaction", "content": "They spoke of cats."}
    messages = [
        {"role": "user", "content": "A very long story."},
        {"role": "assistant", "content": [{"type": "text", "text": "old"}, summary, {"type": "text", "text": "new"}]},
        {"role": "user", "content": "Go on."},
    ]
    prompt = read_prompt({"system": "Be kind.", "messages": messages})
    assert prompt is not None
    assert prompt.texts() == ["Be kind.", "They spoke of cats.", "new", "Go on."]
    summary["content"] = None  # type: ignore[assignment] # a compaction that failed is no compaction
    prompt = read_prompt({"messages": messages})
    assert prompt is not None
    assert prompt.texts() == ["A very long story.", "old", "new", "Go on."]


def test_a_compaction_is_billed_on_top() -> None:
    top = {"input_tokens": 23_000, "output_tokens": 1_000}
    rounds = [{"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}, {"type": "message", **top}]
    assert read_bill(json.dumps({"content": [], "usage": {**top, "iterations": rounds}})) == {
        "prompt_tokens": 203_000,
        "completion_tokens": 4_500,
        "cached_tokens": 0,
        "cache_creation_tokens": 0,
    }
