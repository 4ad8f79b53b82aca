"""When a request is tried again, and how long to wait before it."""

from __future__ import annotations

import pytest

from context_bench.http.gate import RetryPolicy, is_transient, retry_after


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529, 599])
def test_what_may_get_better(status: int) -> None:
    assert is_transient(status)


@pytest.mark.parametrize("status", [200, 301, 400, 401, 403, 404, 405, 413, 422])
def test_what_will_not(status: int) -> None:
    assert not is_transient(status)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-4", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_how_long_a_server_asks_to_wait(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, now=lambda: 100.0) == seconds


def test_waits_double_between_half_and_whole() -> None:
    policy = RetryPolicy(base_delay=1.0, max_delay=60.0)
    assert [policy.delay(retry, None, lambda: 1.0) for retry in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [policy.delay(retry, None, lambda: 0.0) for retry in range(3)] == [0.5, 1, 2]


def test_the_wish_of_the_server_is_a_lower_bound_within_ours() -> None:
    policy = RetryPolicy(base_delay=1.0, max_delay=60.0)
    assert policy.delay(0, 5.0, lambda: 1.0) == 5.0
    assert policy.delay(3, 5.0, lambda: 1.0) == 8.0
    assert policy.delay(0, 86_400.0, lambda: 1.0) == 60.0


def test_many_retries_do_not_overflow() -> None:
    assert RetryPolicy(max_delay=60.0).delay(5000, None, lambda: 1.0) == 60.0
