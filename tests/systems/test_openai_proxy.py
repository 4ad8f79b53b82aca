"""A chat completions server over real HTTP: what is sent, what is made of the reply, and where the key goes."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from banks import each_case
from context_bench import OpenAIProxy, evaluate
from context_bench.errors import BadOutput, ConnectionFailed, RequestFailed, UsageError
from context_bench.http import Secret
from servers import Server, completion, cut, free_port, raw, reply
from timing import depends_on_time

KEY = "sk-test-0123456789abcdef"
EXAMPLE = {"id": 1, "context": "Paris is in France.", "question": "Where is Paris?", "answer": "France"}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def proxy(server: Server, **options: Any) -> OpenAIProxy:
    return OpenAIProxy(server.url, **{"retry_base_delay": 0.01, "timeout": 10.0, **options})


def sent(example: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The body that reaches the server for an example."""
    with Server() as server:
        proxy(server, **options).process(example)
    body: dict[str, Any] = server.last
    return body


# What is sent


def test_the_context_is_the_system_message_and_the_question_the_users() -> None:
    body = sent(EXAMPLE, model="m-1")
    assert body["model"] == "m-1"
    assert body["messages"] == [
        {"role": "system", "content": "Paris is in France."},
        {"role": "user", "content": "Where is Paris?"},
    ]
    assert body.keys() <= {"model", "messages", "temperature"}


def test_the_context_before_the_question() -> None:
    (message,) = sent({**EXAMPLE, "framing": "user"})["messages"]
    assert message == {"role": "user", "content": "Paris is in France.\n\nWhere is Paris?"}


def test_the_context_as_the_result_of_a_tool() -> None:
    user, call, result = sent({**EXAMPLE, "framing": "tool"})["messages"]
    assert user == {"role": "user", "content": "Where is Paris?"}
    assert call["role"] == "assistant"
    (made,) = call["tool_calls"]
    assert made["type"] == "function"
    assert json.loads(made["function"]["arguments"]) == {}
    assert result == {"role": "tool", "tool_call_id": made["id"], "content": "Paris is in France."}


def test_an_unknown_framing_is_an_error_of_that_row() -> None:
    with Server() as server:
        (row,) = evaluate(proxy(server), [{**EXAMPLE, "framing": "sideways"}]).rows
    assert row.error is not None
    assert "'sideways'" in row.error
    assert server.chats == []


def test_a_conversation_is_sent_as_it_is() -> None:
    turns = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "result"},
    ]
    assert sent({**EXAMPLE, "turns": turns})["messages"] == turns


def test_tools_options_and_instruction() -> None:
    body = sent({**EXAMPLE, "tools": TOOLS, "choices": ["Spain", "France"], "instruction": "Answer with a letter."})
    assert body["tools"] == TOOLS
    assert body["messages"][1]["content"] == "Where is Paris?\n\nA. Spain\nB. France\n\nAnswer with a letter."


def test_the_instruction_of_a_dataset_reaches_the_model() -> None:
    with Server() as server:
        evaluate(proxy(server), [{**EXAMPLE, "dataset": "needle"}])
    assert server.last["messages"][1]["content"].endswith("Answer with the value only.")


def test_a_system_prompt_comes_before_the_context() -> None:
    messages = sent(EXAMPLE, system_prompt="You are a clerk.")["messages"]
    assert [each["role"] for each in messages] == ["system", "user"]
    assert messages[0]["content"].startswith("You are a clerk.")
    assert messages[0]["content"].endswith("Paris is in France.")


def test_extra_fields_have_the_last_word() -> None:
    body = sent(EXAMPLE, extra_body={"temperature": 0, "model": "other", "seed": 7})
    assert (body["temperature"], body["model"], body["seed"]) == (0, "other", 7)


def test_messages_of_ones_own() -> None:
    messages = [{"role": "user", "content": "mine"}]
    assert sent(EXAMPLE, build_messages=lambda example: messages)["messages"] == messages


@pytest.mark.parametrize("fields", [{"context": ""}, {"question": ""}, {"context": "", "question": ""}])
def test_no_message_is_sent_without_need(fields: dict[str, Any]) -> None:
    messages = sent({**EXAMPLE, **fields})["messages"]
    assert len(messages) == 1
    assert messages[0]["role"] == "user"


def test_the_gold_answer_is_never_sent() -> None:
    example = {**EXAMPLE, "answer": "GOLD", "answers": ["GOLD"], "evidence": ["GOLD"], "correct_letter": "GOLD"}
    example |= {"meta": {"x": "GOLD"}, "relevant_ids": ["GOLD"], "test": "GOLD"}
    for framing in ("system", "user", "tool"):
        assert "GOLD" not in json.dumps(sent({**example, "framing": framing}))


@pytest.mark.parametrize(
    "text", ["naïve 日本語 🎉", "line\nend\ttab\x00nul", "<|endoftext|>", "\u2028\u202e", "x" * 300_000]
)
def test_any_text_arrives_as_it_is(text: str) -> None:
    assert sent({**EXAMPLE, "context": text})["messages"][0]["content"] == text


def test_a_lone_surrogate_is_replaced() -> None:
    assert sent({**EXAMPLE, "context": "a\ud800b"})["messages"][0]["content"] == "a?b"


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1//"])
def test_the_version_may_be_named_or_not(path: str) -> None:
    with Server() as server:
        OpenAIProxy(server.url + path).process(EXAMPLE)
    assert server.chats[0].path == "/v1/chat/completions"


def test_a_path_before_the_version_is_kept() -> None:
    with Server() as server:
        OpenAIProxy(f"{server.url}/team/a").process(EXAMPLE)
        OpenAIProxy(f"{server.url}/team/a/v1").process(EXAMPLE)
    assert [chat.path for chat in server.chats] == ["/team/a/v1/chat/completions"] * 2


# What is made of the reply


def test_the_reply_with_its_usage_and_timings() -> None:
    usage = {"prompt_tokens": 21, "completion_tokens": 3, "total_tokens": 24, "details": {"cached": 5}}
    with Server(completion("France", usage)) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    metadata = result["metadata"]
    assert (metadata["prompt_tokens"], metadata["completion_tokens"], metadata["total_tokens"]) == (21, 3, 24)
    assert metadata["attempts"] == 1
    assert 0 < metadata["request_seconds"] < 5


def test_a_row_of_a_proxy() -> None:
    with Server(completion("in France", {"prompt_tokens": 9999})) as server:
        result = evaluate(proxy(server), [EXAMPLE], tokenizer=lambda text: len(text.split()))
    (row,) = result.rows
    assert row.system == f"127.0.0.1:{server.port}"
    assert (row.input_tokens, row.output_tokens, row.metadata["response_tokens"]) == (4 + 3, 2, 2)
    assert row.metadata["prompt_tokens"] == 9999
    assert row.upstream_tokens is None
    assert row.scores["f1"] == pytest.approx(2 / 3)
    assert result.config["returns"] == {row.system: "response"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ("\ud83c\udf89", "🎉"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}], "ab"),
        ([], ""),
    ],
)
def test_every_form_of_content(content: Any, text: str) -> None:
    with Server(completion(content)) as server:
        assert proxy(server).process(EXAMPLE)["response"] == text


def test_tool_calls_are_kept() -> None:
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}]
    with Server(completion(None, tool_calls=calls)) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["tool_calls"] == calls
    assert result["response"] == ""


@each_case(
    "document",
    [
        {},
        [],
        "text",
        None,
        3,
        {"choices": []},
        {"choices": None},
        {"choices": [{}]},
        {"choices": [{"text": "old"}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": "text"}]},
        {"choices": {"0": {}}},
        {"error": {"message": "overloaded"}},
    ],
)
def test_json_that_is_no_completion_is_shown(document: Any) -> None:
    with Server(raw(json.dumps(document).encode())) as server:
        with pytest.raises(BadOutput, match="not a chat completion"):
            proxy(server).process(EXAMPLE)
        (row,) = evaluate(proxy(server), [EXAMPLE], preflight=False).rows
    assert row.error is not None
    assert row.scores == {}


@pytest.mark.parametrize("usage", [None, [], [1], "many", 7, {"prompt_tokens": "21"}, {"prompt_tokens": None}])
def test_strange_usage_does_not_cost_the_answer(usage: Any) -> None:
    with Server(completion("France", usage)) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    assert "prompt_tokens" not in result["metadata"]


def test_a_hostile_reply_does_no_harm_to_the_report() -> None:
    hostile = "\x1b[2J| a | b |\n</script>\ud800\x00"
    document = {"choices": [{"message": {"role": "assistant", "content": hostile}}]}
    with Server(raw(json.dumps(document).encode())) as server:
        result = evaluate(proxy(server), [EXAMPLE])
    assert json.loads(result.to_json())["rows"]


# Conversations


def test_each_user_turn_gets_its_reply_in_sight_of_all_before() -> None:
    with Server(completion("one", {"prompt_tokens": 5}), completion("two", {"prompt_tokens": 9})) as server:
        turns = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
        replies = proxy(server).process_conversation(turns)
        (row,) = evaluate(proxy(server), [{**EXAMPLE, "turns": turns}]).rows
    assert [(each["role"], each["content"]) for each in replies] == [("assistant", "one"), ("assistant", "two")]
    assert server.chats[0].json["messages"] == turns[:2]
    assert server.chats[1].json["messages"] == [*turns[:2], {"role": "assistant", "content": "one"}, turns[2]]
    assert row.response == "two"
    assert len(server.chats) == 4


def test_turns_that_have_their_reply_are_not_asked_again() -> None:
    turns = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "known"},
        {"role": "user", "content": "b"},
    ]
    with Server(completion("new")) as server:
        assert [each["content"] for each in proxy(server).process_conversation(turns)] == ["new"]
    assert server.last["messages"] == turns


# Failures


def test_what_the_server_says_is_in_the_row() -> None:
    with Server(reply(404, {"error": {"message": "The model `x` does not exist"}})) as server:
        (row,) = evaluate(proxy(server), [EXAMPLE], preflight=False).rows
    assert row.error is not None
    assert "404" in row.error
    assert "The model `x` does not exist" in row.error
    assert len(server.chats) == 1


def test_a_fault_that_passes_leaves_no_trace_but_its_facts() -> None:
    with Server(reply(500), completion("France")) as server:
        (row,) = evaluate(proxy(server, retry_base_delay=0.2), [EXAMPLE]).rows
    assert row.error is None
    assert row.metadata["attempts"] == 2
    assert row.metadata["waited"] >= 0.1


@depends_on_time("latency is what the clock on the wall says")
def test_waiting_for_a_rate_limit_is_no_latency() -> None:
    with Server(reply(429, headers={"Retry-After": "0.5"}), completion("France")) as server:
        (row,) = evaluate(proxy(server, max_retries=1), [EXAMPLE]).rows
    assert row.error is None
    assert row.latency < 0.3
    assert row.metadata["waited"] >= 0.45


def test_absurd_usage_does_not_hold_a_run_up() -> None:
    """2e18 tokens would take 33 billion minutes at this rate."""
    usage = {"prompt_tokens": 2 * 10**18, "completion_tokens": 1, "total_tokens": 2 * 10**18 + 1}
    before = time.monotonic()
    with Server(completion("France", usage=usage)) as server, pytest.warns(UserWarning, match="impossible token usage"):
        rows = evaluate(proxy(server, max_tpm=60_000_000), [{**EXAMPLE, "id": n} for n in range(4)]).rows
    assert time.monotonic() - before < 30
    assert [row.error for row in rows] == [None] * 4
    assert {row.metadata["completion_tokens"] for row in rows} == {1}


@depends_on_time("latency is what the clock on the wall says")
def test_the_time_of_the_model_is_latency() -> None:
    with Server(completion("France", delay=0.2)) as server:
        (row,) = evaluate(proxy(server), [EXAMPLE]).rows
    assert 0.2 <= row.latency < 10
    assert row.metadata["request_seconds"] == pytest.approx(row.latency, abs=0.1)


def test_a_cut_connection_is_tried_again() -> None:
    with Server(cut(10), cut(), completion("France")) as server:
        assert proxy(server).process(EXAMPLE)["response"] == "France"


def test_the_attempts_that_are_told_are_those_that_were_made() -> None:
    with Server(reply(500), completion(), cut(10), completion()) as server:
        rows = evaluate(proxy(server), [{**EXAMPLE, "id": n} for n in range(2)]).rows
    assert [row.metadata["attempts"] for row in rows] == [2, 2]
    assert len(server.chats) == 4


def test_a_dead_server_costs_seconds_not_minutes() -> None:
    dead = OpenAIProxy(f"http://127.0.0.1:{free_port()}")
    before = time.monotonic()
    result = evaluate(dead, [{**EXAMPLE, "id": number} for number in range(50)], preflight=False)
    assert time.monotonic() - before < 30
    assert all(row.error and "is down" in row.error for row in result.rows)
    assert result.summary[dead.name]["error_rate"] == 1.0


def test_direct_use_of_a_dead_server_raises() -> None:
    dead = OpenAIProxy(f"http://127.0.0.1:{free_port()}", max_retries=1, retry_base_delay=0.01)
    with pytest.raises(ConnectionFailed):
        dead.process(EXAMPLE)


def test_a_redirect_is_not_followed_and_takes_no_key_along() -> None:
    with Server() as elsewhere, Server(reply(308, headers={"Location": elsewhere.url})) as server:
        with pytest.raises(RequestFailed, match="redirect"):
            proxy(server, api_key=KEY).process(EXAMPLE)
        assert elsewhere.requests == []
        assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"


def test_direct_use_inside_a_running_loop() -> None:
    async def main() -> Any:
        target = proxy(server)
        return target.process(EXAMPLE)["response"], (await target.aprocess(EXAMPLE))["response"]

    with Server(completion("France")) as server:
        assert asyncio.run(main()) == ("France", "France")


# Keys


def test_the_key_of_the_environment_goes_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server() as server:
        proxy(server).process(EXAMPLE)
    assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"


def test_without_a_key_there_is_no_header() -> None:
    with Server() as server:
        proxy(server).process(EXAMPLE)
    assert "authorization" not in server.chats[0].headers


def test_the_probe_carries_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server() as server:
        evaluate(proxy(server), [EXAMPLE])
    assert [r for r in server.requests if r.method == "GET" and "authorization" in r.headers] == []


def test_no_key_over_plain_http_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    remote = OpenAIProxy("http://api.example.com")
    assert KEY not in str(vars(remote.endpoint))
    assert not any(isinstance(value, Secret) for value in remote.endpoint._headers.values())


def test_the_key_is_nowhere_to_be_seen() -> None:
    echo = reply(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    with Server(completion(f"your key is {KEY}"), echo, completion("fine")) as server:
        target = proxy(server, api_key=KEY)
        result = evaluate(target, [{**EXAMPLE, "id": number} for number in range(3)])
        assert [chat.headers["authorization"] for chat in server.chats] == [f"Bearer {KEY}"] * 3
    assert [row.error is None for row in result.rows] == [True, False, True]
    for text in (repr(target), str(vars(target)), str(vars(target.endpoint)), repr(result), target.fingerprint):
        assert KEY not in text
    assert KEY not in result.to_json()


# What makes two proxies differ


def test_the_fingerprint_is_what_makes_answers_differ() -> None:
    base = OpenAIProxy("http://127.0.0.1:1", "m")
    others = [
        OpenAIProxy("http://127.0.0.1:2", "m"),
        OpenAIProxy("http://127.0.0.1:1", "n"),
        OpenAIProxy("http://127.0.0.1:1", "m", system_prompt="s"),
        OpenAIProxy("http://127.0.0.1:1", "m", extra_body={"temperature": 1}),
        OpenAIProxy("http://127.0.0.1:1", "m", build_messages=lambda example: []),
    ]
    assert len({each.fingerprint for each in (base, *others)}) == 6
    same = OpenAIProxy("http://127.0.0.1:1/", "m", name="other", api_key=KEY, timeout=5.0, max_retries=9)
    assert same.fingerprint == base.fingerprint


def test_two_message_builders_of_one_name_differ() -> None:
    def builder(text: str) -> Any:
        return lambda example: [{"role": "user", "content": text}]

    one, two = (OpenAIProxy("http://127.0.0.1:1", build_messages=builder(text)) for text in "ab")
    assert one.fingerprint is None or one.fingerprint != two.fingerprint  # None: its answers are not kept


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://user:pw@localhost"])
def test_what_is_no_server(url: str) -> None:
    with pytest.raises(UsageError):
        OpenAIProxy(url)


@pytest.mark.parametrize(
    "wrong",
    [{"timeout": 0}, {"timeout": -1}, {"max_retries": -1}, {"retry_base_delay": -1}, {"max_rpm": 0}, {"timeout": "x"}],
)
def test_impossible_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        OpenAIProxy("http://127.0.0.1:1", **wrong)
