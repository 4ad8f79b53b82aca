"""What a row learns from the tap; every value worked out by hand, a token being a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench.traffic.exchanges import read_exchanges
from context_bench.traffic.row_facts import measure_row
from context_bench.utils.tokens import Tokenizer


def words(text: str) -> int:
    return len(text.split())


def body(*texts: str, tools: list[Any] | None = None) -> str:
    document: dict[str, Any] = {"messages": [{"role": "user", "content": text} for text in texts]}
    return json.dumps({**document, "tools": tools} if tools else document)


def call(text: str, started: float = 0.0, ended: float | None = 1.0, **more: Any) -> dict[str, Any]:
    record = {"path": "/v1/chat/completions", "body": text, "headers": {}, "status": 200, "reply": ""}
    return {**record, "started": started, "first": None, "ended": ended, **more}


def exchange(sent: str, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    record = {"path": "/v1/chat/completions", "sent": sent, "seconds": 2.0, "first_token": None, "claims": {}}
    return {**record, "calls": list(calls), "earlier_calls": 0, "unmatched": 0, **more}


TEN = "a b c d e f g h i j"
EMPTY = '{"id": "1", "choices": [{"message": {"content": ""}}]}'


def said(text: str, name: str = "") -> str:
    """A reply with an id of its own."""
    return json.dumps({"id": name or text, "choices": [{"message": {"role": "assistant", "content": text}}]})


def returned(text: str, name: str = "") -> dict[str, Any]:
    """What came back to the client, as the record keeps it."""
    return {"returned": {"id": name or text, "text": text, "calls": []}}


def measured(records: list[dict[str, Any]], count: Tokenizer) -> dict[str, Any]:
    """The facts of stored records, as the row keeps them."""
    return measure_row(read_exchanges(records), count).as_metadata()


def test_half_of_the_words_is_half_saved() -> None:
    numbers = measured([exchange(body(TEN), call(body("a b c d e"), 0.25, 1.5))], words)
    assert numbers["downstream_tokens"] == 10
    assert numbers["upstream_tokens"] == 5
    assert numbers["prompt_savings"] == 0.5
    assert numbers["untouched"] is False
    assert (numbers["upstream_calls"], numbers["extra_upstream_calls"]) == (1, 0)
    assert numbers["upstream_seconds"] == pytest.approx(1.25)
    assert numbers["proxy_overhead"] == pytest.approx(0.75)
    assert "injected_tools" not in numbers
    assert "prefix_stability" not in numbers


def test_untouched_after_parsing() -> None:
    other = json.dumps(json.loads(body(TEN)), indent=3)
    numbers = measured([exchange(body(TEN), call(other))], words)
    assert numbers["untouched"] is True
    assert numbers["prompt_savings"] == 0.0


def test_every_call_is_summed_and_two_calls_are_not_untouched() -> None:
    numbers = measured([exchange(body(TEN), call(body("please sum up"), 0.0, 0.5), call(body(TEN), 0.5, 1.0))], words)
    assert numbers["upstream_tokens"] == 13
    assert numbers["prompt_savings"] == pytest.approx(-0.3)
    assert numbers["extra_upstream_calls"] == 1
    assert numbers["untouched"] is False


def test_calls_at_the_same_time_count_their_time_once() -> None:
    numbers = measured([exchange(body(TEN), call(body(TEN), 0.0, 1.0), call(body(TEN), 0.5, 1.25))], words)
    assert numbers["upstream_seconds"] == pytest.approx(1.25)


def test_a_refused_call_was_read_by_nobody() -> None:
    numbers = measured([exchange(body(TEN), call(body(TEN), status=500), call(body(TEN), 1.0, 2.0))], words)
    assert numbers["upstream_tokens"] == 10
    assert numbers["upstream_calls"] == 2
    assert numbers["failed_upstream_calls"] == 1
    assert numbers["untouched"] is True


def test_no_call_and_nothing_unmatched_means_none_was_needed() -> None:
    numbers = measured([exchange(body(TEN))], words)
    assert (numbers["upstream_tokens"], numbers["prompt_savings"]) == (0, 1.0)
    assert numbers["untouched"] is False


def test_no_call_while_something_was_unmatched_is_not_known() -> None:
    numbers = measured([exchange(body(TEN), unmatched=1)], words)
    assert "upstream_tokens" not in numbers
    assert "prompt_savings" not in numbers
    assert numbers["unmatched_calls"] == 1
    assert numbers["exchanges_without_call"] == 1


def test_tools_that_the_proxy_put_in_are_named_and_counted() -> None:
    own, new = {"function": {"name": "own"}}, {"function": {"name": "new"}}
    numbers = measured([exchange(body(TEN, tools=[own]), call(body(TEN, tools=[own, new])))], words)
    assert numbers["injected_tools"] == ["new"]
    assert numbers["upstream_tokens"] - numbers["downstream_tokens"] == 1


def test_time_to_the_first_token() -> None:
    # The model's first token left after 0.5 s (0.25 to 0.75), it came out of the proxy at 0.9: 0.4 s are the proxy's.
    seen = exchange(body(TEN), call(body(TEN), 0.25, 2.0, first=0.75), first_token=0.9)
    assert measured([seen], words)["first_token_overhead"] == pytest.approx(0.4)


def test_the_vendors_claim_is_summed_over_turns() -> None:
    turns = [exchange(body(TEN), call(body(TEN)), claims={"x-tokens-saved": "7"}) for _ in range(2)]
    assert measured(turns, words)["claimed_tokens_saved"] == 14


def test_earlier_attempts_of_ours_do_not_count() -> None:
    numbers = measured([exchange(body(TEN), call(body(TEN)), earlier_calls=2)], words)
    assert numbers["earlier_upstream_calls"] == 2
    assert numbers["upstream_tokens"] == 10
    assert (numbers["lost_upstream_calls"], numbers["lost_upstream_tokens"]) == (0, 0)


def test_what_a_model_answered_in_an_earlier_attempt_has_a_name_of_its_own() -> None:
    lost = [call(body(TEN), reply=said("three words long")), call(body("a b"), reply=said("one"))]
    numbers = measured(
        [exchange(body(TEN), call(body(TEN), reply=said("x")), lost_calls=lost, earlier_calls=3, attempts=2)], words
    )
    assert numbers["lost_upstream_calls"] == 2
    assert numbers["lost_upstream_tokens"] == 10 + 3 + 2 + 1
    assert (numbers["upstream_tokens"], numbers["downstream_tokens"], numbers["written_tokens"]) == (10, 10, 1)
    assert numbers["prompt_savings"] == 0.0


def test_what_every_call_wrote_is_summed() -> None:
    arguments = json.dumps({"city": "Oslo"})
    tools = {"message": {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}}
    replies = [said("one two three"), json.dumps({"id": "t", "choices": [tools]})]
    numbers = measured([exchange(body(TEN), *(call(body(TEN), reply=reply) for reply in replies))], words)
    assert numbers["written_tokens"] == 3 + 1  # {"city":"Oslo"} is one word
    unread = measured([exchange(body(TEN), call(body(TEN), reply="<html>"))], words)
    assert "written_tokens" not in unread


def test_an_exchange_with_no_call_makes_no_other_call_of_the_row_an_extra_one_less() -> None:
    numbers = measured([exchange(body(TEN)), exchange(body(TEN), call(body(TEN)), call(body(TEN)))], words)
    assert numbers["extra_upstream_calls"] == 1
    assert (numbers["answered_without_call"], numbers["cached_answer"]) == (True, False)
    told = measured([exchange(body(TEN), cache_hit=True)], words)
    assert (told["answered_without_call"], told["cached_answer"]) == (True, True)


def test_alone_means_that_every_request_of_the_row_was() -> None:
    for flags, alone in (((True, True), True), ((True, False), False)):
        turns = [exchange(body(TEN), call(body(TEN)), alone=flag) for flag in flags]
        assert measured(turns, words)["alone"] is alone
    assert measured([exchange(body(TEN), call(body(TEN)))], words)["alone"] is False  # not known to be


def test_bounds_where_calls_may_be_the_rows() -> None:
    maybe = {"unmatched": 2, "unmatched_bodies": [body("a b c"), body("d")]}
    numbers = measured([exchange(body(TEN), call(body("a b")), **maybe)], words)
    assert (numbers["least_upstream_tokens"], numbers["most_upstream_tokens"]) == (2, 6)
    numbers = measured([exchange(body(TEN), call(body("a b")), **maybe, unmatched_bytes=100)], words)
    assert numbers["most_upstream_tokens"] == 106  # what was not kept has at most a token for each byte
    running = measured([exchange(body(TEN), call(body("a b")), call(body("c"), 0.5, None, status=0))], words)
    assert (running["least_upstream_tokens"], running["most_upstream_tokens"]) == (2, 3)
    unreadable = call('{"contents": "a b c"}', path="/v1/generate")
    assert "least_upstream_tokens" not in measured([exchange(body(TEN), unreadable, **maybe)], words)
    assert "least_upstream_tokens" not in measured([exchange(body(TEN), silent=True)], words)
    known = measured([exchange(body(TEN), call(body(TEN)))], words)
    assert "least_upstream_tokens" not in known


def test_why_the_answer_is_unknown_is_told() -> None:
    calls = call(body(TEN + " k"), reply=said("x")), call(body("side"), reply=said("y"))
    numbers = measured([exchange(body(TEN), *calls, **returned("z"))], words)
    assert numbers["answer_unknown"] == "it is unknown which of several calls gave the answer"
    assert "answer_unknown" not in measured([exchange(body(TEN), *calls, **returned("y"))], words)


def test_no_prefix_is_made_up_from_calls_that_did_not_answer() -> None:
    turns = [
        exchange(
            body(*texts), call(body(*texts), reply=said("x", "1")), call(body("side"), reply=said("y", "2")), **got
        )
        for texts, got in ((("a",), returned("x", "1")), (("a", "b"), returned("x", "1")))
    ]
    assert measured(turns, words)["prefix_stability"] == 1.0
    turns[1] = {**turns[1], **returned("nothing of it", "3"), "sent": body("z")}
    assert "prefix_stability" not in measured(turns, words)


def test_no_time_is_made_up_for_a_call_whose_end_was_not_seen() -> None:
    numbers = measured([exchange(body(TEN), call(body(TEN), 0.5, None))], words)
    assert "upstream_seconds" not in numbers
    assert "proxy_overhead" not in numbers


def test_a_call_that_is_still_under_way_makes_the_sum_unknown() -> None:
    running = call(body(TEN), 0.5, None, status=0)
    numbers = measured([exchange(body(TEN), call(body(TEN)), running)], words)
    assert "upstream_tokens" not in numbers
    assert "untouched" not in numbers
    assert "failed_upstream_calls" not in numbers


def test_a_failed_example_tells_its_bill_and_nothing_else() -> None:
    numbers = measured(
        [exchange(body(TEN), call(body(TEN), reply=EMPTY), call(body(TEN), reply=EMPTY), failed=True, attempts=2)],
        words,
    )
    bill = {"sent_tokens": 10, "upstream_calls": 2, "upstream_tokens": 20}
    assert numbers == {**bill, "downstream_tokens": 20, "written_tokens": 0}


def test_what_cannot_be_told_of_a_failed_example_is_not_summed() -> None:
    numbers = measured([exchange(body(TEN), call(body(TEN)), failed=True, attempts=1, unmatched=1)], words)
    assert numbers == {"sent_tokens": 10, "downstream_tokens": 10, "upstream_calls": 1}


def test_a_call_in_a_form_that_cannot_be_read_is_not_nothing() -> None:
    numbers = measured([exchange(body(TEN), call('{"contents": "a b c"}', path="/v1/generate"))], words)
    assert "upstream_tokens" not in numbers
    assert "prompt_savings" not in numbers
    assert numbers["upstream_calls"] == 1


def test_another_path_to_the_same_api_counts() -> None:
    numbers = measured([exchange(body(TEN), call(body("a b"), path="/openai/v1/chat/completions"))], words)
    assert numbers["upstream_tokens"] == 2


def test_a_tap_that_nobody_called_knows_nothing() -> None:
    numbers = measured([exchange(body(TEN), silent=True)], words)
    assert "upstream_tokens" not in numbers
    assert "untouched" not in numbers


def test_one_unmatched_call_makes_the_sum_unknown() -> None:
    numbers = measured([exchange(body(TEN), call(body(TEN)), unmatched=1)], words)
    assert "upstream_tokens" not in numbers
    assert numbers["unmatched_calls"] == 1


OPENAI = '{"usage": {"prompt_tokens": 11, "completion_tokens": 2}}'
ANTHROPIC = '{"usage": {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 3}}'
STREAM = 'data: {"choices": []}\n\ndata: {"choices": [], "usage": {"prompt_tokens": 13}}\n\ndata: [DONE]\n\n'
MESSAGE = (
    'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 7}}}\n\n'
    'event: message_delta\ndata: {"type": "message_delta", "usage": {"output_tokens": 9}}\n\n'
)


@pytest.mark.parametrize(
    ("replies", "billed"),
    [
        ([OPENAI], 11),
        ([ANTHROPIC], 25),
        ([STREAM], 13),
        ([MESSAGE], 7),
        ([OPENAI, OPENAI], 22),
        (["\ufeff" + OPENAI], 11),
        (['\ufeffdata: {"usage": {"prompt_tokens": 17}}\n\ndata: [DONE]\n\n'], 17),
        ([OPENAI, "{}"], None),
        (["nonsense"], None),
    ],
)
def test_the_bill_is_read_from_what_the_upstream_said(replies: list[str], billed: int | None) -> None:
    calls = [call(body(TEN), reply=reply) for reply in replies]
    assert measured([exchange(body(TEN), *calls)], words).get("billed_prompt_tokens") == billed


def test_only_what_a_model_reads_counts() -> None:
    counting = call(body(TEN), path="/v1/messages/count_tokens")
    numbers = measured([exchange(body(TEN), counting, call(body(TEN)))], words)
    assert (numbers["upstream_calls"], numbers["upstream_tokens"], numbers["untouched"]) == (1, 10, True)


def test_embeddings_are_told_by_model_and_count_as_no_call_to_one() -> None:
    asked = json.dumps({"model": "embedder", "input": TEN})
    known = call(asked, path="/v1/embeddings", reply='{"data": [], "usage": {"prompt_tokens": 12, "total_tokens": 12}}')
    silent, refused = call(asked, path="/v1/embeddings", reply="{}"), call(asked, path="/v1/embeddings", status=500)
    numbers = measured([exchange(body(TEN), known, silent, refused, call(body(TEN)))], words)
    told = [{"model": "embedder", "prompt_tokens": 12}, {"model": "embedder", "prompt_tokens": None}]
    assert (numbers["embedding_usage"], numbers["upstream_calls"], numbers["upstream_tokens"]) == (told, 1, 10)
    failed = measured([exchange(body(TEN), known, failed=True)], words)
    assert failed["embedding_usage"] == told[:1]
    assert "embedding_usage" not in measured([exchange(body(TEN), call(body(TEN)))], words)
    assert "embedding_usage" not in measured([exchange(body(TEN), known, call(body(TEN)), unmatched=1)], words)
