"""Server-sent events, however the network cuts them up."""

from __future__ import annotations

import time
from typing import Any

import pytest

from banks import each_case
from context_bench.wire.events import DONE, read_events


def events(*pieces: bytes) -> list[Any]:
    """The events in pieces that came one after the other."""
    return [event for _, event in read_events(enumerate(pieces))]


STREAM = 'data: {"text": "naïve 日本語 🎉"}\n\n: keep-alive\n\ndata: {"n": 2}\n\ndata: [DONE]\n\n'.encode()
SAID = [{"text": "naïve 日本語 🎉"}, {"n": 2}, DONE]


def test_each_event_is_its_json() -> None:
    assert events(STREAM) == SAID


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_stream_may_be_cut_at_any_byte(end: bytes) -> None:
    whole = STREAM.replace(b"\n", end)
    assert [place for place in range(len(whole) + 1) if events(whole[:place], whole[place:]) != SAID] == []
    assert events(*(whole[place : place + 1] for place in range(len(whole)))) == SAID


@each_case(
    ("body", "said"),
    [
        (b"", []),
        (b"\n\n\n\n", []),
        (b": only a comment\n\n", []),
        (b"event: ping\nid: 7\nretry: 3000\n\n", []),
        (b"data:\n\n", []),
        (b"data\n\n", []),
        (b'event: message\nid: 7\ndata: {"a": 1}\n\n', [{"a": 1}]),
        (b'data:{"a": 1}\n\n', [{"a": 1}]),
        (b'data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
        (b'data: {"a": 1}\n: in between\n\n', [{"a": 1}]),
        (b'data: {"a": 1}\n\n\n\n\ndata: {"b": 2}\n\n', [{"a": 1}, {"b": 2}]),
        (b'data: {"a": 1}', [{"a": 1}]),
        (b'data: {"a": 1}\n', [{"a": 1}]),
        (b'data: {"a": 1}\n\ndata: [DONE]', [{"a": 1}, DONE]),
        (b'data: {"a": "x\\n\\ny"}\n\n', [{"a": "x\n\ny"}]),
        (b"database: 1\n\n", []),
    ],
)
def test_what_is_an_event_and_what_is_not(body: bytes, said: list[Any]) -> None:
    assert events(body) == said


@pytest.mark.parametrize(
    "body",
    [b'data: {"a": 1}\n\ndata: {"b"', b"data: nothing\n\n", b"data: [DONE\n\n", b'data: {"a": 1}\ndata: {"b": 2}\n\n'],
)
def test_what_is_broken_says_so(body: bytes) -> None:
    with pytest.raises(ValueError):
        events(body)


def test_an_event_has_the_moment_of_the_chunk_that_completed_it() -> None:
    chunks = [(0.5, b'data: {"a"'), (1.0, b': 1}\n\ndata: {"b": 2}\n\nda'), (2.0, b'ta: {"c": 3}\n'), (9.0, b"\n")]
    assert list(read_events(chunks)) == [(1.0, {"a": 1}), (1.0, {"b": 2}), (2.0, {"c": 3})]


def test_one_huge_event_in_many_pieces_takes_no_time() -> None:
    text = b'data: "' + b"x" * 20_000_000 + b'"\n\n'
    pieces = [text[place : place + 1000] for place in range(0, len(text), 1000)]
    before = time.process_time()
    (event,) = events(*pieces)
    assert len(event) == 20_000_000
    assert time.process_time() - before < 2


def test_a_byte_order_mark_costs_no_event() -> None:
    whole = b"\xef\xbb\xbf" + STREAM
    assert events(whole) == SAID
    assert [place for place in range(12) if events(whole[:place], whole[place:]) != SAID] == []
    assert events(STREAM + b"\xef\xbb\xbf" + STREAM) == [*SAID, *SAID[1:]], "only in front"
