"""Which example a request at the tap belongs to."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Sequence

import pytest

from context_bench.tap import matching
from context_bench.tap.answering import Incoming
from context_bench.tap.matching import MARK_HEADER, Matcher, Ticket
from context_bench.traffic.calls import Call
from context_bench.wire.prompts import Prompt

FILLER = "the grass is green and the sky is blue and the sun is yellow"


def send(matcher: Matcher, *texts: str, header: str | None = None, **fields: object) -> Call:
    messages = [{"role": "user", "content": text} for text in texts]
    body = json.dumps({"messages": messages, **fields})
    headers = {MARK_HEADER.lower(): header} if header else {}
    call = Call("/v1/chat/completions", body)
    take(matcher, call, Incoming("POST", call.path, "", headers, body.encode()))
    return call


def take(matcher: Matcher, call: Call, request: Incoming) -> None:
    async def wait_for(work: Awaitable[None]) -> None:
        await work

    work = matcher.take(call, request)
    if work is not None:
        asyncio.run(wait_for(work))


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
    assert matcher.take(call, Incoming("POST", call.path, "", {}, b"{}")) is None
    assert matcher.unmatched == [call]


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


def make_prose(number: int, words: int) -> str:
    """Text of many different words, of which every number gets others."""
    draw = random.Random(number)
    return " ".join(f"word{draw.randrange(5000)}" for _ in range(words))


def test_a_long_text_that_was_cut_is_still_recognised() -> None:
    matcher = Matcher()
    texts = [make_prose(number, 3000) for number in range(4)]
    tickets = [opened(matcher, [text, "What is it about?"]) for text in texts]
    for text, ticket in zip(texts, tickets):
        kept = " ".join(text.split()[1000:2000])
        assert owner(send(matcher, f"Shortened: {kept}", "What is it about?"), *tickets) is ticket


def test_a_call_costs_no_more_where_many_requests_are_under_way() -> None:
    """Calls are looked up in an index: 64 requests must not cost what 64 comparisons would."""

    def measure(others: int) -> float:
        matcher = Matcher()
        for number in range(others):
            opened(matcher, [make_prose(number, 2000)])
        send(matcher, "so that all of them are in the index")
        started = time.process_time()
        for _ in range(20):
            send(matcher, make_prose(1, 2000) + " and something new")
        return time.process_time() - started

    measure(2)
    assert min(measure(64) for _ in range(3)) < 5 * min(measure(2) for _ in range(3))


def test_comparing_long_texts_leaves_the_event_loop_free() -> None:
    """A proxy that drops the marks and shortens the text: the loop goes on while words are compared."""
    text = make_prose(1, 400_000)
    body = json.dumps({"messages": [{"role": "user", "content": text[: len(text) // 2]}]})
    call = Call("/v1/chat/completions", body)
    turns = held = 0.0

    async def listen(ticket: Ticket, work: Awaitable[None]) -> None:
        nonlocal turns, held
        task = asyncio.ensure_future(work)
        assert ticket.calls == []
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0.001)
            held = max(held, time.thread_time() - before)
            turns += 1

    matcher = Matcher()
    ticket, other = opened(matcher, [text]), opened(matcher, [make_prose(2, 400_000)])
    started = time.process_time()
    work = matcher.take(call, Incoming("POST", call.path, "", {}, body.encode()))
    assert work is not None
    asyncio.run(listen(ticket, work))
    assert (ticket.calls, other.calls) == ([call], [])
    assert turns > 10
    assert held < (time.process_time() - started) / 3, "the thread of the loop did the work itself"


def test_a_short_call_beside_a_long_request_is_compared_in_the_thread_too() -> None:
    matcher = Matcher()
    long, short = opened(matcher, [make_prose(1, 4_000)]), opened(matcher, ["Which colour has the door of the mill?"])
    call = Call("/v1/chat/completions", '{"messages": [{"role": "user", "content": "which colour has the door"}]}')
    work = matcher.take(call, Incoming("POST", call.path, "", {}, call.body.encode()))
    assert work is not None
    asyncio.run(asyncio.wait_for(work, 60))
    assert owner(call, long, short) is short


def test_calls_that_are_compared_one_after_the_other_all_find_their_owners() -> None:
    matcher = Matcher()
    texts = [make_prose(number, 4_000) for number in range(6)]
    tickets = [opened(matcher, [text]) for text in texts]
    calls = [Call("/v1/chat/completions", json.dumps({"messages": [{"content": text[100:]}]})) for text in texts]

    async def take_all() -> None:
        works = [matcher.take(call, Incoming("POST", call.path, "", {}, call.body.encode())) for call in calls]
        await asyncio.gather(*(work for work in works if work is not None))

    for _ in range(2):  # each time in an event loop of its own
        asyncio.run(take_all())
    assert [ticket.calls for ticket in tickets] == [[call, call] for call in calls]


def test_a_request_that_is_over_by_the_time_its_call_was_compared_does_not_get_it() -> None:
    matcher = Matcher()
    text = make_prose(1, 4_000)
    ticket = opened(matcher, [text])
    call = Call("/v1/chat/completions", json.dumps({"messages": [{"content": text[100:]}]}))
    work = matcher.take(call, Incoming("POST", call.path, "", {}, call.body.encode()))
    matcher.close(ticket)
    ticket.recorded = True
    assert work is not None
    asyncio.run(asyncio.wait_for(work, 60))
    assert ticket.calls == []
    assert matcher.late == [call]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of the room that there is, so that a hundredth of the texts fills it."""
    for name in ("_MAX_KEPT_CHARS", "_MAX_REMEMBERED_CHARS"):
        monkeypatch.setattr(matching, name, getattr(matching, name) // 100)


@pytest.mark.usefixtures("_small")
def test_of_long_requests_that_are_over_the_last_ones_are_compared() -> None:
    matcher = Matcher()
    texts = [f"{number}" + "x" * 120_000 for number in range(4)]
    tickets = [opened(matcher, [text]) for text in texts]
    for ticket in tickets:
        matcher.close(ticket)
    for text in texts:
        send(matcher, text)
    assert [len(ticket.unmatched) for ticket in tickets] == [0, 0, 1, 1]  # 240,000 characters, not 360,000
    assert [ticket.prompt is None for ticket in tickets] == [True, True, False, False]
    assert (matcher.unmatched_count, matcher.late_count) == (4, 2)
    assert owner(send(matcher, "x", header=tickets[0].mark), *tickets) is tickets[0]


def test_what_fits_nobody_is_counted_but_not_all_of_it_kept() -> None:
    matcher = Matcher()
    ticket = opened(matcher, ["alpha beta gamma delta"])
    for number in range(1_500):
        send(matcher, f"stranger {number}")
    assert (matcher.unmatched_count, len(matcher.unmatched)) == (1_500, 1_000)
    assert (len(ticket.unmatched), ticket.more_unmatched) == (1_000, 500)
    more = [f"stranger {number}" for number in range(1_000, 1_500)]
    assert ticket.more_bytes == sum(len(json.dumps({"messages": [{"role": "user", "content": each}]})) for each in more)
    matcher.close(ticket)
    ticket.recorded = True
    late = [send(matcher, "too late") for _ in range(3)]
    assert matcher.late_count == 3
    assert matcher.late == []  # there was no room for them any more
    assert matcher.late_bytes == sum(len(call.body) for call in late)


@pytest.mark.usefixtures("_small")
def test_few_large_bodies_fill_the_room_too() -> None:
    matcher = Matcher()
    for _ in range(10):
        send(matcher, "x" * 100_000)
    assert (matcher.unmatched_count, len(matcher.unmatched)) == (10, 6)


def finish(matcher: Matcher, call: Call, reply: str = "") -> None:
    call.reply, call.status = reply, 200
    matcher.end(call, Incoming("POST", call.path, "", {}, call.body.encode()))


@pytest.mark.usefixtures("_small")
def test_replies_of_calls_that_fit_nobody_take_room_too() -> None:
    matcher = Matcher()
    calls = [send(matcher, f"stranger {number}") for number in range(10)]
    for call in calls:
        finish(matcher, call, "y" * 100_000)
    assert (matcher.unmatched_count, matcher.unmatched) == (10, calls[:6])  # 64 MB hold six of them
    assert [len(call.reply) for call in calls] == [100_000] * 6 + [0] * 4
    assert (matcher.late_count, matcher.late) == (10, calls[:6])
    assert matcher.late_bytes == sum(len(call.body) for call in calls[6:])


@pytest.mark.usefixtures("_small")
def test_the_reply_of_a_call_that_belongs_to_a_request_is_its_own() -> None:
    matcher = Matcher()
    ticket = opened(matcher, ["x"])
    for _ in range(8):
        finish(matcher, send(matcher, "Summarise this", header=ticket.mark), "y" * 100_000)
    assert [len(call.reply) for call in ticket.calls] == [100_000] * 8


@pytest.mark.usefixtures("_small")
def test_a_request_under_way_holds_no_more_than_there_is_room_for_and_counts_the_rest() -> None:
    matcher = Matcher()
    first = opened(matcher, ["alpha beta gamma delta"])
    strangers = [send(matcher, "x" * 100_000) for _ in range(8)]
    assert (first.unmatched, first.more_unmatched) == (strangers[:6], 2)
    assert first.more_bytes == sum(len(call.body) for call in strangers[6:])
    second = opened(matcher, ["epsilon zeta eta theta"])
    send(matcher, "x" * 100_000)
    assert (len(second.unmatched), second.more_unmatched) == (0, 1)
    matcher.close(first)
    matcher.record(first)  # which makes room for others
    call = send(matcher, "x" * 100_000)
    assert (second.unmatched, second.more_unmatched) == ([call], 1)
    matcher.close(second)
    matcher.record(second)
    third = opened(matcher, ["iota kappa lambda mu"])
    assert [send(matcher, "x" * 100_000) for _ in range(6)] == third.unmatched


@pytest.mark.usefixtures("_small")
def test_headers_take_room_too() -> None:
    matcher = Matcher()
    for number in range(10):
        call = Call("/v1/chat/completions", f"{number}", {"x-large": "h" * 100_000})
        take(matcher, call, Incoming("POST", call.path, "", {}, call.body.encode()))
    assert (matcher.unmatched_count, len(matcher.unmatched)) == (10, 6)
