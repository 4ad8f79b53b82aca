"""Streamed chat completions over real HTTP: the same answer as in one piece, with the times of its tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from banks import each_case
from context_bench import OpenAIProxy, evaluate
from context_bench.errors import RequestFailed
from servers import Request, Server, chunk, completion, raw, reply, stream

KEY = "sk-test-0123456789abcdef"
EXAMPLE = {"id": 1, "context": "Paris is in France.", "question": "Where is Paris?", "answer": "France"}
USAGE = {"prompt_tokens": 21, "completion_tokens": 3, "total_tokens": 24}
LAST = b'data: {"choices": [], "usage": %s}\n\n' % json.dumps(USAGE).encode()
DONE = b"data: [DONE]\n\n"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def proxy(server: Server, **options: Any) -> OpenAIProxy:
    return OpenAIProxy(server.url, **{"stream": True, "retry_base_delay": 0.01, "timeout": 10.0, **options})


def answer(*pieces: bytes, **options: Any) -> dict[str, Any]:
    """What a proxy makes of a stream that comes in these pieces."""
    with Server(stream(*pieces, **options)) as server:
        result: dict[str, Any] = proxy(server).process(EXAMPLE)
    assert len(server.chats) == 1
    return result


def test_a_stream_is_asked_for_with_its_usage() -> None:
    with Server(stream(chunk("a", "stop"), DONE)) as server:
        proxy(server).process(EXAMPLE)
    assert server.last["stream"] is True
    assert server.last["stream_options"] == {"include_usage": True}


def test_without_streaming_neither_field_is_sent() -> None:
    with Server(completion()) as server:
        proxy(server, stream=False).process(EXAMPLE)
    assert not {"stream", "stream_options"} & server.last.keys()


def test_the_pieces_make_the_answer() -> None:
    result = answer(chunk("", role="assistant"), chunk("Fra"), chunk("nce"), chunk(None, "stop"), LAST, DONE)
    assert result["response"] == "France"
    metadata = result["metadata"]
    assert {name: metadata[name] for name in USAGE} == USAGE
    assert metadata["finish_reason"] == "stop"
    assert metadata["attempts"] == 1


def test_characters_and_line_ends_cut_by_the_network() -> None:
    whole = (chunk("naïve 日本") + b": ping\n\n" + chunk("語 🎉") + chunk(None, "stop") + DONE).replace(b"\n", b"\r\n")
    pieces = [whole[place : place + 7] for place in range(0, len(whole), 7)]
    assert answer(*pieces)["response"] == "naïve 日本語 🎉"


def test_reasoning_is_no_part_of_the_answer() -> None:
    thought = [chunk(None, reasoning_content="Hmm, Spain? "), chunk(None, reasoning="No."), chunk("", reasoning="..")]
    assert answer(*thought, chunk("France"), chunk(None, "stop"), DONE)["response"] == "France"


def test_only_the_first_of_several_choices_counts() -> None:
    other = b'data: {"choices": [{"index": 1, "delta": {"content": "Spain"}, "finish_reason": "stop"}]}\n\n'
    assert answer(chunk("Fra"), other, chunk("nce", "stop"), DONE)["response"] == "France"


def test_tool_calls_come_in_pieces() -> None:
    def piece(index: int, identity: str | None = None, **function: str) -> bytes:
        return chunk(None, tool_calls=[{"index": index, "id": identity, "function": function}])

    result = answer(
        piece(0, "call_a", name="look", arguments=""),
        piece(0, arguments='{"city": '),
        piece(1, "call_b", name="wait", arguments="{}"),
        piece(0, arguments='"Paris"}'),
        chunk(None, "tool_calls"),
        DONE,
    )
    assert result["response"] == ""
    assert [(call["id"], call["type"], call["function"]) for call in result["tool_calls"]] == [
        ("call_a", "function", {"name": "look", "arguments": '{"city": "Paris"}'}),
        ("call_b", "function", {"name": "wait", "arguments": "{}"}),
    ]
    assert result["metadata"]["time_to_first_token"] > 0


@pytest.mark.parametrize("choices", [b"[]", b"null"])
def test_a_last_chunk_without_choices_has_the_usage(choices: bytes) -> None:
    last = b'data: {"choices": %s, "usage": {"prompt_tokens": 7, "completion_tokens": 2}}\n\n' % choices
    assert answer(chunk("x", "stop"), last, DONE)["metadata"]["prompt_tokens"] == 7


def test_a_server_that_ignores_the_wish() -> None:
    with Server(completion("France", USAGE)) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    assert result["metadata"]["prompt_tokens"] == 21
    assert not {"time_to_first_token", "inter_token_seconds"} & result["metadata"].keys()


@pytest.mark.parametrize(
    "pieces",
    [
        (chunk("France", "stop"),),  # no [DONE]
        (chunk("France"), DONE),  # no finish_reason
        (b"id: 1\n" + chunk("France", "stop"), DONE),
        (b"retry: 10\n\n" + chunk("France", "stop"), DONE),
        (b"\n\n: hello\n\n" + chunk("France", "stop"), DONE.strip()),
    ],
)
def test_every_form_of_a_whole_stream(pieces: tuple[bytes, ...]) -> None:
    assert answer(*pieces)["response"] == "France"


# Times


def test_the_first_token_and_the_pace_of_the_others() -> None:
    pieces = [chunk("", role="assistant"), chunk("a"), chunk("b"), chunk("c"), chunk("d"), chunk(None, "stop"), DONE]
    metadata = answer(*pieces, pause=0.1)["metadata"]
    assert 0.1 <= metadata["time_to_first_token"] < 0.3  # one pause before it
    assert metadata["inter_token_seconds"] == pytest.approx(0.1, abs=0.05)
    assert metadata["request_seconds"] >= 0.6
    assert metadata["time_to_first_token"] < metadata["request_seconds"]


def test_waiting_before_the_stream_counts_to_the_first_token() -> None:
    with Server(lambda request: _late(stream(chunk("a", "stop"), DONE))) as server:
        metadata = proxy(server).process(EXAMPLE)["metadata"]
    assert 0.2 <= metadata["time_to_first_token"] < 0.6


def _late(answer: Any) -> Any:
    answer.delay = 0.2
    return answer


def test_one_token_has_no_pace() -> None:
    metadata = answer(chunk("France", "stop"), DONE)["metadata"]
    assert "time_to_first_token" in metadata
    assert "inter_token_seconds" not in metadata


def test_an_answer_of_nothing_has_no_first_token() -> None:
    result = answer(chunk(None, "stop"), DONE)
    assert result["response"] == ""
    assert "time_to_first_token" not in result["metadata"]


def test_times_are_those_of_the_attempt_that_succeeded() -> None:
    with Server(reply(500), stream(chunk("a", "stop"), DONE)) as server:
        metadata = proxy(server, retry_base_delay=0.6).process(EXAMPLE)["metadata"]
    assert metadata["attempts"] == 2
    assert metadata["time_to_first_token"] < 0.3


def test_the_times_are_on_the_row() -> None:
    with Server(stream(chunk("France"), chunk("."), chunk(None, "stop"), LAST, DONE, pause=0.05)) as server:
        (row,) = evaluate(proxy(server), [EXAMPLE]).rows
    assert row.scores["f1"] == 1.0
    assert 0 < row.metadata["time_to_first_token"] < row.latency
    assert 0.02 < row.metadata["inter_token_seconds"] < 1.0


# A stream that is not whole is tried again


WHOLE = stream(chunk("France"), chunk(None, "stop"), DONE)
CLOSE = {"Connection": "close"}


@each_case(
    "broken",
    [
        stream(chunk("Spa"), ended=False),
        stream(chunk("Spa"), headers=CLOSE),
        stream(chunk("Spa"), chunk("in")[:20], headers=CLOSE),
        stream(chunk("Spa")),
        stream(chunk(None, reasoning_content="Hm"), headers=CLOSE),
        stream(chunk("Spain", "stop"), ended=False),
        stream(b": ping\n\n"),
        raw(b""),
        raw(b'{"choices": [{"mess'),
        stream(b"data: 5\n\n", DONE),
        stream(b'data: {"choices": [5]}\n\n', DONE),
        stream(b'data: {"choices": 5}\n\n', DONE),
        stream(b'data: {"choices": [{"delta": {"tool_calls": [7]}}]}\n\n', DONE),
        stream(chunk("Spa"), b'data: {"error": {"message": "overloaded"}}\n\n', DONE),
    ],
)
def test_a_stream_that_breaks_off_is_tried_again(broken: Any) -> None:
    with Server(broken, WHOLE) as server:
        result = proxy(server).process(EXAMPLE)
    assert result["response"] == "France"
    assert result["metadata"]["attempts"] == len(server.chats) == 2


def test_a_stream_that_always_breaks_off_is_an_error_and_no_score() -> None:
    with Server(stream(chunk("France"), headers=CLOSE)) as server:
        (row,) = evaluate(proxy(server, max_retries=1), [EXAMPLE]).rows
    assert row.error is not None
    assert "ends before the reply does" in row.error
    assert row.scores == {}
    assert row.response == ""


def test_an_error_in_the_stream_is_told() -> None:
    broken = stream(b'data: {"error": {"message": "out of memory"}}\n\n')
    with Server(broken) as server, pytest.raises(RequestFailed, match="out of memory"):
        proxy(server, max_retries=0).process(EXAMPLE)


def test_a_stream_that_stalls_times_out() -> None:
    stalling = stream(chunk("Fra"), chunk("nce", "stop"), pause=1.0)
    with Server(stalling) as server, pytest.raises(RequestFailed, match=r"within 0\.3 s"):
        proxy(server, max_retries=0, timeout=0.3).process(EXAMPLE)


def test_a_key_that_comes_back_in_pieces_is_hidden() -> None:
    pieces = [chunk(f"it is {KEY[:9]}"), chunk(KEY[9:]), chunk(" or so", "stop"), DONE]
    cut = chunk(f"once more {KEY}")
    with Server(stream(cut[:90], cut[90:], *pieces)) as server:
        result = proxy(server, api_key=KEY).process(EXAMPLE)
    assert KEY not in str(result)
    assert result["response"] == "once more ***it is *** or so"


# A model that wants max_completion_tokens

REFUSAL = {
    "error": {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
}


def choosy(request: Request) -> Any:
    return reply(400, REFUSAL) if "max_tokens" in request.json else completion("France", delay=0.02)


def test_the_limit_is_sent_as_the_model_wants_it_and_learned_once() -> None:
    with Server(choosy) as server:
        target = proxy(server, stream=False, max_tokens=50)
        first = target.process(EXAMPLE)
        target.process(EXAMPLE)
    assert first["metadata"]["attempts"] == 2
    assert len(server.chats) == 3
    assert [chat.json.get("max_completion_tokens") for chat in server.chats] == [None, 50, 50]
    assert "max_tokens" not in server.last


def test_many_at_once_all_learn_it() -> None:
    with Server(lambda request: _slow(choosy(request))) as server:
        result = evaluate(
            proxy(server, stream=False, max_tokens=50), [{**EXAMPLE, "id": n} for n in range(16)], max_workers=8
        )
    assert [row.error for row in result.rows] == [None] * 16


def _slow(answer: Any) -> Any:
    answer.delay = 0.1
    return answer


def test_without_a_limit_of_ours_the_refusal_is_the_users_to_read() -> None:
    with Server(reply(400, REFUSAL)) as server:
        with pytest.raises(RequestFailed, match="max_completion_tokens"):
            proxy(server, stream=False).process(EXAMPLE)
        with pytest.raises(RequestFailed, match="max_completion_tokens"):
            proxy(server, stream=False, extra_body={"max_tokens": 5}).process(EXAMPLE)
    assert len(server.chats) == 2


def test_a_server_that_refuses_both_ends_the_matter() -> None:
    with Server(reply(400, REFUSAL)) as server, pytest.raises(RequestFailed, match="400"):
        proxy(server, max_tokens=50).process(EXAMPLE)
    assert len(server.chats) == 2


def test_a_stream_is_another_fingerprint() -> None:
    one, two = (OpenAIProxy("http://127.0.0.1:1", stream=stream) for stream in (True, False))
    assert one.fingerprint != two.fingerprint


@pytest.mark.parametrize("indexes", [(0, "1"), ("0", 1), (None, 0), (1, 0.5), (True, "x")])
def test_tool_calls_whose_indexes_are_of_mixed_types_are_read_in_their_order(indexes: tuple[Any, Any]) -> None:
    pieces = [
        chunk(None, tool_calls=[{"index": index, "id": f"c{place}", "function": {"name": name, "arguments": "{}"}}])
        for place, (index, name) in enumerate(zip(indexes, ("look", "stop")))
    ]
    with Server(stream(*pieces, chunk(None, "tool_calls"), DONE)) as server:
        result = OpenAIProxy(server.url, stream=True).process({"id": 1, "context": "a", "question": "b"})
    assert [(call["id"], call["function"]["name"]) for call in result["tool_calls"]] == [("c0", "look"), ("c1", "stop")]
