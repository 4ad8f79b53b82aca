"""The status line: in place on a terminal and in a notebook, now and then in a log, and nothing for what is short."""

from __future__ import annotations

import io
import os
import time

import pytest

from context_bench.monitors.progress import StatusLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class NotebookStream(io.StringIO):
    """Stands for the stream of a kernel, which is known by the package that it comes from."""


NotebookStream.__module__ = "ipykernel.iostream"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def watch(stream: io.StringIO, seconds: float, total: float | None = None, step: float = 0.1) -> StatusLine:
    """Tick for so many seconds; with a total, the share of it that is done grows evenly."""
    clock = Clock()

    def share() -> float | None:
        return None if total is None else (clock.now - 100.0) / total

    line = StatusLine(lambda width: f"at {clock.now - 100:.1f}"[:width], share, stream=stream, clock=clock)
    for _ in range(round(seconds / step)):
        clock.now += step
        line.tick()
    return line


def test_a_log_has_nothing_of_what_is_short() -> None:
    stream = io.StringIO()
    watch(stream, 9.8, total=10.0).close()
    assert stream.getvalue() == ""


def test_a_log_has_a_line_every_thirty_seconds_where_the_end_is_not_known() -> None:
    stream = io.StringIO()
    watch(stream, 125).close()
    lines = stream.getvalue().splitlines()
    assert [round(float(line.removeprefix("context-bench: at "))) for line in lines] == [10, 40, 70, 100]
    assert "\r" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_a_log_has_a_line_every_tenth_of_the_whole() -> None:
    stream = io.StringIO()
    watch(stream, 100, total=100.0).close()  # a tenth takes ten seconds
    assert len(stream.getvalue().splitlines()) in (9, 10)


def test_a_log_is_not_flooded_by_a_run_of_half_a_minute() -> None:
    stream = io.StringIO()
    watch(stream, 30, total=30.0).close()
    assert 3 <= len(stream.getvalue().splitlines()) <= 5


def test_a_notebook_sees_one_line_that_changes_once_a_second_and_stays() -> None:
    stream = NotebookStream()
    watch(stream, 11).close()
    text = stream.getvalue()
    assert 8 <= text.count("\r") <= 12
    assert "\x1b" not in text  # not every notebook understands that
    assert text.count("\n") == 1
    assert text.endswith("at 11.0\n")


def test_a_shorter_line_leaves_nothing_of_a_longer_one_in_a_notebook() -> None:
    stream, clock, texts = NotebookStream(), Clock(), ["a long line", "short"]
    line = StatusLine(lambda _: texts[0], stream=stream, clock=clock)
    clock.now += 2
    line.tick()
    del texts[0]
    clock.now += 2
    line.tick()
    assert stream.getvalue() == "\ra long line\rshort      "


def test_a_terminal_sees_it_in_place_and_then_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    stream = Terminal()
    watch(stream, 3).close()
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[2K")


def test_hidden_for_other_output_it_comes_back() -> None:
    stream, clock = Terminal(), Clock()
    line = StatusLine(lambda _: "here", stream=stream, clock=clock)
    clock.now += 2
    line.tick()
    line.hide()
    assert stream.getvalue() == "\r\x1b[2Khere\r\x1b[2K"
    clock.now += 1
    line.tick()
    assert stream.getvalue().endswith("here")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal(), NotebookStream()])
def test_silent_when_switched_off(stream: io.StringIO) -> None:
    clock = Clock()
    with StatusLine(lambda _: "no", enabled=False, stream=stream, clock=clock) as line:
        clock.now += 100
        line.tick()
    assert stream.getvalue() == ""


def test_it_is_shown_while_nothing_happens() -> None:
    stream = Terminal()
    with StatusLine(lambda _: "waiting", stream=stream):
        time.sleep(1.6)  # nobody calls `tick`
    assert "waiting" in stream.getvalue()


def test_a_stream_that_is_closed_ends_nothing() -> None:
    stream, clock = Terminal(), Clock()
    line = StatusLine(lambda _: "here", stream=stream, clock=clock)
    clock.now += 2
    stream.close = lambda: None  # type: ignore[method-assign]
    stream.write = _fail  # type: ignore[method-assign, assignment]
    line.tick()
    assert not line.on
    line.close()


def _fail(_: str) -> int:
    raise OSError("nobody reads")
