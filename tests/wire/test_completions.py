"""What a model answered, read from replies of both APIs, and which of several answers came back to the client."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from context_bench.wire.form import Answer, ApiForm, Completion, ToolCall
from context_bench.wire.forms import FORMS, FirstToken, get_form, make_reply, read_completion
from context_bench.wire.openai_chat import OPENAI_CHAT

ANSWER = Answer("Oslo is sunny.", [ToolCall("c1", "get", '{"city": "Oslo", "days": 2}'), ToolCall("c2", "stop")])
CALLS = [("get", '{"city":"Oslo","days":2}'), ("stop", "{}")]


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize("streamed", [False, True])
def test_id_texts_and_calls_of_both_apis(api: str, streamed: bool) -> None:
    form, reply = get_form(api), make_reply(ANSWER, {"model": "m"})
    document = form.write_reply(reply)
    text = b"".join(form.write_events(reply)).decode() if streamed else json.dumps(document)
    read = read_completion(text)
    assert read == Completion(document["id"], ["Oslo is sunny."], CALLS)
    assert read is not None
    assert read.tokens(words) == 3 + 1 + 1


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_first_token_of_a_stream_comes_after_its_opening(form: ApiForm) -> None:
    pieces = list(form.write_events(make_reply(Answer("Oslo is sunny."), {"model": "m"})))
    first = next(place for place, piece in enumerate(pieces) if b"Oslo" in piece)
    halves = [half for piece in pieces for half in (piece[:30], piece[30:])]  # a chunk may end anywhere
    token = FirstToken()
    come = [token.came_with(half) for half in halves]
    assert come == [place > 2 * first for place in range(len(halves))]


def test_a_body_without_lines_is_not_kept_while_its_first_token_is_awaited() -> None:
    token = FirstToken()
    tracemalloc.start()
    for _ in range(64):
        assert not token.came_with(bytes(1 << 18))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1 << 20


def test_several_choices_were_all_written() -> None:
    reply = make_reply(Answer("one two", choices=["three"]), {})
    for text in (json.dumps(OPENAI_CHAT.write_reply(reply)), b"".join(OPENAI_CHAT.write_events(reply)).decode()):
        read = read_completion(text)
        assert read is not None
        assert (read.texts, read.text, read.tokens(words)) == (["one two", "three"], "one two", 3)


def test_a_stream_that_was_cut_says_what_it_said() -> None:
    text = b"".join(OPENAI_CHAT.write_events(make_reply(Answer("one two three four"), {}))).decode()
    read = read_completion(text[: text.index("three") + 3])
    assert read is not None
    assert read.text.startswith("one two")


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "{}", '{"error": {}}', '{"choices": [1, null]}', "data: 5\n\n", 'data: {"choices": [7]}\n\n'],
)
def test_what_is_no_completion(text: str) -> None:
    assert read_completion(text) is None


def test_a_record_is_read_back() -> None:
    completion = Completion("x", ["one", "two"], CALLS)
    record = json.loads(json.dumps(completion.as_dict()))
    assert Completion.from_dict(record) == Completion("x", ["one"], CALLS)
    assert len(Completion("x", ["a" * 10**6]).as_dict()["text"]) == 100_000
