"""ProxyOverhead: from requests that were alone in flight, where there are enough of them."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import EvalRow
from context_bench.metrics import ProxyOverhead
from context_bench.summary import fold
from rows import failed_row, tapped_row


def _rows(*seconds: float, alone: bool = True, key: str = "proxy_overhead") -> list[EvalRow]:
    return [tapped_row(alone=alone, **{key: each}) for each in seconds]


def _notes(rows: list[EvalRow]) -> dict[str, Any]:
    tally = ProxyOverhead().start()
    fold(tally, rows)
    return tally.notes()


def test_overhead_by_hand() -> None:
    # sorted 1..5: the median is rank 2, p95 rank 3.8, counted from 0
    rows = _rows(5.0, 1.0, 4.0, 2.0, 3.0)
    assert ProxyOverhead().compute([*rows, failed_row(metadata={"proxy_overhead": 99.0})]) == pytest.approx(
        {
            "proxy_overhead_mean": 3.0,
            "proxy_overhead_median": 3.0,
            "proxy_overhead_p95": 4.8,
            "proxy_overhead_rows": 5.0,
        }
    )
    streamed = _rows(0.1, 0.3, key="first_token_overhead")
    assert ProxyOverhead().compute([*streamed, *rows])["first_token_overhead_median"] == pytest.approx(0.2)


def test_with_twenty_alone_only_those_count() -> None:
    alone, together = _rows(*[0.1] * 20), _rows(*[1.2] * 80, alone=False)
    values = ProxyOverhead().compute([*together, *alone])
    assert (values["proxy_overhead_median"], values["proxy_overhead_p95"]) == (0.1, 0.1)
    assert values["proxy_overhead_rows"] == 20.0
    assert _notes([*together, *alone]) == {}


def test_with_fewer_all_count_and_a_note_says_that_this_includes_waiting() -> None:
    rows = [*_rows(*[0.1] * 19), *_rows(*[1.2] * 81, alone=False)]
    values = ProxyOverhead().compute(rows)
    assert (values["proxy_overhead_median"], values["proxy_overhead_rows"]) == (1.2, 100.0)
    assert _notes(rows) == {
        "proxy_overhead_median": "includes waiting: 19 of 100 rows had no other request of the system in flight, and "
        "20 are needed; --max-workers 1 measures the proxy alone"
    }


def test_few_rows_that_were_all_alone_include_no_waiting() -> None:
    assert ProxyOverhead().compute(_rows(0.1, 0.3))["proxy_overhead_rows"] == 2.0
    assert _notes(_rows(0.1, 0.3)) == {}


def test_rows_that_do_not_say_may_have_waited() -> None:
    assert "includes waiting: 0 of 1" in _notes([tapped_row(proxy_overhead=0.1)])["proxy_overhead_median"]


def test_the_first_token_has_a_note_of_its_own() -> None:
    rows = _rows(*[0.1] * 30, alone=False, key="first_token_overhead")
    assert set(_notes(rows)) == {"first_token_overhead_median"}
