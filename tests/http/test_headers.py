"""Headers that a user adds."""

from __future__ import annotations

import pytest

from context_bench import OpenAIProxy
from context_bench.errors import UsageError
from context_bench.http import Secret
from context_bench.http.secrets import changing_headers, check_headers, merge_headers
from servers import Server

EXAMPLE = {"id": 1, "context": "x"}


def test_values_are_secrets_without_the_space_around_them() -> None:
    checked = check_headers({"X-A": " one ", "X-B": Secret("two")})
    assert {name: value.reveal() for name, value in checked.items()} == {"X-A": "one", "X-B": "two"}
    assert "one" not in repr(checked)
    assert check_headers(None) == {}


@pytest.mark.parametrize("name", ["", "X Y", "X:", "X\r\nY", "Ü", "X\n"])
def test_a_name_that_is_none(name: str) -> None:
    with pytest.raises(UsageError, match="not a valid header name"):
        check_headers({name: "v"})


@pytest.mark.parametrize(
    "value", ["", " ", "hunter2\r\nX-Evil: 1", "hunter2\n", "hunter2é", "hunter2\x00", "hunter2🎉"]
)
def test_a_value_that_cannot_be_sent_is_not_told(value: str) -> None:
    with pytest.raises(UsageError, match="'X' cannot be sent") as raised:
        check_headers({"X": value})
    assert "hunter2" not in str(raised.value)


def test_the_last_value_of_a_name_wins_in_any_case() -> None:
    assert merge_headers({"Accept": "a", "X": "1"}, {"accept": "b"}) == {"accept": "b", "X": "1"}


def test_who_asks_changes_no_answer() -> None:
    names = ["Authorization", "X-API-Key", "api-key", "Proxy-Authorization", "COOKIE", "X-Mode", "OpenAI-Beta"]
    headers = {name: Secret(f"value of {name}") for name in names}
    assert changing_headers(headers) == {"x-mode": "value of X-Mode", "openai-beta": "value of OpenAI-Beta"}


def test_they_arrive_and_win_over_ours() -> None:
    with Server() as server:
        headers = {"authorization": "Basic abc", "CONTENT-TYPE": "application/json; charset=utf-8", "X-Mode": "fast"}
        OpenAIProxy(server.url, api_key="sk-0123456789abcdef", headers=headers).process(EXAMPLE)
    got = server.chats[0].headers
    assert got["authorization"] == "Basic abc"
    assert got["content-type"] == "application/json; charset=utf-8"
    assert got["x-mode"] == "fast"


def test_a_header_that_may_change_answers_is_part_of_the_fingerprint() -> None:
    def fingerprint(**headers: str) -> str | None:
        return OpenAIProxy(
            "http://127.0.0.1:1", headers={k.replace("_", "-"): v for k, v in headers.items()}
        ).fingerprint

    assert len({fingerprint(), fingerprint(x_mode="a"), fingerprint(x_mode="b"), fingerprint(x_other="a")}) == 4
    assert fingerprint(authorization="a") == fingerprint(cookie="b") == fingerprint(api_key="c") == fingerprint()
    assert fingerprint(X_Mode="a") == fingerprint(x_mode="a")
    assert "topsecret" not in str(fingerprint(x_mode="topsecret"))
