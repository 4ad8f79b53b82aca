"""Work outside the event loop: calls in threads, the end of tasks, and the return of memory after huge texts.

A future hangs for ever on StopIteration, mistakes a CancelledError for its own, and passes SystemExit to the event
loop. Exceptions therefore leave a thread wrapped in another one.

The C library keeps much of the memory of a text of many megabytes. A row on its way to the store, or a record of the
tap, may release such a text only later, so memory is returned several times.
"""

from __future__ import annotations

import asyncio
import ctypes
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar
from weakref import WeakSet

from context_bench.errors import ContextBenchError
from context_bench.http.loop import quick_switches

T = TypeVar("T")


class Threads(Executor):
    """A pool of daemon threads: stopping a run does not wait for a hanging call."""

    def __init__(self, limit: int, name: str) -> None:
        self._limit, self._name = limit, name
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], Any, Any] | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(0)
        self._started = 0

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Queue a call."""
        future: Future[Any] = Future()
        self._calls.put((future, function, arguments, named))
        if not self._free.acquire(blocking=False) and self._started < self._limit:
            self._started += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        return future

    def _serve(self) -> None:
        while (task := self._calls.get()) is not None:
            future, function, arguments, named = task
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function(*arguments, **named))
                except BaseException as error:  # noqa: BLE001 - it is the caller's
                    future.set_exception(error)
            del task, future, function, arguments, named  # an idle thread must keep nothing alive
            self._free.release()

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002 - it never waits
        """Accept no more calls and let idle threads end; abandon hanging calls."""
        while cancel_futures and not self._calls.empty():
            task = self._calls.get()
            if task is not None:
                task[0].cancel()
        for _ in range(self._started):
            self._calls.put(None)


class Raised(Exception):
    """Carries an exception out of its thread."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


async def call_in_thread(threads: Executor, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function in a thread and return its result; exceptions except Ctrl-C become Raised."""
    return await asyncio.get_running_loop().run_in_executor(threads, _call_guarded, function, arguments)


async def call_beside(threads: Executor | None, function: Callable[..., T], *arguments: Any) -> T:
    """Call our own function in a thread (without threads: here); its exceptions are raised unchanged."""
    if threads is None:
        return function(*arguments)
    try:
        with quick_switches:
            result: T = await call_in_thread(threads, function, *arguments)
    except Raised as raised:
        raise raised.error from None
    return result


def _call_guarded(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Raised(error) from error


def unwrap(error: BaseException) -> BaseException:
    """Return the exception inside a Raised; other exceptions unchanged."""
    return error.error if isinstance(error, Raised) else error


_given_up: WeakSet[asyncio.Future[Any]] = WeakSet()


def give_up(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks of a run. Only this function does so: any other CancelledError is a failure of foreign code."""
    for task in tasks:
        _given_up.add(task)
        task.cancel()


def is_given_up() -> bool:
    """Whether a CancelledError is the end of this task; if not, the task continues as if it had not been cancelled."""
    task = asyncio.current_task()
    if task is None or task in _given_up:
        return True
    if sys.version_info >= (3, 11):
        while task.cancelling():  # a system cancelled the task that awaits it
            task.uncancel()
    return False


def find_failure(task: asyncio.Future[Any]) -> BaseException | None:
    """Return the exception that ended a task; None if it finished or was given up."""
    if not task.cancelled():
        return task.exception()
    if task in _given_up:
        return None
    return ContextBenchError("a task of the run was cancelled by a system, an evaluator or the program around it")


HUGE_TEXT = 1_000_000  # longer texts cause memory to be returned once nothing refers to them

_TRIM_DELAYS = (1.0, 4.0, 12.0, 30.0)  # seconds after a huge text when memory is returned


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of `mallopt`, from malloc.h

_LARGE_BLOCK_BYTES = 4 * 1024 * 1024  # larger blocks go back to the system as soon as they are free


def return_memory() -> None:
    """Return free memory to the system, and make the C library return large blocks at once from now on.

    GNU's C library does so at first. After the first large block is freed, it expects more such blocks and keeps up to
    64 MB for each thread, which cannot be returned.
    """
    try:
        library = ctypes.CDLL(None)
        trim, set_option = library.malloc_trim, library.mallopt
    except (AttributeError, OSError, TypeError):  # another C library
        return
    set_option(_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
    set_option(_TRIM_THRESHOLD, _LARGE_BLOCK_BYTES)
    trim(0)


class FreeMemory:
    """Returns memory some seconds after the last huge text, and at the end."""

    def __init__(self, threads: Executor) -> None:
        self._threads = threads
        self._timers: list[asyncio.TimerHandle] = []

    def note_text(self, text: str) -> None:
        """Note the length of a processed text; after a huge one, schedule the return of memory."""
        if len(text) >= HUGE_TEXT:
            self._cancel()
            loop = asyncio.get_running_loop()
            self._timers = [loop.call_later(seconds, self._threads.submit, return_memory) for seconds in _TRIM_DELAYS]

    def _cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def close(self) -> None:
        """Return memory now and cancel later returns."""
        if self._timers:
            self._cancel()
            self._timers = []
            return_memory()
