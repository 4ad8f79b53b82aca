"""How the claims of a proxy are read from the headers of its replies."""

from __future__ import annotations

import itertools

import pytest

from banks import each_case
from context_bench.traffic.calls import claim_headers, read_claimed_tokens

KOMPACT = {
    "server": "uvicorn",
    "content-type": "application/json",
    "x-kompact-tokens-saved": "7412",
    "x-kompact-compression-ratio": "0.156",
    "x-kompact-latency-ms": "2.1",
}
HEADROOM = {
    "X-Headroom-Tokens-Before": "12630",
    "X-Headroom-Tokens-After": "7844",
    "X-Headroom-Tokens-Saved": "4786",
    "X-Headroom-Model": "gpt-4o",
    "X-Headroom-Transforms": "router:smart_crusher:0.46",
    "vary": "Origin",
}
"""Reply headers of kompact 0.4.0 and headroom-ai 0.42.0."""


@each_case(
    ("headers", "saved"),
    [
        (KOMPACT, 7412.0),
        (HEADROOM, 4786.0),
        ({"X-Tokens-Saved": " 12.5 "}, 12.5),
        ({"x-someone-tokens-saved": "3"}, 3.0),
        ({"x-headroom-tokens-saved": "-40"}, -40.0),
        ({"x-other-tokens-saved": "1", "x-kompact-tokens-saved": "2"}, 2.0),
        ({"x-kompact-tokens-saved": "many", "x-tokens-saved": "5"}, 5.0),
        ({"x-tokens-saved": "nan"}, None),
        ({"x-tokens-saved": "inf"}, None),
        ({"x-tokens-saved": ""}, None),
        ({"x-headroom-tokens-before": "9"}, None),
        ({}, None),
    ],
)
def test_the_tokens_that_a_vendor_says_it_saved(headers: dict[str, str], saved: float | None) -> None:
    assert read_claimed_tokens(headers) == saved


@pytest.mark.parametrize(
    ("headers", "saved"),
    [
        ({"x-entroly-tokens-saved": "2696", "x-entroly-session-tokens-saved": "8482"}, 2696.0),
        ({"x-entroly-tokens-saved": "0", "x-entroly-session-tokens-saved": "8482"}, 0.0),
        ({"X-Total-Tokens-Saved": "9", "X-Acme-Tokens-Saved": "4", "X-Lifetime-Tokens-Saved": "99"}, 4.0),
        ({"x-acme-input-tokens-saved": "3", "x-acme-tokens-saved": "4", "x-acme-output-tokens-saved": "1"}, 4.0),
        ({"x-b-tokens-saved": "2", "x-a-tokens-saved": "1"}, 1.0),
        ({"x-kompact-tokens-saved": "5", "x-y-tokens-saved": "6", "x-kompact-session-tokens-saved": "7"}, 5.0),
        ({"x-acme-session-tokens-saved": "8482"}, None),
    ],
)
def test_of_several_claims_the_one_for_this_request_in_whatever_order(
    headers: dict[str, str], saved: float | None
) -> None:
    for order in itertools.permutations(headers.items()):
        assert read_claimed_tokens(dict(order)) == saved


def test_claims_are_what_speaks_of_tokens_and_savings_and_nothing_secret() -> None:
    assert set(claim_headers(KOMPACT)) == {"x-kompact-tokens-saved", "x-kompact-compression-ratio"}
    assert claim_headers(HEADROOM) == {
        "x-headroom-tokens-before": "12630",
        "x-headroom-tokens-after": "7844",
        "x-headroom-tokens-saved": "4786",
        "x-headroom-transforms": "router:smart_crusher:0.46",
    }
    others = ["x-session-token", "set-cookie", "authorization", "content-encoding", "x-ratelimit-remaining-tokens"]
    assert claim_headers(dict.fromkeys([*others, "anthropic-ratelimit-input-tokens-limit"], "1")) == {}
