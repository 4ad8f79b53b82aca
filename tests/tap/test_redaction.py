"""What a request shows of whoever sent it is kept nowhere."""

from __future__ import annotations

import pytest

from context_bench.tap.intake import Redactor
from context_bench.text.masking import MASK, may_name_secret

KEY = "sk-0123456789abcdef"


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "Proxy-Authorization", "cookie", "set-cookie", "x-api-key", "api-key", "X-Goog-Api-Key"),
        *("x-session-token", "openai-client-secret", "x-amz-security-token", "cf-access-client-secret"),
    ],
)
def test_a_header_is_secret_by_its_name(name: str) -> None:
    assert may_name_secret(name)
    assert Redactor({}).headers({name: "v", "accept": "*/*"}) == {name: MASK, "accept": "*/*"}


@pytest.mark.parametrize("name", ["content-type", "user-agent", "anthropic-version", "x-request-id", "host"])
def test_others_are_kept(name: str) -> None:
    assert not may_name_secret(name)


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
    assert Redactor(headers, query).text(body) == kept


def test_what_is_no_text_is_kept_as_far_as_it_is() -> None:
    assert Redactor({}).text(b"a\xffb") == "a\ufffdb"


def test_it_does_not_show_itself() -> None:
    assert "sk-12345678" not in repr(Redactor({"authorization": "Bearer sk-12345678"}))


def test_a_key_that_moved_to_another_header_is_hidden_there() -> None:
    hidden = Redactor({"authorization": f"Bearer {KEY}", "x-orig": KEY}, "", ())
    assert hidden.headers({"authorization": f"Bearer {KEY}", "x-orig": KEY}) == {
        "authorization": "***",
        "x-orig": "***",
    }


def test_what_we_know_to_be_a_secret_is_hidden_by_any_name() -> None:
    hidden = Redactor({}, "", ("hunter2-hunter2",))
    assert hidden.headers({"x-org-pass": "hunter2-hunter2"}) == {"x-org-pass": "***"}
    assert hidden.text(b"it is hunter2-hunter2") == "it is ***"


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "apiKey", "password", "client_secret", "Authorization", "access_token"),
        *("token", "bearer", "x-api-key", "key"),
    ],
)
def test_a_field_of_a_body_that_says_a_key(name: str) -> None:
    assert Redactor({}).text(f'{{"{name}": "abcdefgh1234", "n": 1}}'.encode()) == f'{{"{name}": "***", "n": 1}}'


def test_the_password_of_basic_credentials_and_the_second_of_two_keys() -> None:
    hidden = Redactor({"authorization": "Basic dXNlcjpwYXNzd29yZDEyMw==, Bearer second-key-1234"})
    assert hidden.text(b"password123 and second-key-1234") == "*** and ***"


def test_a_key_deep_in_a_body_is_hidden_and_the_prompt_is_kept_as_it_is() -> None:
    body = b'{"messages": [{"content": [{"input": {"token": "abcdefgh1234"}}]}], "extra": [{"token": "zyxwvuts9876"}]}'
    assert Redactor({}).text(body).encode() == body.replace(b"zyxwvuts9876", b"***")


def test_the_tokens_of_a_reply_are_words() -> None:
    plain = b'{"choices": [{"logprobs": {"content": [{"token": "Certainly"}]}, "message": {"content": "Certainly"}}]}'
    assert Redactor({}).text(plain).encode() == plain
    stream = b'data: {"choices": [{"logprobs": {"content": [{"token": "Certainly"}]}}]}\n\n'
    assert Redactor({}).text(stream).encode() == stream


def test_a_key_that_json_escapes() -> None:
    assert Redactor({}).text(rb'{"bearer": "abcd\"efgh1234", "n": "x"}') == '{"bearer": "***", "n": "x"}'


def test_a_body_that_is_not_utf_8_is_kept_with_replacement_characters() -> None:
    redactor = Redactor({"authorization": "Bearer sk-live-0123456789"})
    assert redactor.text(b"a\xffb \xc3") == "a\ufffdb \ufffd"
    data = ("é東🙂 sk-live-0123456789 " * 40_000).encode() + b"\xff"  # longer than a piece, and cut within letters
    assert redactor.text(data) == data.decode("utf-8", "replace").replace("sk-live-0123456789", "***")
