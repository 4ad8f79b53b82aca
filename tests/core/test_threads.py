"""Somebody else's function in a thread: its result comes back, and whatever it raises."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from context_bench.core.threads import Raised, Threads, _call_guarded, call_in_thread, unwrap


def call(function: Any, *arguments: Any) -> Any:
    async def main() -> Any:
        with ThreadPoolExecutor(1) as threads:
            return await asyncio.wait_for(call_in_thread(threads, function, *arguments), 5)

    return asyncio.run(main())


def test_the_result_comes_back_from_another_thread() -> None:
    assert call(lambda a, b: (a + b, threading.current_thread() is threading.main_thread()), 1, 2) == (3, False)


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), StopIteration(5), asyncio.CancelledError(), CancelledError(), SystemExit(1), GeneratorExit()],
    ids=lambda error: type(error).__name__,
)
def test_what_was_raised_is_inside(error: BaseException) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(Raised) as caught:
        call(fails)
    assert unwrap(caught.value) is error
    assert unwrap(error) is error


def test_ctrl_c_is_no_error_of_the_function() -> None:
    def fails() -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as threads:  # an event loop would hand it on to whoever runs, the test runner too
        assert type(threads.submit(_call_guarded, fails, ()).exception(5)) is KeyboardInterrupt


def test_a_pool_starts_no_more_threads_than_it_may_and_than_it_needs() -> None:
    pool = Threads(2, "pool")
    gate, names = threading.Event(), set()

    def wait() -> None:
        names.add(threading.current_thread().name)
        gate.wait(5)

    futures = [pool.submit(wait) for _ in range(6)]
    gate.set()
    for future in futures:
        future.result(5)
    assert names == {"pool-1", "pool-2"}
    pool.shutdown()

    alone = Threads(8, "alone")
    seen = {alone.submit(lambda: threading.current_thread().name).result(5) for _ in range(3)}
    alone.shutdown()
    assert len(seen) <= 2  # a thread counts as free a moment after its result is there


def test_a_pool_hands_on_results_and_errors() -> None:
    pool = Threads(1, "pool")
    assert pool.submit(divmod, 7, 2).result(5) == (3, 1)
    assert pool.submit(dict, a=1).result(5) == {"a": 1}
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 7, 0).result(5)
    pool.shutdown()


def test_what_waits_can_be_given_up_and_what_hangs_is_left_alone() -> None:
    pool = Threads(1, "pool")
    gate = threading.Event()
    running, waiting = pool.submit(gate.wait, 5), pool.submit(gate.wait, 5)
    while not running.running():
        pass
    pool.shutdown(cancel_futures=True)
    assert waiting.cancelled()
    assert not running.done()
    gate.set()
    assert running.result(5) is True
