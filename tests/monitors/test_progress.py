"""The progress line: what it counts, what it leaves out where it is narrow, and what rows of the store mean for it."""

from __future__ import annotations

import io
import os

import pytest

from context_bench.monitors.progress import Progress
from context_bench.results import EvalRow


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def row(error: str | None = None) -> EvalRow:
    return EvalRow("s", 1, {}, 10, 5, error=error)


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((80, 24)))


def test_silent_when_switched_off() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(10, False, stream, clock)
    clock.now += 5
    progress.add(row())
    progress.close()
    assert stream.getvalue() == ""


def test_nothing_in_the_first_second_and_then_ten_times_a_second_at_most() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(1000, True, stream, clock)
    for _ in range(90):
        clock.now += 0.01
        progress.add(row())
    assert stream.getvalue() == ""
    for _ in range(200):
        clock.now += 0.01
        progress.add(row())
    assert 15 <= stream.getvalue().count("\r") <= 21


def test_what_it_says() -> None:
    clock = Clock()
    progress = Progress(200, True, Terminal(), clock)
    for number in range(50):
        progress.add(row("Error" if number < 3 else None))
    line = progress.line(clock.now + 10)
    assert "25%" in line
    assert "50/200" in line
    assert "5.0/s" in line
    assert "0:30 left" in line
    assert "3 errors" in line


def test_without_a_total_it_counts() -> None:
    clock = Clock()
    progress = Progress(None, True, Terminal(), clock)
    progress.add(row("Error"))
    line = progress.line(clock.now + 2)
    assert "1 row" in line
    assert "%" not in line
    assert "left" not in line
    assert "1 error" in line


def test_it_says_what_is_done_while_no_row_comes_in() -> None:
    clock, doing = Clock(), ["bm25: 1,200 of 30,254 turns written"]
    progress = Progress(None, True, Terminal(), clock, doing=lambda: doing[0])
    assert progress.line(clock.now).endswith("0 tokens  bm25: 1,200 of 30,254 turns written")
    doing[0] = ""
    assert progress.line(clock.now).endswith("0 tokens")


def test_more_rows_than_expected_do_no_harm() -> None:
    clock = Clock()
    progress = Progress(2, True, Terminal(), clock)
    for _ in range(5):
        progress.add(row())
    line = progress.line(clock.now + 1)
    assert "100%" in line
    assert "-" not in line


def test_no_time_at_all_has_passed() -> None:
    clock = Clock()
    assert Progress(5, True, Terminal(), clock).line(clock.now)


def test_it_takes_the_line_away_in_the_end() -> None:
    stream, clock = Terminal(), Clock()
    progress = Progress(10, True, stream, clock)
    clock.now += 2
    progress.add(row())
    progress.close()
    assert stream.getvalue().endswith("\r\x1b[2K")
    before = stream.getvalue()
    progress.close()
    assert stream.getvalue() == before


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((20, 24)))
    stream, clock = Terminal(), Clock()
    progress = Progress(10, True, stream, clock)
    clock.now += 2
    progress.add(row())
    assert len(stream.getvalue().removeprefix("\r\x1b[2K")) < 20


def test_rows_that_were_known_say_nothing_about_the_rate() -> None:
    clock = Clock()
    progress = Progress(1000, True, Terminal(), clock)
    for _ in range(600):  # the store has them at once
        clock.now += 0.01
        progress.add(row(), known=True)
    for _ in range(10):
        clock.now += 2.0
        progress.add(row())
    line = progress.line(clock.now)
    assert "610/1,000" in line
    assert "0.5/s" in line  # 10 in 20 seconds
    assert "13:00 left" in line  # 390 at half a row a second
    assert "600 known" in line


def test_no_time_left_is_made_up_from_known_rows_alone() -> None:
    clock = Clock()
    progress = Progress(100, True, Terminal(), clock)
    for _ in range(50):
        progress.add(row(), known=True)
    assert "left" not in progress.line(clock.now + 5)


def test_known_rows_cost_nothing_again() -> None:
    clock = Clock()
    progress = Progress(None, True, Terminal(), clock)
    paid = {"attempts": 3, "total_tokens": 1_200, "cost_usd": 0.25}
    progress.add(EvalRow("s", 1, {}, 100, 1, metadata=paid), known=True)
    progress.add(EvalRow("s", 2, {}, 100, 1, metadata=paid))
    line = progress.line(clock.now + 1)
    assert "$0.25" in line
    assert "1.2k tokens" in line
    assert "2 retries" in line


@pytest.mark.parametrize(
    ("width", "shown", "hidden"),
    [
        (200, ["█", " 50%", "500/1,000", "10.0/s", "0:50 left", "3 errors", "5 retries", "tokens", "$1,234.50"], []),
        (79, [" 50%", "500/1,000", "0:50 left", "3 errors", "5 retries", "$1,234.50"], ["█"]),
        (45, ["500/1,000", "0:50 left", "3 errors", "$1,234.50"], ["tokens", "/s"]),
        (31, ["500/1,000", "3 errors", "$1,234.50"], ["left"]),
        (19, ["3 errors", "$1,234.50"], ["500"]),
        (9, ["$1,234.50"], ["errors"]),
    ],
)
def test_money_and_errors_stay_where_it_is_narrow(width: int, shown: list[str], hidden: list[str]) -> None:
    clock = Clock()
    progress = Progress(1000, True, Terminal(), clock)
    for number in range(500):
        paid = {"attempts": 2 if number < 5 else 1, "total_tokens": 100_000, "cost_usd": 2.469}
        progress.add(EvalRow("s", number, {}, 1, 1, metadata=paid, error="Error" if number < 3 else None))
    line = progress.line(clock.now + 50, width)
    assert len(line) <= width
    assert [part for part in shown if part not in line] == []
    assert [part for part in hidden if part in line] == []


def test_retries_tokens_and_money_show_when_there_are_any() -> None:
    clock = Clock()
    progress = Progress(None, True, Terminal(), clock)
    paid = {"attempts": 3, "total_tokens": 1_200, "cost_usd": 0.25}
    for metadata in (paid, paid, {}):
        progress.add(EvalRow("s", 1, {}, input_tokens=100, output_tokens=1, metadata=metadata))
    line = progress.line(clock.now + 1)
    assert "4 retries" in line
    assert "2.5k tokens" in line
    assert "$0.50" in line
    assert "retries" not in Progress(None, True, Terminal(), clock).line(clock.now + 1)
