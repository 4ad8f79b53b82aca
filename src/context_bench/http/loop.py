"""Event loops for the client, synchronous use of it, and threads for long work."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, TypeVar

T = TypeVar("T")

_SWITCH_INTERVAL = 0.0005  # switch interval of the interpreter, in seconds, while a thread works on a long text


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a selector loop on every platform: libcurl's sockets need it, and Windows has another default."""
    return asyncio.SelectorEventLoop()


@contextmanager
def open_event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Open a selector loop, and close it with everything that is still open on it."""
    loop = new_event_loop()
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class _Background:
    """An event loop in a separate thread, started on first use; connections stay pooled between calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="context-bench-http", daemon=True).start()
            return self._loop


_background = _Background()


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, even if a loop is already running."""
    return asyncio.run_coroutine_threadsafe(work, _background.loop()).result()


class _QuickSwitches:
    """Shortens the interpreter's switch interval inside the `with` block.

    The thread that listens to servers needs the interpreter often and briefly, but a thread that works on a long text
    would keep it for 5 ms each time. The change is temporary, because switches have a cost too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside, self._usual = 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self._usual, _SWITCH_INTERVAL))

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._usual)


quick_switches = _QuickSwitches()


@cache
def _open_threads() -> Executor:
    """Open our own threads, because callers that wait for us may occupy all threads of the loop."""
    return ThreadPoolExecutor(2, "context-bench-beside")  # more would only compete for the interpreter


if hasattr(os, "register_at_fork"):  # a forked child has none of our threads and opens its own
    os.register_at_fork(after_in_child=_open_threads.cache_clear)


async def work_beside(function: Callable[..., T], *arguments: Any, threads: Executor | None = None) -> T:
    """Run a function on long texts in a thread while the loop keeps listening."""
    with quick_switches:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads or _open_threads(), partial(function, *arguments))
