"""Keys: where they come from, where they may go, and that nothing shows them."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
import warnings

import pytest

from context_bench.errors import UsageError
from context_bench.http.secrets import Secret, check_url, find_key, is_loopback

KEY = "sk-test-0123456789abcdef"


@pytest.mark.parametrize("show", [str, repr, "{}".format, "{!r}".format, "%s".__mod__, lambda s: f"{s}"])
def test_a_secret_does_not_show_itself(show: object) -> None:
    assert KEY not in show(Secret(KEY))  # type: ignore[operator]
    assert KEY not in show([Secret(KEY)]) if show in (str, repr) else True  # type: ignore[operator]


def test_a_secret_shows_itself_to_nobody_who_does_not_ask() -> None:
    secret = Secret(KEY)
    assert secret.reveal() == KEY
    with pytest.raises(TypeError):
        json.dumps(secret)
    for leave in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            leave(secret)
    with pytest.raises(ValueError) as caught:
        raise ValueError(secret)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize(
    ("given", "suggested"),
    [
        ("localhost:7878", "http://localhost:7878"),
        ("localhost", "http://localhost"),
        ("127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("my-proxy:9000", "http://my-proxy:9000"),
        ("api.openai.com/v1", "https://api.openai.com/v1"),
        ("api.openai.com:443", "https://api.openai.com:443"),
        ("nonsense", "http://HOST:PORT or https://HOST"),
        ("ftp://localhost", "http://HOST:PORT or https://HOST"),
        ("a b:1", "http://HOST:PORT or https://HOST"),
        ("http://", "http://HOST:PORT or https://HOST"),
        ("user:secret-word@host:80", "http://HOST:PORT or https://HOST"),
    ],
)
def test_a_url_without_a_scheme_gets_a_suggestion(given: str, suggested: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_url(given)
    assert str(caught.value) == f"{given!r} is not the URL of a server: write {suggested}"


def test_a_key_knows_its_variable() -> None:
    url, variables = "https://h", {"MINE": KEY, "OPENAI_API_KEY": KEY}
    found = [
        find_key(url, environment=variables),
        find_key(url, variable="MINE", environment=variables),
        find_key(url, KEY, environment=variables),
        find_key(url, find_key(url, variable="MINE", environment=variables), environment=variables),
    ]
    assert [key and key.variable for key in found] == ["OPENAI_API_KEY", "MINE", None, "MINE"]


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost", True),
        ("http://LOCALHOST:8000/v1", True),
        ("http://api.localhost", True),
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:80", True),
        ("http://localhost.example.com", False),
        ("http://127.0.0.1.example.com", False),
        ("http://127.0.0.1@example.com", False),
        ("http://example.com/localhost", False),
        ("http://example.com#@127.0.0.1", False),
        ("http://notlocalhost", False),
        ("http://10.0.0.1", False),
        ("http://0.0.0.0", False),
        ("http://[2001:db8::1]", False),
    ],
)
def test_this_machine_and_no_other(url: str, local: bool) -> None:
    assert is_loopback(url) is local


@pytest.mark.parametrize(
    ("url", "goes"),
    [
        ("https://api.example.com", True),
        ("http://127.0.0.1:8000", True),
        ("http://localhost:8000", True),
        ("http://[::1]:8000", True),
        ("http://api.example.com", False),
        ("http://10.0.0.1:8000", False),
    ],
)
def test_the_fallback_goes_over_https_or_to_this_machine(url: str, goes: bool) -> None:
    found = find_key(url, environment={"OPENAI_API_KEY": KEY})
    assert (found.reveal() if found else None) == (KEY if goes else None)


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": "  \n"}])
def test_no_key_at_all(environment: dict[str, str]) -> None:
    assert find_key("https://api.example.com", environment=environment) is None


def test_a_key_that_the_user_names_goes_where_the_user_says() -> None:
    environment = {"MINE": KEY, "OPENAI_API_KEY": "other"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find_key("https://api.example.com", variable="MINE", environment=environment)
        local = find_key("http://localhost:1", variable="MINE", environment=environment)
    assert found is not None
    assert local is not None
    assert found.reveal() == local.reveal() == KEY


@pytest.mark.parametrize("how", [{"given": KEY}, {"given": Secret(KEY)}, {"variable": "MINE"}])
def test_over_plain_http_with_a_warning(how: dict[str, object]) -> None:
    with pytest.warns(UserWarning, match="plain http") as seen:
        found = find_key("http://api.example.com", environment={"MINE": KEY}, **how)  # type: ignore[arg-type]
    assert found is not None
    assert found.reveal() == KEY
    assert all(KEY not in str(each.message) for each in seen)


def test_a_named_variable_that_is_not_set_is_an_error() -> None:
    for environment in ({}, {"MINE": ""}):
        with pytest.raises(UsageError, match="MINE"):
            find_key("https://api.example.com", variable="MINE", environment=environment)


def test_a_line_end_after_a_key_is_no_part_of_it() -> None:
    found = find_key("https://api.example.com", environment={"OPENAI_API_KEY": f" {KEY}\r\n"})
    assert found is not None
    assert found.reveal() == KEY


@pytest.mark.parametrize("bad", [f"{KEY}\r\nX-Evil: 1", f"{KEY}\x00", f"{KEY}é", "two words"])
def test_a_key_that_cannot_be_a_header_is_refused_without_showing_it(bad: str) -> None:
    with pytest.raises(UsageError, match="key") as caught:
        find_key("https://api.example.com", given=bad)
    assert KEY not in str(caught.value)
    assert "two words" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://localhost:8000/", "http://localhost:8000"),
        ("https://api.example.com/v1//", "https://api.example.com/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_a_base_url_in_its_plain_form(url: str, plain: str) -> None:
    assert check_url(url) == plain


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "localhost:8000",
        "ftp://localhost",
        "file:///etc/passwd",
        "http://",
        "http:///v1",
        "http://:8000",
        "http://localhost:port",
        "http://localhost:99999",
        "http://localhost:0",
        "http://local host",
        "http://localhost\n",
        "http://[::1",
        "http://localhost:8000?x=1",
        "http://localhost:8000/v1#top",
    ],
)
def test_what_is_no_base_url(url: str) -> None:
    with pytest.raises(UsageError):
        check_url(url)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="--api-key-env") as caught:
        check_url("http://user:hunter2@localhost:8000")
    assert "hunter2" not in str(caught.value)
