"""What a request shows of whoever sent it is kept nowhere."""

from __future__ import annotations

import pytest

from context_bench.tap.secrets import MASK, Hidden, is_secret


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Proxy-Authorization", "cookie", "set-cookie", "x-api-key", "api-key", "X-Goog-Api-Key"),
        *("x-session-token", "openai-client-secret", "x-amz-security-token", "cf-access-client-secret"),
    ],
)
def test_a_header_is_secret_by_its_name(name: str) -> None:
    assert is_secret(name)
    assert Hidden({}).headers({name: "v", "accept": "*/*"}) == {name: MASK, "accept": "*/*"}


@pytest.mark.parametrize("name", ["content-type", "user-agent", "anthropic-version", "x-request-id", "host"])
def test_others_are_kept(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("headers", "query", "body", "kept"),
    [
        ({"authorization": "Bearer sk-12345678"}, "", b'{"key":"sk-12345678"}', '{"key":"***"}'),
        ({"authorization": "Bearer sk-12345678"}, "", b"Bearer sk-12345678", "***"),
        ({"x-api-key": "abcdefgh"}, "", b"abcdefgh abcdefg", "*** abcdefg"),
        ({"x-api-key": "abcdefg"}, "", b"an abcdefg", "an abcdefg"),
        ({"cookie": "a=1; session=0123456789"}, "", b"session 0123456789", "session ***"),
        ({}, "v=1&api_key=sk-12345678", b"sk-12345678", "***"),
        ({"api-key": 'ab/cd"ef/gh'}, "", rb"ab/cd\"ef/gh", "***"),
        ({"api-key": "abcd/efgh"}, "", rb"abcd\/efgh", "***"),
        ({"api-key": "abcdefgh", "x-token": "abcdefghijkl"}, "", b"abcdefghijkl", "***"),
        ({"accept": "text/plain"}, "", b"text/plain", "text/plain"),
        ({"authorization": ""}, "", b"body", "body"),
    ],
)
def test_a_secret_that_is_repeated_is_masked(headers: dict[str, str], query: str, body: bytes, kept: str) -> None:
    assert Hidden(headers, query).text(body) == kept


def test_what_is_no_text_is_kept_as_far_as_it_is() -> None:
    assert Hidden({}).text(b"a\xffb") == "a\ufffdb"


def test_it_does_not_show_itself() -> None:
    assert "sk-12345678" not in repr(Hidden({"authorization": "Bearer sk-12345678"}))
