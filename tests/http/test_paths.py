"""How much of the path a URL may have."""

from __future__ import annotations

import pytest

from context_bench import OpenAIProxy
from context_bench.http.secrets import describe_path, find_api_root, split_api_url

CHAT = "/chat/completions"


@pytest.mark.parametrize(
    ("url", "base", "path"),
    [
        ("http://h:1", "http://h:1", "/v1/chat/completions"),
        ("http://h:1/", "http://h:1", "/v1/chat/completions"),
        ("http://h:1/v1", "http://h:1/v1", CHAT),
        ("http://h:1/v1/chat/completions", "http://h:1/v1", CHAT),
        ("http://h:1/v1/chat/completions/", "http://h:1/v1", CHAT),
        ("http://h:1/api", "http://h:1/api", "/v1/chat/completions"),
        ("http://h:1/api/chat/completions", "http://h:1/api", CHAT),
    ],
)
def test_where_an_api_is_asked(url: str, base: str, path: str) -> None:
    assert split_api_url(url, CHAT) == (base, path)


def test_the_same_place_has_the_same_fingerprint_and_no_other_has() -> None:
    same = {OpenAIProxy(f"http://h:1/v1{end}", name="p").fingerprint for end in ("", "/", CHAT)}
    others = {OpenAIProxy(f"http://h:1{path}", name="p").fingerprint for path in ("/api", f"/api{CHAT}", CHAT)}
    assert len(same) == 1
    assert len(same | others) == 4
    assert describe_path("http://h:1/v1", CHAT) == {}


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/messages"])
def test_what_stands_before_the_api(path: str) -> None:
    assert find_api_root(f"http://h:1/x{path}") == "http://h:1/x"
