"""The start and end of a run: parts that prepare and finish, signals, and fewer garbage collections.

Whatever a part does at the end of the run, the rows are kept.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from context_bench.core.threads import Threads, call_in_thread, unwrap
from context_bench.errors import UsageError, describe, warn
from context_bench.traits import find_finish, find_prepare, has_plain_prepare

COLLECT_AFTER = 10_000  # new containers between two collections

TERM_GRACE = 5.0  # seconds after SIGTERM for jobs in flight

MAX_FINISH_SECONDS = 60.0
"""Seconds that `finish()` of a part may take. Ours need up to 15 s, to stop a program that ignores SIGTERM."""


async def prepare_parts(parts: Sequence[Any]) -> None:
    """Await `prepare()` of all parts at once; warn if one is not asynchronous."""
    for part in filter(has_plain_prepare, parts):
        warn(f"prepare() of {part.name} is not called, because it is not `async def`")
    found = [prepare for prepare in map(find_prepare, parts) if prepare is not None]
    await asyncio.gather(*(prepare() for prepare in found))


async def finish_parts(parts: Iterable[Any], seconds: float | None = None) -> None:
    """Call `finish()` of all parts, one after the other; warn if one fails or hangs.

    Raises:
        CancelledError: The run was cancelled. All parts have been finished by then.
    """
    limit = MAX_FINISH_SECONDS if seconds is None else seconds
    cancelled = False
    for part in parts:
        try:
            finish = find_finish(part)
            problem = "" if finish is None else await _finish_within(finish, limit)
        except UsageError as unreadable:
            problem = str(unreadable)
        except asyncio.CancelledError:
            cancelled, problem = True, "interrupted"
        if problem:
            warn(f"{part.name} failed in finish(): {problem}")
    if cancelled:
        raise asyncio.CancelledError


async def _finish_within(finish: Callable[[], Any], seconds: float) -> str:
    """Call `finish` and return a description of its failure, or ""."""
    threads = Threads(1, "context-bench-finish")
    task = asyncio.ensure_future(_call(finish, threads))
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=1.0)
            return f"it did not return within {seconds:g} s"
        error = task.result()
        return "" if error is None else describe(error)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        threads.shutdown()


async def _call(finish: Callable[[], Any], threads: Threads) -> BaseException | None:
    """Call `finish`, in a thread if it is synchronous; return its exception, which must not end the loop."""
    try:
        ended = finish() if inspect.iscoroutinefunction(finish) else await call_in_thread(threads, finish)
        if inspect.isawaitable(ended):
            await ended
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt would end the loop, and the run with it
        return unwrap(error)
    return None


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Collect garbage less often within this context: a run makes many rows and hardly any cycles."""
    usual = gc.get_threshold()
    patient = 0 < usual[0] < COLLECT_AFTER
    if patient:
        gc.set_threshold(COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        if patient:
            gc.set_threshold(*usual)


@contextmanager
def handle_interrupts(act: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM call `act` within this context: in the main thread, for signals without another handler.

    Container runtimes kill soon after SIGTERM, so jobs in flight then get only a few seconds.
    """
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def terminate() -> None:
        act()
        timers.append(loop.call_later(TERM_GRACE, act))

    main = threading.current_thread() is threading.main_thread()
    wanted = ((signal.SIGINT, signal.default_int_handler, act), (signal.SIGTERM, signal.SIG_DFL, terminate))
    taken = [each for each in wanted if main and signal.getsignal(each[0]) == each[1]]
    for number, _, handler in taken:
        try:
            loop.add_signal_handler(number, handler)  # wakes the loop, whichever thread gets the signal
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_, handler=handler: loop.call_soon_threadsafe(handler))
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        for number, usual, _ in taken:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, usual)
