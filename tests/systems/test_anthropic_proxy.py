"""Anthropic's messages API over real HTTP: what is sent, what is made of the reply, keys, and money."""

from __future__ import annotations

import json
from typing import Any

import pytest

from banks import each_case
from context_bench import evaluate
from context_bench.errors import BadOutput, ConnectionFailed, RequestFailed, UsageError
from context_bench.pricing import Price, Prices
from context_bench.systems import AnthropicProxy
from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from context_bench.wire.form import Answer, ToolCall
from context_bench.wire.forms import make_reply
from servers import Server, free_port, message, raw, reply, stream

KEY = "sk-ant-0123456789abcdef"
EXAMPLE = {"id": 1, "context": "Paris is in France.", "question": "Where is Paris?", "answer": "France"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def proxy(server: Server, **options: Any) -> AnthropicProxy:
    return AnthropicProxy(server.url, **{"retry_base_delay": 0.01, "timeout": 10.0, **options})


def sent(example: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The body that reaches the server for an example."""
    with Server(message()) as server:
        proxy(server, **options).process(example)
    body: dict[str, Any] = server.last
    return body


# What is sent


def test_the_context_is_the_system_text_and_the_question_the_users() -> None:
    body = sent(EXAMPLE, model="m-1")
    assert body == {
        "model": "m-1",
        "max_tokens": 1024,
        "system": "Paris is in France.",
        "messages": [{"role": "user", "content": "Where is Paris?"}],
        "temperature": 0.0,
    }


def test_a_system_prompt_comes_before_the_context() -> None:
    assert sent(EXAMPLE, system_prompt="You are a clerk.")["system"] == "You are a clerk.\n\nParis is in France."


def test_the_context_before_the_question() -> None:
    body = sent({**EXAMPLE, "framing": "user"})
    assert "system" not in body
    assert body["messages"] == [{"role": "user", "content": "Paris is in France.\n\nWhere is Paris?"}]


def test_the_context_as_the_result_of_a_tool() -> None:
    body = sent({**EXAMPLE, "framing": "tool"}, system_prompt="Be brief.")
    assert body["system"] == "Be brief."
    question, call, result = body["messages"]
    assert question == {"role": "user", "content": "Where is Paris?"}
    (use,) = call["content"]
    assert (call["role"], use["type"], use["input"]) == ("assistant", "tool_use", {})
    block = {"type": "tool_result", "tool_use_id": use["id"], "content": "Paris is in France."}
    assert result == {"role": "user", "content": [block]}
    # The API refuses tool blocks whose tool it was not told of; the model is not to call it again.
    assert [tool["name"] for tool in body["tools"]] == [use["name"]]
    assert body["tools"][0]["input_schema"]["type"] == "object"
    assert body["tool_choice"] == {"type": "none"}


def test_tools_in_openais_form_are_converted() -> None:
    function = {"name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": True}
    tools = [{"type": "function", "function": function}, {"type": "function", "function": {"name": "bare"}}]
    tools += [{"name": "flat", "parameters": SCHEMA}]
    body = sent({**EXAMPLE, "tools": tools})
    assert body["tools"][0] == {"name": "look", "description": "Looks.", "input_schema": SCHEMA}
    assert [tool["name"] for tool in body["tools"]] == ["look", "bare", "flat"]
    assert body["tools"][1]["input_schema"] == {"type": "object", "properties": {}}
    assert body["tools"][2]["input_schema"] == SCHEMA
    assert "tool_choice" not in body


def test_tools_in_anthropics_form_are_left_alone() -> None:
    tools = [{"name": "look", "input_schema": SCHEMA}, {"type": "web_search_20250305", "name": "web_search"}]
    assert sent({**EXAMPLE, "tools": tools})["tools"] == tools


def test_a_conversation_in_openais_form() -> None:
    def call(identity: str, arguments: Any) -> dict[str, Any]:
        return {"id": identity, "type": "function", "function": {"name": "look", "arguments": arguments}}

    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Very brief."}]},
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "Let me see.", "tool_calls": [call("a", '{"city": "Paris"}'), call("b", "")]},
        {"role": "tool", "tool_call_id": "a", "content": "France"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "nothing"}]},
        {"role": "assistant", "content": None, "tool_calls": [call("c", {"city": "Rome"})]},
        {"role": "tool", "tool_call_id": "c", "content": "Italy"},
        {"role": "user", "content": [{"type": "text", "text": "So?"}]},
    ]
    body = sent({**EXAMPLE, "turns": turns})
    assert body["system"] == "Be brief.\n\nVery brief."
    assert body["messages"] == [
        {"role": "user", "content": "Where?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",  # the API wants all results of a step in the message after it
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "France"},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "nothing"}]},
            ],
        },
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {"city": "Rome"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "Italy"}]},
        {"role": "user", "content": [{"type": "text", "text": "So?"}]},
    ]
    assert [tool["name"] for tool in body["tools"]] == ["look"]


def test_a_conversation_in_anthropics_own_form() -> None:
    turns = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "France"}]},
    ]
    assert sent({**EXAMPLE, "turns": turns})["messages"] == turns


@pytest.mark.parametrize("arguments", ["{", "[1]", "5", [1]])
def test_arguments_that_are_no_object_are_an_error_of_that_row(arguments: Any) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": arguments}}
    turns = [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    with Server(message()) as server:
        (row,) = evaluate(proxy(server), [{**EXAMPLE, "turns": turns}]).rows
    assert row.error == "UsageError: the arguments of the call to 'look' are not a JSON object"
    assert server.chats == []


def test_each_user_turn_gets_its_reply() -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    usage = {"input_tokens": 5, "cache_read_input_tokens": 10, "output_tokens": 2}
    with Server(message("one", usage), message("two", usage)) as server:
        (row,) = evaluate(proxy(server), [{**EXAMPLE, "turns": turns}]).rows
    assert row.response == "two"
    assert server.chats[1].json["messages"] == [turns[0], {"role": "assistant", "content": "one"}, turns[1]]
    assert (row.metadata["prompt_tokens"], row.metadata["cached_tokens"]) == (30, 20)  # both replies together


def test_extra_fields_have_the_last_word() -> None:
    body = sent(EXAMPLE, extra_body={"temperature": None, "max_tokens": 5, "top_k": 3})
    assert "temperature" not in body
    assert (body["max_tokens"], body["top_k"]) == (5, 3)
    assert "temperature" not in sent(EXAMPLE, temperature=None)


def test_the_gold_answer_is_never_sent() -> None:
    example = {**EXAMPLE, "answer": "GOLD", "answers": ["GOLD"], "evidence": ["GOLD"], "correct_letter": "GOLD"}
    for framing in ("system", "user", "tool"):
        assert "GOLD" not in json.dumps(sent({**example, "framing": framing}))


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/"])
def test_the_version_may_be_named_or_not(path: str) -> None:
    with Server(message()) as server:
        AnthropicProxy(server.url + path).process(EXAMPLE)
    assert server.chats[0].path == "/v1/messages"


def test_the_headers_of_the_api() -> None:
    with Server(message()) as server:
        proxy(server, api_key=KEY, headers={"anthropic-beta": "context-1m"}).process(EXAMPLE)
    headers = server.chats[0].headers
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-beta"] == "context-1m"
    assert "authorization" not in headers


def test_a_header_of_the_users_replaces_ours_in_any_case() -> None:
    with Server(message()) as server:
        target = proxy(server, api_key=KEY, headers={"X-API-KEY": "mine", "Anthropic-Version": "2099-01-01"})
        target.process(EXAMPLE)
    headers = server.chats[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == ("mine", "2099-01-01")


# What is made of the reply


def test_the_reply_with_its_usage() -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 7,
        "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": 200},
    }
    with Server(message("France", usage)) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    metadata = result["metadata"]
    assert metadata["prompt_tokens"] == 3210
    assert metadata["completion_tokens"] == 7
    assert metadata["total_tokens"] == 3217
    assert (metadata["cached_tokens"], metadata["cache_creation_tokens"]) == (3000, 200)
    assert metadata["finish_reason"] == "end_turn"
    assert metadata["attempts"] == 1
    assert 0 < metadata["request_seconds"] < 5


def test_cache_reads_are_cheaper_and_cache_writes_are_input() -> None:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000}
    prices = Prices({"m-1": Price(input=3.0, output=15.0, cached_input=0.3)})
    with Server(message("France", {**usage, "output_tokens": 7})) as server:
        (row,) = evaluate(proxy(server, model="m-1"), [EXAMPLE], prices=prices).rows
    assert row.metadata["cost_usd"] == pytest.approx((3.0 * 210 + 0.3 * 3000 + 15.0 * 7) / 1e6)


def test_nulls_in_the_usage_count_nothing() -> None:
    usage = {"input_tokens": 10, "cache_creation_input_tokens": None, "cache_read_input_tokens": None}
    with Server(message("x", {**usage, "output_tokens": 2})) as server:
        metadata = proxy(server).process(EXAMPLE)["metadata"]
    assert (metadata["prompt_tokens"], metadata["total_tokens"], metadata["cached_tokens"]) == (10, 12, 0)


@pytest.mark.parametrize("usage", [[1], "many", {"input_tokens": "7"}, {"output_tokens": 7}, {"input_tokens": None}])
def test_strange_usage_does_not_cost_the_answer(usage: Any) -> None:
    with Server(message("France", usage)) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    assert "prompt_tokens" not in result["metadata"]


def test_thinking_is_no_part_of_the_answer() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Spain?", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Fra"},
        {"type": "text", "text": "nce"},
    ]
    with Server(message(content=blocks)) as server:
        assert proxy(server).process(EXAMPLE)["response"] == "France"


def test_tool_calls_come_in_openais_form() -> None:
    blocks = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t", "name": "look", "input": {"n": 1}}]
    with Server(message(content=blocks, stop_reason="tool_use")) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "I look."
    (call,) = result["tool_calls"]
    assert (call["id"], call["type"], call["function"]["name"]) == ("t", "function", "look")
    assert json.loads(call["function"]["arguments"]) == {"n": 1}
    assert result["metadata"]["finish_reason"] == "tool_use"


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "something new"])
def test_a_reply_of_nothing_is_an_empty_answer_that_says_why(reason: str) -> None:
    with Server(message(None, stop_reason=reason)) as server:
        (row,) = evaluate(proxy(server), [EXAMPLE]).rows
    assert row.error is None
    assert row.scores["f1"] == 0.0
    assert row.metadata["finish_reason"] == reason


@each_case(
    "document",
    [
        {},
        [],
        "text",
        None,
        {"content": None},
        {"content": "text"},
        {"content": [{}]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": None}]},
        {"content": [{"type": "tool_use", "id": "x"}]},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"choices": [{"message": {"content": "the wrong API"}}]},
    ],
)
def test_json_that_is_no_message_is_shown(document: Any) -> None:
    with Server(raw(json.dumps(document).encode())) as server, pytest.raises(BadOutput, match="is not a message"):
        proxy(server).process(EXAMPLE)


# Failures


def error(status: int, kind: str, text: str, **headers: str) -> Any:
    return reply(status, {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"}, headers)


def test_what_the_server_says_is_in_the_row() -> None:
    with Server(error(400, "invalid_request_error", "max_tokens: Field required")) as server:
        (row,) = evaluate(proxy(server), [EXAMPLE]).rows
    assert row.error is not None
    assert "400: max_tokens: Field required" in row.error
    assert len(server.chats) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_what_passes_is_tried_again(status: int) -> None:
    with Server(error(status, "overloaded_error", "Overloaded"), message("France")) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    assert result["metadata"]["attempts"] == 2


def test_an_overload_that_stays_is_told_as_one() -> None:
    refusal = pytest.raises(RequestFailed, match="529: Overloaded")
    with Server(error(529, "overloaded_error", "Overloaded")) as server, refusal as raised:
        proxy(server, max_retries=1).process(EXAMPLE)
    assert raised.value.status == 529
    assert len(server.chats) == 2


def test_a_dead_server() -> None:
    dead = AnthropicProxy(f"http://127.0.0.1:{free_port()}", max_retries=1, retry_base_delay=0.01)
    with pytest.raises(ConnectionFailed):
        dead.process(EXAMPLE)
    (row,) = evaluate(dead, [EXAMPLE], preflight=False).rows
    assert row.error is not None
    assert "is down" in row.error


# Keys


def test_the_key_of_the_environment_goes_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-this-server")
    with Server(message()) as server:
        proxy(server).process(EXAMPLE)
    assert server.chats[0].headers["x-api-key"] == KEY
    assert "sk-not-for-this-server" not in str(server.chats[0].headers)


@pytest.mark.parametrize(("url", "goes"), [("http://api.example.com", False), ("https://api.example.com", True)])
def test_where_the_key_of_the_environment_goes(monkeypatch: pytest.MonkeyPatch, url: str, goes: bool) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert ("x-api-key" in AnthropicProxy(url).endpoint._headers) is goes


def test_a_given_key_goes_where_the_user_says_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="plain http"):
        remote = AnthropicProxy("http://api.example.com", api_key=KEY)
    assert "x-api-key" in remote.endpoint._headers


def test_the_key_is_nowhere_to_be_seen() -> None:
    echo = error(401, "authentication_error", f"invalid x-api-key: {KEY}")
    with Server(message(f"your key is {KEY}"), echo) as server:
        target = proxy(server, api_key=KEY, headers={"X-Team": "team-secret-0123"})
        result = evaluate(target, [{**EXAMPLE, "id": number} for number in range(2)])
    assert [row.error is None for row in result.rows] == [True, False]
    for text in (repr(target), str(vars(target)), str(vars(target.endpoint)), target.fingerprint, result.to_json()):
        assert text is not None
        assert KEY not in text
        assert "team-secret-0123" not in text


# Streams


def test_a_stream_is_put_together_and_timed() -> None:
    made = make_reply(Answer("Oslo is sunny.", [ToolCall("c1", "get", '{"days":2}')], usage=(7, 3)), {"model": "m"})
    pieces = tuple(ANTHROPIC_MESSAGES.write_events(made))
    with Server(stream(*pieces)) as server:
        answer = proxy(server, stream=True).process(EXAMPLE)
        assert server.last["stream"] is True
    assert answer["response"] == "Oslo is sunny."
    assert answer["tool_calls"][0]["function"] == {"name": "get", "arguments": '{"days":2}'}
    told = answer["metadata"]
    assert (told["prompt_tokens"], told["completion_tokens"], told["finish_reason"]) == (7, 3, "tool_use")
    assert told["time_to_first_token"] >= 0


# What makes two of them differ


def test_the_fingerprint_is_what_makes_answers_differ() -> None:
    def made(url: str = "http://127.0.0.1:1", model: str = "m", **options: Any) -> str | None:
        return AnthropicProxy(url, model, **options).fingerprint

    different = [
        made(),
        made("http://127.0.0.1:2"),
        made(model="n"),
        made(system_prompt="s"),
        made(temperature=1.0),
        made(temperature=None),
        made(max_tokens=5),
        made(extra_body={"top_k": 1}),
        made(headers={"anthropic-beta": "a"}),
        made(headers={"anthropic-beta": "b"}),
        made(headers={"anthropic-version": "a"}),
    ]
    assert len(set(different)) == len(different)


def test_what_changes_no_answer_changes_no_fingerprint() -> None:
    base = AnthropicProxy("http://127.0.0.1:1", "m", headers={"x-mode": "a"}).fingerprint
    for same in (
        {"name": "other", "api_key": KEY, "timeout": 5.0, "max_retries": 9, "max_rpm": 5, "deadline": 9.0},
        {"headers": {"X-Mode": "a"}},
        {"headers": {"x-mode": "a", "X-Api-Key": KEY, "Authorization": "Bearer x", "Cookie": "c", "api-key": "k"}},
    ):
        assert AnthropicProxy("http://127.0.0.1:1", "m", **{"headers": {"x-mode": "a"}, **same}).fingerprint == base


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": 0}, {"max_retries": -1}, {"retry_base_delay": -1}, {"max_rpm": 0}, {"max_tokens": 0}, {"deadline": 0}],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        AnthropicProxy("http://127.0.0.1:1", **wrong)
