"""Which example a request at the tap belongs to."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from context_bench.tap.answering import Incoming
from context_bench.tap.matching import MARK_HEADER, Matcher, Ticket, phrases
from context_bench.traffic.call import Call
from context_bench.wire.requests import Prompt

FILLER = "the grass is green and the sky is blue and the sun is yellow"


def send(matcher: Matcher, *texts: str, header: str | None = None, **fields: object) -> Call:
    messages = [{"role": "user", "content": text} for text in texts]
    body = json.dumps({"messages": messages, **fields})
    headers = {MARK_HEADER.lower(): header} if header else {}
    call = Call("/v1/chat/completions", body)
    matcher.take(call, Incoming("POST", call.path, "", headers, body.encode()))
    return call


def opened(matcher: Matcher, texts: Sequence[str]) -> Ticket:
    return matcher.open(Prompt(messages=[{"role": "user", "content": text} for text in texts]))


def owner(call: Call, *tickets: Ticket) -> Ticket | None:
    owners = [ticket for ticket in tickets if any(each is call for each in ticket.calls)]
    assert len(owners) <= 1
    return owners[0] if owners else None


def test_by_header_whatever_the_content_is() -> None:
    matcher = Matcher()
    first, second = opened(matcher, ["alpha"]), opened(matcher, ["beta"])
    assert owner(send(matcher, "alpha", header=second.mark), first, second) is second


def test_by_a_field_of_the_body() -> None:
    matcher = Matcher()
    first, second = opened(matcher, ["alpha"]), opened(matcher, ["beta"])
    assert owner(send(matcher, "x", user=second.mark), first, second) is second
    assert owner(send(matcher, "x", metadata={"user_id": first.mark}), first, second) is first


def test_by_content_when_marks_are_dropped() -> None:
    matcher = Matcher()
    first = opened(matcher, [FILLER, "Where does the old captain keep his map?"])
    second = opened(matcher, [FILLER, "Which colour has the door of the mill?"])
    assert owner(send(matcher, "Which colour has the door of the mill?"), first, second) is second
    assert owner(send(matcher, f"Summary: {FILLER}", "where does the OLD captain keep"), first, second) is first


def test_what_several_share_fits_none() -> None:
    matcher = Matcher()
    first = opened(matcher, [FILLER, "Where does the old captain keep his map?"])
    second = opened(matcher, [FILLER, "Which colour has the door of the mill?"])
    call = send(matcher, FILLER)
    assert owner(call, first, second) is None
    assert matcher.unmatched == [call]
    assert (first.unmatched, second.unmatched) == ([call], [call])
    assert matcher.late == []  # the rows under way will know of it


def test_the_same_request_twice_under_way_fits_none() -> None:
    matcher = Matcher()
    first, second = opened(matcher, ["what is the name of it"]), opened(matcher, ["what is the name of it"])
    assert owner(send(matcher, "what is the name of it"), first, second) is None


def test_a_stranger_fits_none_even_when_one_is_alone() -> None:
    matcher = Matcher()
    ticket = opened(matcher, ["what is the name of it"])
    assert owner(send(matcher, "ping, are you there, model?"), ticket) is None
    assert len(ticket.unmatched) == 1  # it may be his in another dress: base64, or another language


def test_several_calls_of_one_example() -> None:
    matcher = Matcher()
    ticket = opened(matcher, ["x"])
    for _ in range(3):
        send(matcher, "Summarise this", header=ticket.mark)
    assert len(ticket.calls) == 3
    assert matcher.unmatched == []


def test_too_late_is_unmatched() -> None:
    matcher = Matcher()
    ticket = opened(matcher, ["what is the name of it"])
    matcher.close(ticket)
    ticket.recorded = True
    call = send(matcher, "what is the name of it", header=ticket.mark)
    assert ticket.calls == []
    assert matcher.unmatched == matcher.late == [call]


def test_a_call_of_an_attempt_that_is_over_is_its_own_by_its_mark_until_the_request_is_recorded() -> None:
    matcher = Matcher()
    first = opened(matcher, ["what is the name of it"])
    matcher.close(first)
    second = opened(matcher, ["what is the name of it"])  # the same request once more
    assert owner(send(matcher, "what is the name of it", header=first.mark), first, second) is first
    assert matcher.unmatched == []


def test_a_mark_that_nobody_remembers_is_late() -> None:
    matcher = Matcher()
    ticket = opened(matcher, ["what is the name of it"])
    call = send(matcher, "what is the name of it", header="cb-" + "0" * 24)
    assert (ticket.calls, ticket.unmatched) == ([], [])
    assert matcher.late == [call]


def test_two_marks_in_one_body_fit_none() -> None:
    matcher = Matcher()
    first, second = opened(matcher, ["a"]), opened(matcher, ["b"])
    assert owner(send(matcher, "batch", user=first.mark, metadata={"user_id": second.mark}), first, second) is None


def test_a_body_that_is_no_prompt_fits_none() -> None:
    matcher = Matcher()
    opened(matcher, ["a"])
    call = Call("/v1/embeddings", "{}")
    matcher.take(call, Incoming("POST", call.path, "", {}, b"{}"))
    assert matcher.unmatched == [call]


def test_phrases() -> None:
    assert phrases(["One two, three FOUR five"]) == {"one two three four", "two three four five"}
    assert phrases(["only three words", ""]) == {"only three words"}


def test_marks_are_never_the_same() -> None:
    matcher = Matcher()
    assert len({opened(matcher, []).mark for _ in range(1000)}) == 1000


def test_a_late_call_without_marks_is_not_given_to_somebody_else() -> None:
    matcher = Matcher()
    ask = "Answer with a few words and nothing else."
    first = opened(matcher, ["Where does the old captain keep his map?", ask])
    matcher.close(first)
    second = opened(matcher, ["Which colour has the door of the mill?", ask])
    send(matcher, "Where does the old captain keep his map?", ask)
    assert second.calls == []
    assert second.unmatched == []
    assert len(matcher.unmatched) == 1


def test_a_repeated_example_is_followed_by_content() -> None:
    matcher = Matcher()
    texts = ["Where does the old captain keep his map?", FILLER]
    matcher.close(opened(matcher, texts))
    again = opened(matcher, texts)
    assert owner(send(matcher, *texts), again) is again


def test_a_late_call_with_its_mark_takes_nothing_from_others() -> None:
    matcher = Matcher()
    first = opened(matcher, ["alpha"])
    matcher.close(first)
    second = opened(matcher, ["beta"])
    send(matcher, "beta", header=first.mark)
    assert (second.calls, second.unmatched) == ([], [])


def test_many_long_texts_cost_little() -> None:
    matcher = Matcher()
    texts = [f"{FILLER} " * 500 + f" number {number} is the one that counts here" for number in range(40)]
    tickets = [
        opened(matcher, [text, f"what is special about example number {number}"]) for number, text in enumerate(texts)
    ]
    started = time.process_time()
    for number, text in enumerate(texts):
        send(matcher, text, f"what is special about example number {number}")
    assert [len(ticket.calls) for ticket in tickets] == [1] * 40
    assert time.process_time() - started < 10
