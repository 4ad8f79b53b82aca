"""Keys that a user wrote into bodies, URLs and commands are found and masked; everything else stays."""

from __future__ import annotations

import pytest

from banks import each_case
from context_bench.errors import UsageError
from context_bench.http.endpoint import Endpoint
from context_bench.http.secrets import check_url
from context_bench.text.masking import (
    find_command_secrets,
    find_secrets,
    find_url_secrets,
    is_secret_name,
    mask_command,
    mask_document,
    mask_text,
)


@each_case(
    "name",
    [
        *("api_key", "apiKey", "API-KEY", "x-api-key", "X_API_KEY", "OPENAI_API_KEY", "key", "token", "access_token"),
        *("bearer", "Authorization", "proxy-authorization", "client_secret", "password", "db.password", "refreshToken"),
    ],
)
def test_a_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["max_tokens", "tokens", "keyword", "monkey", "model", "eos_token", "stop_token", "tokenizer", "author", ""]
)
def test_a_name_of_something_else(name: str) -> None:
    assert not is_secret_name(name)


def test_secrets_in_a_body_at_any_depth() -> None:
    body = {
        "api_key": "aaaa1",
        "max_tokens": 7,
        "nested": [{"headers": {"Authorization": "Bearer bbbb2", "x-api-key": "cccc3"}}],
        "messages": [{"content": {"token": "a word of the prompt"}}],
    }
    assert set(find_secrets(body, ("messages",))) == {"aaaa1", "Bearer bbbb2", "bbbb2", "cccc3"}
    assert mask_document(body) == {
        "api_key": "***",
        "max_tokens": 7,
        "nested": [{"headers": {"Authorization": "***", "x-api-key": "***"}}],
        "messages": [{"content": {"token": "***"}}],
    }


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("http://user:hunter2@h/v1", {"hunter2"}),
        ("https://h/sk-0123456789abcdef/v1", {"sk-0123456789abcdef"}),
        ("https://h/v1/3f2a9c4e5b6d7a8f9c0d1e2f/openai", {"3f2a9c4e5b6d7a8f9c0d1e2f"}),
        ("https://h/9f1c2f7e-1111-4222-8333-123456789abc/v1", {"9f1c2f7e-1111-4222-8333-123456789abc"}),
        ("https://h/v1?key=AAAABBBB&n=3&access_token=CCCC", {"AAAABBBB", "CCCC"}),
        ("https://h/openai/deployments/gpt-4o-mini-2024-07-18/chat/completions", set()),
        ("http://localhost:8000/v1", set()),
        ("http://[::1", set()),
    ],
)
def test_secrets_in_a_url(url: str, secrets: set[str]) -> None:
    assert set(find_url_secrets(url)) == secrets
    assert not [secret for secret in secrets if secret in mask_text(url)]
    assert secrets or mask_text(url) == url


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        ("proxy --api-key hunter2 --port {port}", "proxy --api-key *** --port {port}"),
        ("proxy --api-key=hunter2 -v", "proxy --api-key=*** -v"),
        ("env OPENAI_API_KEY=hunter2 proxy", "env OPENAI_API_KEY=*** proxy"),
        ("proxy --token 'Bearer hunter2'", "proxy --token '***'"),
        ("proxy --upstream https://u:p@h:1/v1", "proxy --upstream https://***@h:1/v1"),
        ("proxy sk-0123456789abcdef", "proxy ***"),
        ("proxy --max-tokens 100 --tokenizer cl100k_base", "proxy --max-tokens 100 --tokenizer cl100k_base"),
        ("proxy --api-key {port}", "proxy --api-key {port}"),
        ("--dataset needle:length=8000,n=50", "--dataset needle:length=8000,n=50"),
    ],
)
def test_a_command(command: str, masked: str) -> None:
    assert mask_command(command).replace("'***", "***").replace("***'", "***") == masked.replace("'", "")


def test_what_a_program_may_repeat_of_its_command() -> None:
    command = "env A_TOKEN=tok1234 proxy --api-key 'Bearer key5678' --url http://u:pass9@h --port {port} --n 3"
    assert set(find_command_secrets(command)) == {"tok1234", "Bearer key5678", "key5678", "pass9"}
    assert find_command_secrets("it's broken --api-key abcd") == ["abcd"]


@pytest.mark.parametrize("url", ["http://user:hunter2@h h", "http://user:hunter2@h:port", "http://h?key=hunter2"])
def test_an_error_about_a_url_repeats_no_secret(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_url(url)
    assert "hunter2" not in str(caught.value)


def test_an_endpoint_shows_no_key_of_its_path() -> None:
    assert "0123456789abcdef" not in repr(Endpoint("http://h/sk-0123456789abcdef/v1"))
