"""What is written down comes back as it was, and nothing is written twice."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from context_bench.results import EvalRow
from context_bench.store.records import (
    identity_of,
    pack_keys,
    pack_processed,
    pack_row,
    places_of,
    run_of,
    to_bytes,
    unpack_keys,
    unpack_processed,
    unpack_row,
)

EXAMPLE: dict[str, Any] = {
    "id": 1,
    "context": "a long context",
    "question": "q",
    "answer": "gold",
    "tags": ["x", {"y": 1}],
}


@pytest.mark.parametrize(
    "processed",
    [
        {"response": "an answer"},
        {"response": ""},
        {"context": "short", "response": "short"},
        {"context": "short", "response": "an answer"},
        {"context": "a long context", "response": "a long context"},
        {**EXAMPLE, "response": "a long context"},
        {**EXAMPLE, "context": "short", "response": "short", "tags": []},
        {"response": "gold", "answer": "gold"},
        {"response": "x", "question": None},
        {"response": "x", "documents": [{"id": "d", "text": "t"}], "tool_calls": [{"function": {"name": "f"}}]},
    ],
)
@pytest.mark.parametrize(
    "example", [EXAMPLE, {**EXAMPLE, "response": "somebody else's"}], ids=["plain", "has response"]
)
def test_a_result_comes_back(processed: dict[str, Any], example: dict[str, Any]) -> None:
    packed = orjson.loads(to_bytes(pack_processed(processed, example)))
    assert unpack_processed(packed, example) == processed


def test_a_context_is_not_written_again() -> None:
    long = {"id": 1, "context": "word " * 10_000}
    for processed in ({**long, "response": long["context"]}, {"context": long["context"], "response": "x"}):
        assert len(to_bytes(pack_processed(processed, long))) < 200
    short = {"context": "half " * 5_000, "response": "half " * 5_000}
    assert len(to_bytes(pack_processed(short, long))) < 26_000


def test_values_that_do_not_say_whether_they_are_equal() -> None:
    class Array:
        def __eq__(self, other: object) -> Any:
            class Many:
                def __bool__(self) -> bool:
                    raise ValueError("ambiguous")

            return Many()

        __hash__ = None  # type: ignore[assignment]

    assert pack_processed({"response": "x", "v": Array()}, {"v": Array()})["same"] == []


def test_a_row_comes_back() -> None:
    row = EvalRow(
        system="s|é",
        example_id="id",
        scores={"f1": 0.1 + 0.2, "exact_match": 0.0},
        input_tokens=3,
        output_tokens=2,
        metadata={"output": "context", "cost": 1e-9, "nested": {"list": [1, None, "x"]}},
        latency=1 / 3,
        dataset="d",
        response="the response",
        error=None,
        repeat=2,
        unscored={"judge": "away"},
        upstream_tokens=7,
    )
    assert unpack_row(orjson.loads(pack_row(row)), "the response") == row
    failed = EvalRow("s", 1, {}, 3, 0, error="TimedOut: no answer")
    assert unpack_row(orjson.loads(pack_row(failed)), "") == failed
    assert b"the response" not in pack_row(row)


@pytest.mark.parametrize("odd", ["\ud800", 2**70, {1, 2}, {("a", 1): 2}, float("nan"), b"bytes", object])
def test_odd_values_are_written_somehow(odd: Any) -> None:
    assert orjson.loads(to_bytes({"value": odd}))


# 2 ** 32 is 4,294,967,296
@pytest.mark.parametrize(
    ("run", "place", "identity"),
    [
        (0, 0, 0),
        (1, 0, 4_294_967_296),
        (3, 5, 12_884_901_893),
        (3, 4_294_967_295, 17_179_869_183),
        (4, 0, 17_179_869_184),
    ],
)
def test_an_id_is_the_run_and_the_place_in_it(run: int, place: int, identity: int) -> None:
    assert identity_of(run, place) == identity
    assert run_of(identity) == run


def test_the_places_of_a_run_end_where_those_of_the_next_begin() -> None:
    assert places_of(3) == (12_884_901_888, 17_179_869_184)
    assert places_of(4)[0] == places_of(3)[1]


def test_keys_as_they_stand_on_disk() -> None:
    known = [(b"0123456789abcdef", 1), (b"\x00" * 16, 12_884_901_893), (b"\xff" * 16, 2**63 - 1)]
    body = (
        *(b"0123456789abcdef", b"\x01\0\0\0\0\0\0\0"),
        *(b"\x00" * 16, b"\x05\0\0\0\x03\0\0\0"),
        *(b"\xff" * 16, b"\xff\xff\xff\xff\xff\xff\xff\x7f"),
    )
    assert pack_keys(known) == b"".join(body)
    assert list(unpack_keys(b"".join(body))) == known


def test_no_keys_and_keys_that_come_twice() -> None:
    assert pack_keys([]) == b""
    assert list(unpack_keys(b"")) == []
    twice = [(b"0123456789abcdef", 2), (b"0123456789abcdef", 1)]
    assert list(unpack_keys(pack_keys(iter(twice)))) == twice, "in their order: the last one counts"
